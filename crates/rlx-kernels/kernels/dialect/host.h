// The dialect on the host: what kernels see when the simulator runs them, or when only their syntax is checked.
// Self-contained, so that no name of the host's own headers can be used by mistake.

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

// Address spaces as types of their own, where only the syntax is checked: C++ for OpenCL has them and refuses casts
// between them; C++ with attributes refuses what else MSL refuses.
#if defined(__OPENCL_CPP_VERSION__)
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#define device __global
#define constant __constant
#define threadgroup __local
#define thread __private
#else
typedef _Float16 half;
#define thread
#if defined(STRICT_SPACES)
#define device __attribute__((address_space(1)))
#define constant const __attribute__((address_space(2)))
#define threadgroup __attribute__((address_space(3)))
#else
#define device
#define constant const
#define threadgroup
#endif
#endif

#undef INFINITY
#undef NAN
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")

// Before a loop whose index picks registers.
#define UNROLL

#define CHECK_SIZE(type, bytes) static_assert(sizeof(type) == bytes, #type " differs from its Rust twin")
#define CHECK_OFFSET(type, field, bytes) static_assert(__builtin_offsetof(type, field) == bytes, #type "." #field)

// The simulator's runtime: `line` tells places in the source apart, since all threads must meet at the same one.
extern "C" void sim_barrier(uint flags, uint line);
extern "C" void sim_simd_barrier(uint flags, uint line);
extern "C" uint sim_simd(uint op, uint value, uint operand, uint line);

enum SimFlags : uint { SIM_THREADGROUP = 1, SIM_DEVICE = 2 };
enum SimOp : uint {
  SIM_SUM_F32,
  SIM_MAX_F32,
  SIM_MIN_F32,
  SIM_SUM_U32,
  SIM_MAX_I32,
  SIM_MIN_I32,
  SIM_MAX_U32,
  SIM_MIN_U32,
  SIM_SHUFFLE,
  SIM_SHUFFLE_XOR,
  SIM_SHUFFLE_DOWN,
  SIM_SHUFFLE_UP,
  SIM_BALLOT,
};

#define HERE uint line = __builtin_LINE()

inline void barrier_threadgroup(HERE) { sim_barrier(SIM_THREADGROUP, line); }
inline void barrier_device(HERE) { sim_barrier(SIM_DEVICE, line); }
inline void simd_barrier(HERE) { sim_simd_barrier(SIM_THREADGROUP, line); }

inline float as_float_bits(uint bits) { return __builtin_bit_cast(float, bits); }
inline uint as_uint_bits(float value) { return __builtin_bit_cast(uint, value); }

inline float simd_sum(float v, HERE) { return as_float_bits(sim_simd(SIM_SUM_F32, as_uint_bits(v), 0, line)); }
inline float simd_max(float v, HERE) { return as_float_bits(sim_simd(SIM_MAX_F32, as_uint_bits(v), 0, line)); }
inline float simd_min(float v, HERE) { return as_float_bits(sim_simd(SIM_MIN_F32, as_uint_bits(v), 0, line)); }
inline uint simd_sum(uint v, HERE) { return sim_simd(SIM_SUM_U32, v, 0, line); }
inline uint simd_max(uint v, HERE) { return sim_simd(SIM_MAX_U32, v, 0, line); }
inline uint simd_min(uint v, HERE) { return sim_simd(SIM_MIN_U32, v, 0, line); }
inline int simd_sum(int v, HERE) { return int(sim_simd(SIM_SUM_U32, uint(v), 0, line)); }
inline int simd_max(int v, HERE) { return int(sim_simd(SIM_MAX_I32, uint(v), 0, line)); }
inline int simd_min(int v, HERE) { return int(sim_simd(SIM_MIN_I32, uint(v), 0, line)); }

