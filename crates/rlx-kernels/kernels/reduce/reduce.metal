// reduce_sum, reduce_max, ...: KIND is the reduction, A what is accumulated in. Any axes may be reduced: the axes that are
// kept and those that are reduced are walked by strides of their own.

inline float reduce_join_sum(float a, float b) { return a + b; }
inline int reduce_join_sum(int a, int b) { return wrap_add(a, b); }
inline uint reduce_join_sum(uint a, uint b) { return a + b; }
inline float reduce_join_prod(float a, float b) { return a * b; }
inline int reduce_join_prod(int a, int b) { return wrap_mul(a, b); }
inline uint reduce_join_prod(uint a, uint b) { return a * b; }
inline float reduce_join_max(float a, float b) { return max_or_nan(a, b); }
inline int reduce_join_max(int a, int b) { return max(a, b); }
inline uint reduce_join_max(uint a, uint b) { return max(a, b); }
inline float reduce_join_min(float a, float b) { return min_or_nan(a, b); }
inline int reduce_join_min(int a, int b) { return min(a, b); }
inline uint reduce_join_min(uint a, uint b) { return min(a, b); }

inline float reduce_lowest(float) { return -INFINITY; }
inline int reduce_lowest(int v) { return lowest_of(v); }
inline uint reduce_lowest(uint v) { return lowest_of(v); }
inline float reduce_highest(float) { return INFINITY; }
inline int reduce_highest(int v) { return highest_of(v); }
inline uint reduce_highest(uint v) { return highest_of(v); }

// 0 sum, 1 max, 2 min, 3 mean, 4 prod: the order of `ReduceKind` in rlx-ir.
template <uint KIND, typename A>
inline A reduce_join(A a, A b) {
  if (KIND == 1) return reduce_join_max(a, b);
  if (KIND == 2) return reduce_join_min(a, b);
  if (KIND == 4) return reduce_join_prod(a, b);
  return reduce_join_sum(a, b);
}

template <uint KIND, typename A>
inline A reduce_first() {
  if (KIND == 1) return reduce_lowest(A(0));
  if (KIND == 2) return reduce_highest(A(0));
  if (KIND == 4) return A(1);
  return A(0);
}

inline ulong reduce_place(uint index, uint rank, device const uint* sizes, device const uint* strides) {
  ulong place = 0;
  for (uint axis = rank; axis > 0; axis--) {
    uint size = sizes[axis - 1];
    place += ulong(index % size) * strides[axis - 1];
    index /= size;
  }
  return place;
}

template <uint KIND, typename A>
inline A reduce_simd(A v) {
  for (ushort mask = 16; mask > 0; mask >>= 1) v = reduce_join<KIND>(v, simd_shuffle_xor(v, mask));
  return v;
}

// One threadgroup for each result.
template <typename T, uint KIND, typename A>
inline void reduce_rows(device const ReduceArgs* args, device const T* x, device T* out, threadgroup A* scratch, Ids ids) {
  uint count = args->count;
  ulong from = reduce_place(ids.group, args->kept_rank, args->kept_sizes, args->kept_strides);
  A v = reduce_first<KIND, A>();
  for (uint k = ids.thread_index; k < count; k += ids.threads) {
    ulong at = from + reduce_place(k, args->reduced_rank, args->reduced_sizes, args->reduced_strides);
    v = reduce_join<KIND>(v, A(x[at]));
  }
  v = reduce_simd<KIND>(v);
  if (ids.simds > 1) {
    if (ids.lane == 0) scratch[ids.simd] = v;
    barrier_threadgroup();
    v = reduce_simd<KIND>(ids.lane < ids.simds ? scratch[ids.lane] : reduce_first<KIND, A>());
  }
  if (KIND == 3) v = v / A(count);
  if (ids.thread_index == 0) out[ids.group] = T(v);
}

// One thread for each result: neighbours read neighbours where the axis that is kept last is dense.
template <typename T, uint KIND, typename A>
inline void reduce_columns(device const ReduceArgs* args, device const T* x, device T* out, Ids ids) {
  uint index = ids.group * ids.threads + ids.thread_index;
  if (index >= args->outputs) return;
  uint count = args->count;
  ulong from = reduce_place(index, args->kept_rank, args->kept_sizes, args->kept_strides);
  A v = reduce_first<KIND, A>();
  for (uint k = 0; k < count; k++) {
    ulong at = from + reduce_place(k, args->reduced_rank, args->reduced_sizes, args->reduced_strides);
    v = reduce_join<KIND>(v, A(x[at]));
  }
  if (KIND == 3) v = v / A(count);
  out[index] = T(v);
}
