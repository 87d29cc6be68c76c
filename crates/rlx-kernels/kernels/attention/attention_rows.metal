// attention, for few queries: one threadgroup for each query and head, whose simdgroups take blocks of 32 keys in turn.
// DIM is the largest head_dim, a multiple of 32. Lanes share out the elements of a head, so that neighbours read
// neighbours; the products of 32 keys are summed together, after which each lane has the score of one key.
// `parts` holds, for each simdgroup, its largest score, the sum of its weights, whether it met a strange value, and its
// weighted values.

// Of 2 WIDTH values that each lane has, it keeps half, joined with what another lane has of them.
template <uint WIDTH>
inline void attention_fold(thread float* v, uint lane) {
  bool upper = (lane & WIDTH) != 0u;
  UNROLL for (uint i = 0; i < WIDTH; i++) {
    float kept = upper ? v[i + WIDTH] : v[i];
    float sent = upper ? v[i] : v[i + WIDTH];
    v[i] = kept + simd_shuffle_xor(sent, ushort(WIDTH));
  }
}

// Lane i gets the sum of all lanes' v[i].
inline float attention_sums(thread float* v, uint lane) {
  attention_fold<16>(v, lane);
  attention_fold<8>(v, lane);
  attention_fold<4>(v, lane);
  attention_fold<2>(v, lane);
  attention_fold<1>(v, lane);
  return v[0];
}

template <typename T, typename S, uint DIM, bool PAGED>
inline void attention_rows_of(device const AttentionArgs* args, device const T* q, AttentionSource<S> source,
                              AttentionMask mask, device T* out, threadgroup float* parts, Ids ids) {
  uint head_dim = args->head_dim;
  uint v_dim = args->v_dim;
  uint token = ids.group / args->heads;
  uint head = ids.group % args->heads;
  uint kv_head = head / args->group_heads;
  uint lane = ids.lane;
  AttentionKeys keys = attention_keys<PAGED>(args, source.starts, source.lengths, token);
  ulong mask_row = attention_mask_row(args, token, head);

  device const T* query = q + (ulong(token) * args->q_token + ulong(head) * args->q_head);
  device const S* k = source.k + ulong(kv_head) * args->k_head;
  device const S* v = source.v + ulong(kv_head) * args->v_head;
  float queries[DIM / 32];
  float values[DIM / 32];
  UNROLL for (uint c = 0; c < DIM / 32; c++) {
    uint d = 32 * c + lane;
    queries[c] = d < head_dim ? float(query[d]) : 0.0f;
    values[c] = 0.0f;
  }

  float most = ATTENTION_LOWEST;
  float sum = 0.0f;
  bool strange = false;
  for (uint block = keys.low + 32 * ids.simd; block < keys.high; block += 32 * ids.simds) {
    // Beyond the last key stands that key again.
    uint row = attention_row<PAGED>(args, source.table, keys.sequence, min(block + lane, keys.high - 1));
    float products[32];
    UNROLL for (uint j = 0; j < 32; j++) {
      device const S* key = k + ulong(PAGED ? simd_shuffle(row, ushort(j)) : min(block + j, keys.high - 1)) * args->k_token;
      float product = 0.0f;
      UNROLL for (uint c = 0; c < DIM / 32; c++) {
        uint d = 32 * c + lane;
        if (d < head_dim) product += queries[c] * float(key[d]);
      }
      products[j] = product;
    }
    float product = attention_sums(products, lane);
    float score = ATTENTION_HIDDEN;
    if (block + lane < keys.high) score = attention_score(args, mask, mask_row + (block + lane - keys.first), product);

    float next = max_or_nan(simd_max(score != score ? ATTENTION_LOWEST : score), most);
    float rescale = exp(most - next);
    float weight = attention_weight(score, next);
    most = next;
    sum = sum * rescale + weight;
    UNROLL for (uint c = 0; c < DIM / 32; c++) values[c] *= rescale;
    uint shown = simd_ballot_mask(score != ATTENTION_HIDDEN);
    for (uint j = 0; j < 32; j++) {
      float factor = simd_shuffle(weight, ushort(j));
      device const S* value = v + ulong(PAGED ? simd_shuffle(row, ushort(j)) : min(block + j, keys.high - 1)) * args->v_token;
      if (((shown >> j) & 1u) == 0u) continue;
      UNROLL for (uint c = 0; c < DIM / 32; c++) {
        uint d = 32 * c + lane;
        float x = d < v_dim ? float(value[d]) : 0.0f;
        if (attention_is_strange(x)) {
          strange = true;
          x = 0.0f;
        }
        values[c] += factor * x;
      }
    }
  }

  const uint stride = DIM + 3;
  sum = simd_sum(sum);
  bool met = simd_ballot_mask(strange) != 0u;
  threadgroup float* part = parts + ids.simd * stride;
  if (lane == 0) {
    part[0] = most;
    part[1] = sum;
    part[2] = met ? 1.0f : 0.0f;
  }
  UNROLL for (uint c = 0; c < DIM / 32; c++) part[3 + 32 * c + lane] = values[c];
  barrier_threadgroup();
  for (uint s = 0; s < ids.simds; s++) most = max_or_nan(most, parts[s * stride]);
  sum = 0.0f;
  for (uint s = 0; s < ids.simds; s++) {
    sum += parts[s * stride + 1] * exp(parts[s * stride] - most);
    met = met || parts[s * stride + 2] != 0.0f;
  }
  for (uint d = ids.thread_index; d < v_dim; d += ids.threads) {
    float value = 0.0f;
    for (uint s = 0; s < ids.simds; s++) value += parts[s * stride + 3 + d] * exp(parts[s * stride] - most);
    value = sum == 0.0f ? 0.0f : value / sum;
    if (met) value += attention_strange<S, PAGED>(args, source.table, mask, mask_row, keys, v + d);
    out[ulong(ids.group) * v_dim + d] = T(value);
  }
}

template <typename T, uint DIM>
inline void attention_rows(device const AttentionArgs* args, device const T* q, device const T* k, device const T* v,
                           device const int* starts, device const bool* custom, device const float* bias_f32,
                           device const half* bias_f16, device T* out, threadgroup float* parts, Ids ids) {
  AttentionSource<T> source = {k, v, starts, nullptr, nullptr};
  AttentionMask mask = {custom, bias_f32, bias_f16};
  attention_rows_of<T, T, DIM, false>(args, q, source, mask, out, parts, ids);
}
