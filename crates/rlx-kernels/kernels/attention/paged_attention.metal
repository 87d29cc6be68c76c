// paged_attention: attention whose keys and values lie in pages of state, for few and for many queries.
template <typename T, typename S, uint DIM>
inline void paged_attention_rows(device const AttentionArgs* args, device const T* q, device const S* k,
                                 device const S* v, device const int* starts, device const int* lengths,
                                 device const int* table, device T* out, threadgroup float* parts, Ids ids) {
  AttentionSource<S> source = {k, v, starts, lengths, table};
  AttentionMask mask = {nullptr, nullptr, nullptr};
  attention_rows_of<T, S, DIM, true>(args, q, source, mask, out, parts, ids);
}

template <typename T, typename S, uint DIM, uint SPLIT, uint BLOCK>
inline void paged_attention_tiles(device const AttentionArgs* args, device const T* q, device const S* k,
                                  device const S* v, device const int* starts, device const int* lengths,
                                  device const int* table, device T* out, threadgroup float* tile,
                                  threadgroup float* scores, Ids ids) {
  AttentionSource<S> source = {k, v, starts, lengths, table};
  AttentionMask mask = {nullptr, nullptr, nullptr};
  attention_tiles_of<T, S, DIM, SPLIT, BLOCK, true>(args, q, source, mask, out, tile, scores, ids);
}
