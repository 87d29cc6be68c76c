// add_layer_norm: the residual sum, rounded to its dtype, and the norm of what was rounded.
template <typename T, typename W>
inline void add_layer_norm(device const LayerNormArgs* args, device const T* x, device const T* residual,
                           device const W* weight, device const W* bias, device T* sum, device T* out,
                           threadgroup float* scratch, Ids ids) {
  uint width = args->width;
  ulong from = ulong(ids.group) * args->x_row;
  ulong beside = ulong(ids.group) * args->residual_row;
  ulong to = ulong(ids.group) * width;
  // A thread reads back only what it wrote itself, so no barrier is needed.
  for (uint k = ids.thread_index; k < width; k += ids.threads) {
    sum[to + k] = T(float(x[from + k]) + float(residual[beside + k]));
  }
  layer_norm_row(args, sum + to, weight, bias, out + to, scratch, ids);
}
