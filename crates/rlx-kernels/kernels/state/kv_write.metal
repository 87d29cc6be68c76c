// kv_write: one threadgroup for each token. A slot that is negative or beyond the pages skips its token: for the latter the
// error belongs to whoever can report it.
template <typename X, typename S>
inline void kv_write(device const KvWriteArgs* args, device const X* x, device const int* slots, device S* state,
                     threadgroup float* scratch, Ids ids) {
  uint token = ids.group;
  int slot = slots[token];
  if (slot < 0 || uint(slot) >= args->slots) return;
  // Of several tokens for one slot the last wins.
  bool later = false;
  for (uint t = token + 1 + ids.thread_index; t < args->tokens; t += ids.threads) later = later || slots[t] == slot;
  if (group_sum(later ? 1.0f : 0.0f, scratch, ids) > 0.0f) return;
  uint head_dim = args->head_dim;
  uint width = args->heads * head_dim;
  for (uint i = ids.thread_index; i < width; i += ids.threads) {
    ulong from = ulong(token) * args->x_token + ulong(i / head_dim) * args->x_head + i % head_dim;
    state[ulong(slot) * width + i] = S(float(x[from]));
  }
}
