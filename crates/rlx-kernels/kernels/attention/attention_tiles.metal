// attention, for many queries: one threadgroup for each tile of queries and each head, 8 queries for each simdgroup, keys in
// blocks of BLOCK. A head has at most DIM elements for each of the SPLIT simdgroups that share the same queries: each of
// them makes scores of its elements of the keys, which are added, and the result's elements of its own.
// `tile` holds the keys, then the values of a block; `scores` has a square of 8 by BLOCK for each simdgroup, and another
// for weights where scores of others are still read.
//
// The largest score is followed loosely: weights are relative to one that was the largest, and only where a score exceeds
// it by ATTENTION_SLACK are sums and values scaled anew. Weights stay below exp(ATTENTION_SLACK), and results are the same.

#define ATTENTION_SLACK 8.0f

// Copies the rows of BLOCK keys into threadgroup memory, with zeros for those from `end` on and from `dim` elements up to
// `depth`. Where FINITE, other values count as zero; gives whether this thread met one.
template <typename S, uint BLOCK, uint STRIDE, bool FINITE, bool PAGED>
inline bool attention_stage(device const AttentionArgs* args, device const S* from, uint stride, device const int* table,
                            uint sequence, uint block, uint end, uint dim, uint depth, threadgroup float* tile, Ids ids) {
  bool strange = false;
  for (uint r = ids.simd; r < BLOCK; r += ids.simds) {
    bool some = block + r < end;
    ulong row = some ? ulong(attention_row<PAGED>(args, table, sequence, block + r)) * stride : 0;
    for (uint d = ids.lane; d < depth; d += 32) {
      float x = some && d < dim ? float(from[row + d]) : 0.0f;
      if (FINITE && attention_is_strange(x)) {
        strange = true;
        x = 0.0f;
      }
      tile[r * STRIDE + d] = x;
    }
  }
  return strange;
}

