// add_rms_norm: the residual sum, rounded to its dtype, and the norm of what was rounded.
template <typename T, typename W>
inline void add_rms_norm(device const RmsNormArgs* args, device const T* x, device const T* residual,
                         device const W* weight, device T* sum, device T* out, threadgroup float* scratch, Ids ids) {
  uint width = args->width;
  ulong from = ulong(ids.group) * args->x_row;
  ulong beside = ulong(ids.group) * args->residual_row;
  ulong to = ulong(ids.group) * width;
  // A thread reads back only what it wrote itself, so no barrier is needed.
  for (uint k = ids.thread_index; k < width; k += ids.threads) {
    sum[to + k] = T(float(x[from + k]) + float(residual[beside + k]));
  }
  rms_norm_row(args, sum + to, weight, out + to, scratch, ids);
}
