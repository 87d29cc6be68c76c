// layer_norm: one threadgroup for each row. The mean is subtracted before squaring, which keeps the digits where the
// mean is large.
template <typename T, typename W>
inline void layer_norm_row(device const LayerNormArgs* args, device const T* x, device const W* weight,
                           device const W* bias, device T* out, threadgroup float* scratch, Ids ids) {
  uint width = args->width;
  float n = float(width);
  float sum = 0.0f;
  for (uint k = ids.thread_index; k < width; k += ids.threads) sum += float(x[k]);
  float mean = group_sum(sum, scratch, ids) / n;

  float squares = 0.0f;
  for (uint k = ids.thread_index; k < width; k += ids.threads) {
    float centred = float(x[k]) - mean;
    squares += centred * centred;
  }
  float inverse = 1.0f / sqrt(group_sum(squares, scratch, ids) / n + args->eps);

  bool has_bias = args->has_bias != 0u;
  for (uint k = ids.thread_index; k < width; k += ids.threads) {
    float scaled = (float(x[k]) - mean) * inverse * float(weight[k]);
    out[k] = T(has_bias ? scaled + float(bias[k]) : scaled);
  }
}

template <typename T, typename W>
inline void layer_norm(device const LayerNormArgs* args, device const T* x, device const W* weight, device const W* bias,
                       device T* out, threadgroup float* scratch, Ids ids) {
  ulong from = ulong(ids.group) * args->x_row;
  ulong to = ulong(ids.group) * args->width;
  layer_norm_row(args, x + from, weight, bias, out + to, scratch, ids);
}
