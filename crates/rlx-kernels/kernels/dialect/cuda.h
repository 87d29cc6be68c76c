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

// Before a loop whose index picks registers.
#define UNROLL _Pragma("unroll")

#define CHECK_SIZE(type, bytes) static_assert(sizeof(type) == bytes, #type " differs from its Rust twin")
// Not every NVRTC has offsetof (13.2 has none); the host's compiler checks offsets.
#define CHECK_OFFSET(type, field, bytes)

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
// A value of NaN is not equal to itself, and gives way to the other.
template <typename V>
inline V simd_max(V v) {
  for (ushort mask = 16; mask > 0; mask >>= 1) {
    V other = simd_shuffle_xor(v, mask);
    v = v > other || other != other ? v : other;
  }
  return v;
}
template <typename V>
inline V simd_min(V v) {
  for (ushort mask = 16; mask > 0; mask >>= 1) {
    V other = simd_shuffle_xor(v, mask);
    v = v < other || other != other ? v : other;
  }
  return v;
}
inline uint simd_ballot_mask(bool value) { return __ballot_sync(ALL_LANES, value); }

// Matrices of 8 x 8 elements that a simdgroup holds together: lane l has the elements 2 l and 2 l + 1 in row-major order, as
// floats, which hold each half.
template <typename T>
struct simd_matrix {
  float held[2];
};

inline uint matrix_row() { return threadIdx.x % 32 / 4; }
inline uint matrix_column() { return threadIdx.x % 4 * 2; }

template <typename T>
inline void matrix_fill(simd_matrix<T>& m, T value) {
  m.held[0] = float(value);
  m.held[1] = float(value);
}
template <typename T>
inline void matrix_load(simd_matrix<T>& m, const T* from, ulong row_stride) {
  const T* at = from + matrix_row() * row_stride + matrix_column();
  m.held[0] = float(at[0]);
  m.held[1] = float(at[1]);
}
template <typename T>
inline void matrix_load_transposed(simd_matrix<T>& m, const T* from, ulong row_stride) {
  const T* at = from + matrix_column() * row_stride + matrix_row();
  m.held[0] = float(at[0]);
  m.held[1] = float(at[row_stride]);
}
template <typename T>
inline void matrix_store(simd_matrix<T>& m, T* to, ulong row_stride) {
  T* at = to + matrix_row() * row_stride + matrix_column();
  at[0] = T(m.held[0]);
  at[1] = T(m.held[1]);
}
template <typename T>
inline void matrix_multiply_accumulate(simd_matrix<float>& d, simd_matrix<T>& a, simd_matrix<T>& b, simd_matrix<float>& c) {
  ushort row = ushort(matrix_row() * 4);
  ushort column = ushort(matrix_column() / 2);
  float first = c.held[0];
  float second = c.held[1];
#pragma unroll
  for (ushort k = 0; k < 8; k++) {
    float left = simd_shuffle(a.held[k % 2], ushort(row + k / 2));
    first += left * simd_shuffle(b.held[0], ushort(k * 4 + column));
    second += left * simd_shuffle(b.held[1], ushort(k * 4 + column));
  }
  d.held[0] = first;
  d.held[1] = second;
}
