// l2_normalize: one threadgroup for each row.
template <typename T>
inline void l2_normalize_row(device const T* x, device T* out, uint width, float eps, threadgroup float* scratch, Ids ids) {
  float squares = 0.0f;
  for (uint k = ids.thread_index; k < width; k += ids.threads) {
    float v = float(x[k]);
    squares += v * v;
  }
  float length = sqrt(group_sum(squares, scratch, ids));
  // A length of NaN stays.
  float divisor = length < eps ? eps : length;
  for (uint k = ids.thread_index; k < width; k += ids.threads) out[k] = T(float(x[k]) / divisor);
}

template <typename T>
inline void l2_normalize(device const L2NormalizeArgs* args, device const T* x, device T* out, threadgroup float* scratch,
                         Ids ids) {
  uint width = args->width;
  l2_normalize_row(x + ulong(ids.group) * args->x_row, out + ulong(ids.group) * width, width, args->eps, scratch, ids);
}
