// Reductions over a threadgroup. `scratch` holds one element for each simdgroup, 32 at most; every thread calls.

// simd_max drops NaN on some targets.
inline float simd_max_or_nan(float v) {
  bool nan = simd_ballot_mask(v != v) != 0u;
  float most = simd_max(v != v ? -INFINITY : v);
  return nan ? NAN : most;
}

inline float group_sum(float v, threadgroup float* scratch, Ids ids) {
  v = simd_sum(v);
  if (ids.simds == 1) return v;
  // The last reduction's values may still be read.
  barrier_threadgroup();
  if (ids.lane == 0) scratch[ids.simd] = v;
  barrier_threadgroup();
  return simd_sum(ids.lane < ids.simds ? scratch[ids.lane] : 0.0f);
}

inline float group_max_or_nan(float v, threadgroup float* scratch, Ids ids) {
  v = simd_max_or_nan(v);
  if (ids.simds == 1) return v;
  barrier_threadgroup();
  if (ids.lane == 0) scratch[ids.simd] = v;
  barrier_threadgroup();
  return simd_max_or_nan(ids.lane < ids.simds ? scratch[ids.lane] : -INFINITY);
}
