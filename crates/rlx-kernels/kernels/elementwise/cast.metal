// cast: one thread for each element of a dense tensor.
template <typename From, typename To>
inline void cast(device const CastArgs* args, device const From* x, device To* out, Ids ids) {
  uint index = ids.group * ids.threads + ids.thread_index;
  if (index < args->elems) out[index] = convert<To>(From(x[index]));
}