template <typename T, typename S, uint DIM, uint SPLIT, uint BLOCK, bool PAGED>
inline void attention_tiles_of(device const AttentionArgs* args, device const T* q, AttentionSource<S> source,
                               AttentionMask mask, device T* out, threadgroup float* tile, threadgroup float* scores,
                               Ids ids) {
  // Rows are 4 elements longer than they need be, so that columns lie in different banks.
  const uint stride = DIM * SPLIT + 4;
  const uint score_stride = BLOCK + 4;
  const uint square = 8 * score_stride;
  const uint none = 0xffffffffu;
  uint tokens = args->tokens;
  uint head_dim = args->head_dim;
  uint v_dim = args->v_dim;
  // Whole matrices.
  uint depth = (head_dim + 7) / 8 * 8;
  uint v_depth = (v_dim + 7) / 8 * 8;
  uint head = ids.group_y;
  uint kv_head = head / args->group_heads;
  device const S* k = source.k + ulong(kv_head) * args->k_head;
  device const S* v = source.v + ulong(kv_head) * args->v_head;
  uint lane = ids.lane;
  uint part = ids.simd % SPLIT * DIM;
  uint tile_rows = ids.simds / SPLIT * 8;
  uint tile_token = ids.group * tile_rows;
  uint first_row = ids.simd / SPLIT * 8;
  uint first_token = tile_token + first_row;

  // Each lane looks up one query of the tile; then four lanes share a query of their simdgroup.
  AttentionKeys found =
      attention_keys<PAGED>(args, source.starts, source.lengths, lane < tile_rows ? tile_token + lane : tokens);
  bool sees = found.low < found.high;
  uint row = lane / 4;
  uint quarter = lane % 4;
  ushort place = ushort(first_row + row);
  AttentionKeys keys = {simd_shuffle(found.sequence, place), simd_shuffle(found.first, place),
                        simd_shuffle(found.low, place), simd_shuffle(found.high, place)};
  ulong mask_row = attention_mask_row(args, first_token + row, head);

  threadgroup float* own = scores + ids.simd * square;
  threadgroup float* shared = scores + ids.simd / SPLIT * SPLIT * square;
  threadgroup float* weights = SPLIT == 1 ? own : own + ids.simds * square;

  simd_matrix<float> queries[DIM / 8];
  simd_matrix<float> values[DIM / 8];
  UNROLL for (uint c = 0; c < DIM / 8; c += BLOCK / 8) {
    for (uint e = lane; e < 8 * BLOCK; e += 32) {
      uint token = first_token + e / BLOCK;
      uint d = part + 8 * c + e % BLOCK;
      bool inside = token < tokens && d < head_dim;
      ulong at = ulong(token) * args->q_token + ulong(head) * args->q_head + d;
      own[e / BLOCK * score_stride + e % BLOCK] = inside ? float(q[at]) : 0.0f;
    }
    simd_barrier();
    UNROLL for (uint i = 0; i < BLOCK / 8; i++) {
      matrix_load(queries[c + i], own + 8 * i, score_stride);
      matrix_fill(values[c + i], 0.0f);
    }
    simd_barrier();
  }

  float most = ATTENTION_LOWEST;
  float sum = 0.0f;
  bool begun = false;
  bool strange = false;
  // Sequences beside each other have their keys beside each other as well, and are walked in one, but for pages.
  uint run = PAGED ? simd_min(sees ? found.sequence : none) : 0;
  uint last_run = PAGED ? simd_max(sees ? found.sequence : 0u) : 0;
  for (; run <= last_run; run++) {
    bool takes = sees && (!PAGED || found.sequence == run);
    uint tile_low = simd_min(takes ? found.low : none);
    uint tile_high = simd_max(takes ? found.high : 0u);
    uint row_low = keys.low;
    uint row_high = !PAGED || keys.sequence == run ? keys.high : 0u;
    uint low = simd_min(row_low < row_high ? row_low : none);
    uint high = simd_max(row_low < row_high ? row_high : 0u);
    for (uint block = tile_low; block < tile_high; block += BLOCK) {
      // Whether this simdgroup's queries see any of these keys.
      bool seen = block < high && block + BLOCK > low;
      // The last block's values may still be read.
      barrier_threadgroup();
      attention_stage<S, BLOCK, stride, false, PAGED>(args, k, args->k_token, source.table, run, block, tile_high,
                                                      head_dim, depth, tile, ids);
      barrier_threadgroup();
      if (seen) {
        simd_matrix<float> products[BLOCK / 8];
        UNROLL for (uint i = 0; i < BLOCK / 8; i++) matrix_fill(products[i], 0.0f);
        UNROLL for (uint c = 0; c < DIM / 8; c++) {
          if (part + 8 * c >= depth) continue;
          UNROLL for (uint i = 0; i < BLOCK / 8; i++) {
            simd_matrix<float> factor;
            matrix_load_transposed(factor, tile + (8 * i * stride + part + 8 * c), stride);
            matrix_multiply_accumulate(products[i], queries[c], factor, products[i]);
          }
        }
        UNROLL for (uint i = 0; i < BLOCK / 8; i++) matrix_store(products[i], own + 8 * i, score_stride);
      }
      barrier_threadgroup();
      if (attention_stage<S, BLOCK, stride, true, PAGED>(args, v, args->v_token, source.table, run, block, tile_high,
                                                         v_dim, v_depth, tile, ids)) {
        strange = true;
      }
      if (seen) {
        float held[BLOCK / 4];
        float peak = ATTENTION_LOWEST;
        UNROLL for (uint i = 0; i < BLOCK / 4; i++) {
          uint column = 4 * i + quarter;
          uint key = block + column;
          float score = ATTENTION_HIDDEN;
          if (key >= row_low && key < row_high) {
            float product = 0.0f;
            UNROLL for (uint s = 0; s < SPLIT; s++) product += shared[s * square + row * score_stride + column];
            score = attention_score(args, mask, mask_row + (key - keys.first), product);
          }
          held[i] = score;
          peak = score > peak ? score : peak;
        }
        peak = max_or_nan(peak, simd_shuffle_xor(peak, ushort(1)));
        peak = max_or_nan(peak, simd_shuffle_xor(peak, ushort(2)));
        if (simd_ballot_mask(peak > most + ATTENTION_SLACK) != 0u) {
          float next = max_or_nan(peak, most);
          float rescale = exp(most - next);
          most = next;
          sum *= rescale;
          UNROLL for (uint c = 0; c < DIM / 8; c += BLOCK / 8) {
            if (!begun || part + 8 * c >= v_depth) continue;
            simd_barrier();
            UNROLL for (uint i = 0; i < BLOCK / 8; i++) matrix_store(values[c + i], weights + 8 * i, score_stride);
            simd_barrier();
            for (uint column = quarter; column < BLOCK; column += 4) weights[row * score_stride + column] *= rescale;
            simd_barrier();
            UNROLL for (uint i = 0; i < BLOCK / 8; i++) matrix_load(values[c + i], weights + 8 * i, score_stride);
          }
          simd_barrier();
        }
        begun = true;
        UNROLL for (uint i = 0; i < BLOCK / 4; i++) {
          float weight = attention_weight(held[i], most);
          sum += weight;
          weights[row * score_stride + 4 * i + quarter] = weight;
        }
      }
      barrier_threadgroup();
      if (seen) {
        UNROLL for (uint i = 0; i < BLOCK / 8; i++) {
          simd_matrix<float> factor;
          matrix_load(factor, weights + 8 * i, score_stride);
          UNROLL for (uint c = 0; c < DIM / 8; c++) {
            if (part + 8 * c >= v_depth) continue;
            simd_matrix<float> value;
            matrix_load(value, tile + (8 * i * stride + part + 8 * c), stride);
            matrix_multiply_accumulate(values[c], factor, value, values[c]);
          }
        }
      }
    }
  }

  sum += simd_shuffle_xor(sum, ushort(1));
  sum += simd_shuffle_xor(sum, ushort(2));
  bool met = simd_ballot_mask(strange) != 0u;
  barrier_threadgroup();
  if (lane == 0) tile[ids.simd] = met ? 1.0f : 0.0f;
  barrier_threadgroup();
  for (uint s = 0; s < ids.simds; s++) met = met || tile[s] != 0.0f;
  UNROLL for (uint c = 0; c < DIM / 8; c += BLOCK / 8) {
    if (part + 8 * c >= v_depth) continue;
    simd_barrier();
    UNROLL for (uint i = 0; i < BLOCK / 8; i++) matrix_store(values[c + i], own + 8 * i, score_stride);
    simd_barrier();
    for (uint e = lane; e < 8 * BLOCK; e += 32) {
      uint r = e / BLOCK;
      uint d = part + 8 * c + e % BLOCK;
      ushort holder = ushort(4 * r);
      float total = simd_shuffle(sum, holder);
      float value = total == 0.0f ? 0.0f : own[r * score_stride + e % BLOCK] / total;
      AttentionKeys seen = {simd_shuffle(keys.sequence, holder), simd_shuffle(keys.first, holder),
                            simd_shuffle(keys.low, holder), simd_shuffle(keys.high, holder)};
      uint token = first_token + r;
      if (token >= tokens || d >= v_dim) continue;
      if (met) {
        ulong mask_at = attention_mask_row(args, token, head);
        value += attention_strange<S, PAGED>(args, source.table, mask, mask_at, seen, v + d);
      }
      out[(ulong(token) * args->heads + head) * v_dim + d] = T(value);
    }
  }
}

template <typename T, uint DIM, uint SPLIT, uint BLOCK>
inline void attention_tiles(device const AttentionArgs* args, device const T* q, device const T* k, device const T* v,
                            device const int* starts, device const bool* custom, device const float* bias_f32,
                            device const half* bias_f16, device T* out, threadgroup float* tile,
                            threadgroup float* scores, Ids ids) {
  AttentionSource<T> source = {k, v, starts, nullptr, nullptr};
  AttentionMask mask = {custom, bias_f32, bias_f16};
  attention_tiles_of<T, T, DIM, SPLIT, BLOCK, false>(args, q, source, mask, out, tile, scores, ids);
}