inline uint simd_shuffle(uint v, ushort lane, HERE) { return sim_simd(SIM_SHUFFLE, v, lane, line); }
inline uint simd_shuffle_xor(uint v, ushort mask, HERE) { return sim_simd(SIM_SHUFFLE_XOR, v, mask, line); }
inline uint simd_shuffle_down(uint v, ushort delta, HERE) { return sim_simd(SIM_SHUFFLE_DOWN, v, delta, line); }
inline uint simd_shuffle_up(uint v, ushort delta, HERE) { return sim_simd(SIM_SHUFFLE_UP, v, delta, line); }
inline uint simd_broadcast(uint v, ushort lane, HERE) { return sim_simd(SIM_SHUFFLE, v, lane, line); }
inline float simd_shuffle(float v, ushort lane, HERE) {
  return as_float_bits(sim_simd(SIM_SHUFFLE, as_uint_bits(v), lane, line));
}
inline int simd_shuffle_xor(int v, ushort mask, HERE) { return int(sim_simd(SIM_SHUFFLE_XOR, uint(v), mask, line)); }
inline float simd_shuffle_xor(float v, ushort mask, HERE) {
  return as_float_bits(sim_simd(SIM_SHUFFLE_XOR, as_uint_bits(v), mask, line));
}
inline float simd_shuffle_down(float v, ushort delta, HERE) {
  return as_float_bits(sim_simd(SIM_SHUFFLE_DOWN, as_uint_bits(v), delta, line));
}
inline float simd_shuffle_up(float v, ushort delta, HERE) {
  return as_float_bits(sim_simd(SIM_SHUFFLE_UP, as_uint_bits(v), delta, line));
}
inline float simd_broadcast(float v, ushort lane, HERE) {
  return as_float_bits(sim_simd(SIM_SHUFFLE, as_uint_bits(v), lane, line));
}
inline uint simd_ballot_mask(bool value, HERE) { return sim_simd(SIM_BALLOT, value ? 1u : 0u, 0, line); }

// Matrices of 8 x 8 elements that a simdgroup holds together. The simulator keeps the elements, and gives to each of them a
// lane that owns it, in an order that changes from dispatch to dispatch; a thread knows only the matrix's number.
extern "C" uint sim_matrix_new();
extern "C" void sim_matrix_drop();
extern "C" void sim_matrix_fill(uint matrix, float value, uint line);
extern "C" void sim_matrix_multiply_accumulate(uint d, uint a, uint b, uint c, uint line);

template <typename T>
struct simd_matrix {
  uint number;
  simd_matrix() : number(sim_matrix_new()) {}
  ~simd_matrix() { sim_matrix_drop(); }
  // Elements move through memory and products only.
  simd_matrix(const simd_matrix&) = delete;
  simd_matrix& operator=(const simd_matrix&) = delete;
};

inline void matrix_fill(thread simd_matrix<float>& m, float value, HERE) { sim_matrix_fill(m.number, value, line); }
inline void matrix_fill(thread simd_matrix<half>& m, half value, HERE) { sim_matrix_fill(m.number, float(value), line); }

#define MATRIX_MEMORY(space, T, name)                                                                           \
  extern "C" void sim_matrix_load_##name(uint matrix, space const T* from, ulong row_stride, bool turn, uint line); \
  extern "C" void sim_matrix_store_##name(uint matrix, space T* to, ulong row_stride, uint line);                  \
  inline void matrix_load(thread simd_matrix<T>& m, space const T* from, ulong row_stride, HERE) {              \
    sim_matrix_load_##name(m.number, from, row_stride, false, line);                                            \
  }                                                                                                             \
  inline void matrix_load_transposed(thread simd_matrix<T>& m, space const T* from, ulong row_stride, HERE) {   \
    sim_matrix_load_##name(m.number, from, row_stride, true, line);                                             \
  }                                                                                                             \
  inline void matrix_store(thread simd_matrix<T>& m, space T* to, ulong row_stride, HERE) {                     \
    sim_matrix_store_##name(m.number, to, row_stride, line);                                                    \
  }

MATRIX_MEMORY(device, float, f32)
MATRIX_MEMORY(device, half, f16)
#if defined(__OPENCL_CPP_VERSION__) || defined(STRICT_SPACES)
MATRIX_MEMORY(threadgroup, float, threadgroup_f32)
MATRIX_MEMORY(threadgroup, half, threadgroup_f16)
#endif

template <typename T>
inline void matrix_multiply_accumulate(thread simd_matrix<float>& d, thread simd_matrix<T>& a, thread simd_matrix<T>& b,
                                       thread simd_matrix<float>& c, HERE) {
  sim_matrix_multiply_accumulate(d.number, a.number, b.number, c.number, line);
}

extern "C" {
float expf(float);
float logf(float);
float sinf(float);
float cosf(float);
float tanhf(float);
float powf(float, float);
float fmodf(float, float);
}
inline float exp(float x) { return expf(x); }
inline float log(float x) { return logf(x); }
inline float sin(float x) { return sinf(x); }
inline float cos(float x) { return cosf(x); }
inline float tanh(float x) { return tanhf(x); }
inline float pow(float x, float y) { return powf(x, y); }
inline float fmod(float x, float y) { return fmodf(x, y); }
inline float sqrt(float x) { return __builtin_sqrtf(x); }
inline float floor(float x) { return __builtin_floorf(x); }
inline float ceil(float x) { return __builtin_ceilf(x); }
inline float rint(float x) { return __builtin_rintf(x); }
inline float fabs(float x) { return __builtin_fabsf(x); }
inline uint min(uint a, uint b) { return a < b ? a : b; }
inline uint max(uint a, uint b) { return a > b ? a : b; }
inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
