// rms_norm: one threadgroup for each row.
template <typename T, typename W>
inline void rms_norm_row(device const RmsNormArgs* args, device const T* x, device const W* weight, device T* out,
                         threadgroup float* scratch, Ids ids) {
  uint width = args->width;
  float squares = 0.0f;
  for (uint k = ids.thread_index; k < width; k += ids.threads) {
    float v = float(x[k]);
    squares += v * v;
  }
  float inverse = 1.0f / sqrt(group_sum(squares, scratch, ids) / float(width) + args->eps);
  // 1 where the stored weights are around 0.
  float offset = args->weight_offset;
  for (uint k = ids.thread_index; k < width; k += ids.threads) {
    out[k] = T(float(x[k]) * inverse * (offset + float(weight[k])));
  }
}

template <typename T, typename W>
inline void rms_norm(device const RmsNormArgs* args, device const T* x, device const W* weight, device T* out,
                     threadgroup float* scratch, Ids ids) {
  ulong from = ulong(ids.group) * args->x_row;
  ulong to = ulong(ids.group) * args->width;
  rms_norm_row(args, x + from, weight, out + to, scratch, ids);
}
