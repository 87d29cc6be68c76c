// glu: the first half of each row, activated, times the second half. One thread for each result.
template <typename T>
inline void glu(device const GluArgs* args, device const T* x, device T* out, Ids ids) {
  uint index = ids.group * ids.threads + ids.thread_index;
  if (index >= args->elems) return;
  uint half_width = args->half_width;
  ulong from = ulong(index / half_width) * args->x_row + index % half_width;
  float gate = float(x[from]);
  float up = float(x[from + half_width]);
  out[index] = T(activate(args->activation, gate) * up);
}
