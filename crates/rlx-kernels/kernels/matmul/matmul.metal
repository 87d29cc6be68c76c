// matmul and linear: one threadgroup of four simdgroups for each tile of BM x BN results. Tiles of both operands, BK elements
// along the sum, pass through threadgroup memory, where what lies beyond the operands' ends is zero; each simdgroup sums up a
// quarter of the tile in simdgroup matrices.

// Copies ROWS rows of STEPS elements to `tile`, rows STRIDE apart. `neighbours_first`: the elements of a row are
// neighbours in memory, not those of a column, so neighbouring threads take them.
template <typename T, typename E, uint ROWS, uint STEPS, uint STRIDE>
inline void matmul_stage(threadgroup T* tile, device const E* from, uint row_stride, uint step_stride, uint rows, uint steps,
                         bool neighbours_first, Ids ids) {
  for (uint i = ids.thread_index; i < ROWS * STEPS; i += ids.threads) {
    uint row = neighbours_first ? i / STEPS : i % ROWS;
    uint step = neighbours_first ? i % STEPS : i / ROWS;
    bool inside = row < rows && step < steps;
    tile[row * STRIDE + step] = inside ? T(from[ulong(row) * row_stride + ulong(step) * step_stride]) : T(0.0f);
  }
}

template <typename A, typename B, typename C, typename T, uint BM, uint BN, uint BK>
inline void matmul(device const MatMulArgs* args, device const A* a, device const B* b, device const C* bias,
                   device const A* residual, device A* out, threadgroup T* tiles, threadgroup float* strips, Ids ids) {
  // 16 bytes more than a row holds, so that rows begin in different banks of the memory.
  constexpr uint STRIDE = BK + 16 / sizeof(T);
  // Simdgroups stand two by two; each has so many rows and columns, in matrices of 8.
  constexpr uint ROWS = BM / 2;
  constexpr uint COLUMNS = BN / 2;

  uint column_tile = ids.group % args->column_tiles;
  uint rest = ids.group / args->column_tiles;
  uint first_column = column_tile * BN;
  uint first_row = rest % args->row_tiles * BM;
  MatMulPlaces places = matmul_places(args, rest / args->row_tiles);
  uint rows = args->m - first_row;
  uint columns = args->n - first_column;
  uint k = args->k;
  uint a_row = args->a_row;
  uint a_step = args->a_step;
  uint b_row = args->b_row;
  uint b_step = args->b_step;
  device const A* a_tile = a + places.a + ulong(first_row) * a_row;
  device const B* b_tile = b + places.b + ulong(first_column) * b_row;
  threadgroup T* left_tile = tiles;
  threadgroup T* right_tile = tiles + BM * STRIDE;
  uint simd_row = ids.simd / 2 * ROWS;
  uint simd_column = ids.simd % 2 * COLUMNS;

  simd_matrix<float> sums[ROWS / 8][COLUMNS / 8];
  simd_matrix<T> left[ROWS / 8];
  simd_matrix<T> right[COLUMNS / 8];
  UNROLL for (uint i = 0; i < ROWS / 8; i++) {
    UNROLL for (uint j = 0; j < COLUMNS / 8; j++) matrix_fill(sums[i][j], 0.0f);
  }

  for (uint first = 0; first < k; first += BK) {
    // The last tiles may still be read.
    if (first > 0) barrier_threadgroup();
    matmul_stage<T, A, BM, BK, STRIDE>(left_tile, a_tile + ulong(first) * a_step, a_row, a_step, rows, k - first,
                                       a_step <= a_row, ids);
    matmul_stage<T, B, BN, BK, STRIDE>(right_tile, b_tile + ulong(first) * b_step, b_row, b_step, columns, k - first,
                                       b_step <= b_row, ids);
    barrier_threadgroup();
    UNROLL for (uint step = 0; step < BK; step += 8) {
      UNROLL for (uint i = 0; i < ROWS / 8; i++) {
        matrix_load(left[i], left_tile + (simd_row + i * 8) * STRIDE + step, STRIDE);
      }
      UNROLL for (uint j = 0; j < COLUMNS / 8; j++) {
        matrix_load_transposed(right[j], right_tile + (simd_column + j * 8) * STRIDE + step, STRIDE);
      }
      UNROLL for (uint i = 0; i < ROWS / 8; i++) {
        UNROLL for (uint j = 0; j < COLUMNS / 8; j++) matrix_multiply_accumulate(sums[i][j], left[i], right[j], sums[i][j]);
      }
    }
  }

  // Eight rows at a time, through memory that the simdgroup has for itself.
  threadgroup float* strip = strips + ids.simd * 8 * COLUMNS;
  UNROLL for (uint i = 0; i < ROWS / 8; i++) {
    if (i > 0) simd_barrier();
    UNROLL for (uint j = 0; j < COLUMNS / 8; j++) matrix_store(sums[i][j], strip + j * 8, COLUMNS);
    simd_barrier();
    for (uint at = ids.lane; at < 8 * COLUMNS; at += 32) {
      uint row = simd_row + i * 8 + at / COLUMNS;
      uint column = simd_column + at % COLUMNS;
      if (row < rows && column < columns) {
        matmul_finish(args, places, bias, residual, out, first_row + row, first_column + column, strip[at]);
      }
    }
  }
}
