// What products of matrices share: where a batch begins, and what follows a sum before it is rounded.

struct MatMulPlaces {
  ulong a;
  ulong b;
  ulong residual;
  ulong out;
};

// Where the first elements of a batch lie; results are dense.
inline MatMulPlaces matmul_places(device const MatMulArgs* args, uint batch) {
  MatMulPlaces places;
  places.a = 0;
  places.b = 0;
  places.residual = 0;
  places.out = ulong(batch) * args->m * args->n;
  for (uint axis = args->batch_rank; axis > 0; axis--) {
    uint size = args->batch_sizes[axis - 1];
    ulong at = batch % size;
    batch /= size;
    places.a += at * args->a_batch[axis - 1];
    places.b += at * args->b_batch[axis - 1];
    places.residual += at * args->residual_batch[axis - 1];
  }
  return places;
}

// activation(sum + bias) + residual, rounded once. `row` and `column` are within the batch.
template <typename A, typename C>
inline void matmul_finish(device const MatMulArgs* args, MatMulPlaces places, device const C* bias,
                          device const A* residual, device A* out, uint row, uint column, float sum) {
  if (args->has_bias != 0u) sum += float(bias[column]);
  sum = activate(args->activation, sum);
  if (args->has_residual != 0u) {
    sum += float(residual[places.residual + ulong(row) * args->residual_row + ulong(column) * args->residual_step]);
  }
  out[places.out + ulong(row) * args->n + column] = A(sum);
}
