// The dialect on Apple GPUs. Its words for address spaces are those of MSL.
#include <metal_simdgroup_matrix>
#include <metal_stdlib>
using namespace metal;

// Before a loop whose index picks registers.
#define UNROLL _Pragma("clang loop unroll(full)")

#define CHECK_SIZE(type, bytes) static_assert(sizeof(type) == bytes, #type " differs from its Rust twin")
#define CHECK_OFFSET(type, field, bytes)

inline void barrier_threadgroup() { threadgroup_barrier(mem_flags::mem_threadgroup); }
inline void barrier_device() { threadgroup_barrier(mem_flags::mem_device); }
inline void simd_barrier() { simdgroup_barrier(mem_flags::mem_threadgroup); }

inline uint simd_ballot_mask(bool value) { return uint(static_cast<simd_vote::vote_t>(simd_ballot(value))); }

inline float as_float_bits(uint bits) { return as_type<float>(bits); }
inline uint as_uint_bits(float value) { return as_type<uint>(value); }

// Matrices of 8 x 8 elements that a simdgroup holds together, in an order that is the hardware's own.
template <typename T>
using simd_matrix = simdgroup_matrix<T, 8, 8>;

template <typename T>
inline void matrix_fill(thread simd_matrix<T>& m, T value) {
  m = make_filled_simdgroup_matrix<T, 8, 8>(value);
}
template <typename T>
inline void matrix_load(thread simd_matrix<T>& m, device const T* from, ulong row_stride) {
  simdgroup_load(m, from, row_stride);
}
template <typename T>
inline void matrix_load(thread simd_matrix<T>& m, threadgroup const T* from, ulong row_stride) {
  simdgroup_load(m, from, row_stride);
}
template <typename T>
inline void matrix_load_transposed(thread simd_matrix<T>& m, device const T* from, ulong row_stride) {
  simdgroup_load(m, from, row_stride, ulong2(0, 0), true);
}
template <typename T>
inline void matrix_load_transposed(thread simd_matrix<T>& m, threadgroup const T* from, ulong row_stride) {
  simdgroup_load(m, from, row_stride, ulong2(0, 0), true);
}
template <typename T>
inline void matrix_store(thread simd_matrix<T>& m, device T* to, ulong row_stride) {
  simdgroup_store(m, to, row_stride);
}
template <typename T>
inline void matrix_store(thread simd_matrix<T>& m, threadgroup T* to, ulong row_stride) {
  simdgroup_store(m, to, row_stride);
}
template <typename T>
inline void matrix_multiply_accumulate(thread simd_matrix<float>& d, thread simd_matrix<T>& a, thread simd_matrix<T>& b,
                                       thread simd_matrix<float>& c) {
  simdgroup_multiply_accumulate(d, a, b, c);
}
