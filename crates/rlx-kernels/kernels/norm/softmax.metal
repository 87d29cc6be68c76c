// softmax: one threadgroup for each row along the axis; `inner` rows lie interleaved where the axis is not the last.
template <typename T>
inline void softmax(device const SoftmaxArgs* args, device const T* x, device T* out, threadgroup float* scratch,
                    Ids ids) {
  uint width = args->width;
  uint inner = args->inner;
  uint x_step = args->x_step;
  float scale = args->scale;
  uint outer = ids.group / inner;
  uint within = ids.group % inner;
  ulong from = ulong(outer) * args->x_outer + ulong(within) * args->x_inner;
  ulong to = ulong(outer) * width * inner + within;

  float most = -INFINITY;
  for (uint k = ids.thread_index; k < width; k += ids.threads) {
    most = max_or_nan(most, float(x[from + ulong(k) * x_step]) * scale);
  }
  most = group_max_or_nan(most, scratch, ids);
  // Minus infinity less itself would be NaN; a row of nothing else is all zeros.
  bool empty = most == -INFINITY;

  float sum = 0.0f;
  for (uint k = ids.thread_index; k < width; k += ids.threads) {
    sum += empty ? 0.0f : exp(float(x[from + ulong(k) * x_step]) * scale - most);
  }
  sum = group_sum(sum, scratch, ids);

  for (uint k = ids.thread_index; k < width; k += ids.threads) {
    float weight = empty ? 0.0f : exp(float(x[from + ulong(k) * x_step]) * scale - most) / sum;
    out[to + ulong(k) * inner] = T(weight);
  }
}
