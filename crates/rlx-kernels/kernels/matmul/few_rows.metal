// matmul and linear for a few rows: the lanes of a simdgroup share out the elements of a sum, for ROWS rows and four columns
// at once. Elements along the sum are neighbours in both operands.
template <typename A, typename B, typename C, uint ROWS>
inline void matmul_few_rows(device const MatMulArgs* args, device const A* a, device const B* b, device const C* bias,
                            device const A* residual, device A* out, Ids ids) {
  constexpr uint COLUMNS = 4;
  uint columns = args->n;
  uint rows = args->m;
  uint k = args->k;
  uint tile = ids.group % args->column_tiles;
  MatMulPlaces places = matmul_places(args, ids.group / args->column_tiles);
  uint first_column = (tile * ids.simds + ids.simd) * COLUMNS;
  // All lanes of a simdgroup leave together.
  if (first_column >= columns) return;

  // Beyond the last row or column the last one is taken again, whose sums are dropped.
  ulong a_rows[ROWS];
  ulong b_rows[COLUMNS];
  float sums[ROWS][COLUMNS];
  UNROLL for (uint i = 0; i < ROWS; i++) {
    a_rows[i] = places.a + ulong(min(i, rows - 1)) * args->a_row;
    UNROLL for (uint j = 0; j < COLUMNS; j++) sums[i][j] = 0.0f;
  }
  UNROLL for (uint j = 0; j < COLUMNS; j++) b_rows[j] = places.b + ulong(min(first_column + j, columns - 1)) * args->b_row;

  for (uint step = ids.lane; step < k; step += 32) {
    float left[ROWS];
    UNROLL for (uint i = 0; i < ROWS; i++) left[i] = float(a[a_rows[i] + step]);
    UNROLL for (uint j = 0; j < COLUMNS; j++) {
      float right = float(b[b_rows[j] + step]);
      UNROLL for (uint i = 0; i < ROWS; i++) sums[i][j] += left[i] * right;
    }
  }

  // Each result ends at a lane of its own.
  float mine = 0.0f;
  UNROLL for (uint i = 0; i < ROWS; i++) {
    UNROLL for (uint j = 0; j < COLUMNS; j++) {
      float sum = simd_sum(sums[i][j]);
      if (ids.lane == i * COLUMNS + j) mine = sum;
    }
  }
  uint row = ids.lane / COLUMNS;
  uint column = first_column + ids.lane % COLUMNS;
  if (row < ROWS && row < rows && column < columns) {
    matmul_finish(args, places, bias, residual, out, row, column, mine);
  }
}
