// The sum of up to three embeddings and its layer norm in one: one threadgroup for each token. A part is a row of its table by
// the token's id, or without ids the table's one row for all tokens. The sum is never rounded below float; it is cheaper
// to gather it again than to keep it. An id outside of its table gives NaN: the error belongs to whoever can report it.
template <typename T, typename I>
inline float embedding_part(device const EmbeddingLayerNormArgs* args, uint part, device const T* table,
                            device const I* ids_of, uint token, uint column) {
  long row = args->by_ids[part] != 0u ? long(ids_of[token]) : 0L;
  bool inside = row >= 0 && row < long(args->rows[part]);
  return inside ? float(table[ulong(row) * args->width + column]) * args->scales[part] : NAN;
}

template <typename T, typename P, typename I>
inline float embedding_sum(device const EmbeddingLayerNormArgs* args, device const T* table0, device const I* ids0,
                           device const P* table1, device const I* ids1, device const P* table2, device const I* ids2,
                           uint token, uint column) {
  uint parts = args->parts;
  float sum = embedding_part(args, 0, table0, ids0, token, column);
  if (parts > 1) sum += embedding_part(args, 1, table1, ids1, token, column);
  if (parts > 2) sum += embedding_part(args, 2, table2, ids2, token, column);
  return sum;
}

template <typename T, typename P, typename I, typename W, typename O>
inline void embedding_layer_norm(device const EmbeddingLayerNormArgs* args, device const T* table0, device const I* ids0,
                                 device const P* table1, device const I* ids1, device const P* table2, device const I* ids2,
                                 device const W* weight, device const W* bias, device O* out, threadgroup float* scratch,
                                 Ids ids) {
  uint width = args->width;
  uint token = ids.group;
  float n = float(width);
  float sum = 0.0f;
  for (uint k = ids.thread_index; k < width; k += ids.threads) {
    sum += embedding_sum(args, table0, ids0, table1, ids1, table2, ids2, token, k);
  }
  float mean = group_sum(sum, scratch, ids) / n;

  float squares = 0.0f;
  for (uint k = ids.thread_index; k < width; k += ids.threads) {
    float centred = embedding_sum(args, table0, ids0, table1, ids1, table2, ids2, token, k) - mean;
    squares += centred * centred;
  }
  float inverse = 1.0f / sqrt(group_sum(squares, scratch, ids) / n + args->eps);

  bool has_bias = args->has_bias != 0u;
  for (uint k = ids.thread_index; k < width; k += ids.threads) {
    float centred = embedding_sum(args, table0, ids0, table1, ids1, table2, ids2, token, k) - mean;
    float scaled = centred * inverse * float(weight[k]);
    out[ulong(token) * width + k] = O(has_bias ? scaled + float(bias[k]) : scaled);
  }
}
