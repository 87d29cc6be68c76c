// pool: one threadgroup for each sequence, one thread for every so many columns. MODE follows the order of
// `PoolMode::WORDS` in rlx-ir: 0 mean, 1 cls, 2 last, 3 max.
template <typename T, uint MODE>
inline T pool_column(device const T* x, ulong row, uint first, uint end) {
  if (first >= end) return T(0.0f);
  if (MODE == 1) return x[ulong(first) * row];
  if (MODE == 2) return x[ulong(end - 1) * row];
  float v = MODE == 3 ? -INFINITY : 0.0f;
  for (uint token = first; token < end; token++) {
    float next = float(x[ulong(token) * row]);
    v = MODE == 3 ? max_or_nan(v, next) : v + next;
  }
  return T(MODE == 3 ? v : v / float(end - first));
}

template <typename T, uint MODE>
inline void pool_rows(device const PoolArgs* args, device const T* x, device const int* starts, device T* out, Ids ids) {
  uint width = args->width;
  // Starts that leave the tokens are an error of the caller; they must not become reads outside of x.
  uint first = min(uint(max(starts[ids.group], 0)), args->tokens);
  uint end = min(uint(max(starts[ids.group + 1], 0)), args->tokens);
  ulong to = ulong(ids.group) * width;
  for (uint column = ids.thread_index; column < width; column += ids.threads) {
    out[to + column] = pool_column<T, MODE>(x + column, args->x_row, first, end);
  }
}

template <typename T, uint MODE>
inline void pool(device const PoolArgs* args, device const T* x, device const int* starts, device T* out, Ids ids) {
  pool_rows<T, MODE>(args, x, starts, out, ids);
}

// pool, rounded, and l2_normalize of what was rounded. A thread reads back only what it wrote itself.
template <typename T, uint MODE>
inline void pool_l2_normalize(device const PoolArgs* args, device const T* x, device const int* starts, device T* out,
                              threadgroup float* scratch, Ids ids) {
  pool_rows<T, MODE>(args, x, starts, out, ids);
  ulong to = ulong(ids.group) * args->width;
  l2_normalize_row(out + to, out + to, args->width, args->eps, scratch, ids);
}
