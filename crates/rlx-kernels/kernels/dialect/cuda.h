// The dialect on NVIDIA GPUs, for NVRTC with --device-as-default-execution-space. Self-contained: NVRTC comes without
// headers.

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

#define device
#define constant const
#define threadgroup
#define thread

#undef INFINITY
#undef NAN
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)

#define CHECK_SIZE(type, bytes) static_assert(sizeof(type) == bytes, #type " differs from its Rust twin")
#define CHECK_OFFSET(type, field, bytes) static_assert(__builtin_offsetof(type, field) == bytes, #type "." #field)

struct half {
  ushort bits;
  half() = default;
  explicit half(float v) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(v)); }
  explicit operator float() const {
    float v;
    asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(bits));
    return v;
  }
};

inline void barrier_threadgroup() { __syncthreads(); }
inline void barrier_device() { __syncthreads(); }
inline void simd_barrier() { __syncwarp(); }

inline float as_float_bits(uint bits) { return __uint_as_float(bits); }
inline uint as_uint_bits(float value) { return __float_as_uint(value); }

#define ALL_LANES 0xffffffffu

template <typename V>
inline V simd_shuffle(V v, ushort lane) {
  return __shfl_sync(ALL_LANES, v, lane);
}
template <typename V>
inline V simd_broadcast(V v, ushort lane) {
  return __shfl_sync(ALL_LANES, v, lane);
}
template <typename V>
inline V simd_shuffle_xor(V v, ushort mask) {
  return __shfl_xor_sync(ALL_LANES, v, mask);
}
template <typename V>
inline V simd_shuffle_down(V v, ushort delta) {
  return __shfl_down_sync(ALL_LANES, v, delta);
}
template <typename V>
inline V simd_shuffle_up(V v, ushort delta) {
  return __shfl_up_sync(ALL_LANES, v, delta);
}
template <typename V>
inline V simd_sum(V v) {
  for (ushort mask = 16; mask > 0; mask >>= 1) v = v + simd_shuffle_xor(v, mask);
  return v;
}
template <typename V>
inline V simd_max(V v) {
  for (ushort mask = 16; mask > 0; mask >>= 1) {
    V other = simd_shuffle_xor(v, mask);
    v = v > other ? v : other;
  }
  return v;
}
template <typename V>
inline V simd_min(V v) {
  for (ushort mask = 16; mask > 0; mask >>= 1) {
    V other = simd_shuffle_xor(v, mask);
    v = v < other ? v : other;
  }
  return v;
}
inline uint simd_ballot_mask(bool value) { return __ballot_sync(ALL_LANES, value); }
