// The dialect on Apple GPUs. Its words for address spaces are those of MSL.
#include <metal_stdlib>
using namespace metal;

#define CHECK_SIZE(type, bytes) static_assert(sizeof(type) == bytes, #type " differs from its Rust twin")
#define CHECK_OFFSET(type, field, bytes)

inline void barrier_threadgroup() { threadgroup_barrier(mem_flags::mem_threadgroup); }
inline void barrier_device() { threadgroup_barrier(mem_flags::mem_device); }
inline void simd_barrier() { simdgroup_barrier(mem_flags::mem_threadgroup); }

inline uint simd_ballot_mask(bool value) { return uint(static_cast<simd_vote::vote_t>(simd_ballot(value))); }

inline float as_float_bits(uint bits) { return as_type<float>(bits); }
inline uint as_uint_bits(float value) { return as_type<uint>(value); }
