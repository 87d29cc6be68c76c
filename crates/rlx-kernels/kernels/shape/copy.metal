// copy: elements from one strided layout to another, moved as bits of their size. One thread for each element.
template <typename T>
inline void copy(device const CopyArgs* args, device const T* x, device T* out, Ids ids) {
  uint index = ids.group * ids.threads + ids.thread_index;
  if (index >= args->elems) return;
  ulong from = 0;
  ulong to = 0;
  for (uint axis = args->rank; axis > 0; axis--) {
    uint size = args->sizes[axis - 1];
    uint at = index % size;
    index /= size;
    from += ulong(at) * args->x_strides[axis - 1];
    to += ulong(at) * args->out_strides[axis - 1];
  }
  out[to] = x[from];
}
