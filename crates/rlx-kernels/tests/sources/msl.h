// What the Metal texts use of MSL, declared with the signatures that Apple documents, so that clang can check them: address spaces
// are types, as in MSL. Nothing is defined, since nothing runs.
#pragma clang diagnostic ignored "-Wunknown-attributes"
#pragma clang diagnostic ignored "-Wunknown-pragmas"

#define kernel
#define device __attribute__((address_space(1)))
#define constant const __attribute__((address_space(2)))
#define threadgroup __attribute__((address_space(3)))
#define thread

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef _Float16 half;

#undef INFINITY
#undef NAN
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")

namespace metal {

struct uint3 {
  uint x, y, z;
};
struct ulong2 {
  ulong2(ulong x);
  ulong2(ulong x, ulong y);
};

template <typename To, typename From>
To as_type(From from);

enum class mem_flags { mem_none, mem_device, mem_threadgroup, mem_texture };
void threadgroup_barrier(mem_flags flags);
void simdgroup_barrier(mem_flags flags);

// For scalars of up to 32 bits.
template <typename T>
T simd_sum(T data);
template <typename T>
T simd_max(T data);
template <typename T>
T simd_min(T data);
template <typename T>
T simd_broadcast(T data, ushort lane);
template <typename T>
T simd_shuffle(T data, ushort lane);
template <typename T>
T simd_shuffle_xor(T data, ushort mask);
template <typename T>
T simd_shuffle_up(T data, ushort delta);
template <typename T>
T simd_shuffle_down(T data, ushort delta);

class simd_vote {
 public:
  typedef ulong vote_t;
  explicit simd_vote(vote_t v = 0);
  explicit operator vote_t() const;
  bool all() const;
  bool any() const;
};
simd_vote simd_ballot(bool expression);

// Common and math functions, for both float types.
#define OF_ONE(name) \
  half name(half x); \
  float name(float x);
#define OF_TWO(name)         \
  half name(half x, half y); \
  float name(float x, float y);
OF_ONE(exp)
OF_ONE(log)
OF_ONE(sin)
OF_ONE(cos)
OF_ONE(tanh)
OF_ONE(sqrt)
OF_ONE(floor)
OF_ONE(ceil)
OF_ONE(rint)
OF_ONE(fabs)
OF_TWO(pow)
OF_TWO(fmod)
OF_TWO(min)
OF_TWO(max)

#define OF_INTEGERS(T) \
  T min(T x, T y);     \
  T max(T x, T y);
OF_INTEGERS(char)
OF_INTEGERS(uchar)
OF_INTEGERS(short)
OF_INTEGERS(ushort)
OF_INTEGERS(int)
OF_INTEGERS(uint)
OF_INTEGERS(long)
OF_INTEGERS(ulong)

// Matrices of a simdgroup: 8 x 8 is the one size that there is.
template <typename T, int Cols, int Rows>
struct simdgroup_matrix {
  simdgroup_matrix();
  explicit simdgroup_matrix(T diagonal);
};

template <typename T, int Cols, int Rows>
simdgroup_matrix<T, Cols, Rows> make_filled_simdgroup_matrix(T value);

#define OF_SPACE(space)                                                                                                \
  template <typename T, int Cols, int Rows>                                                                           \
  void simdgroup_load(thread simdgroup_matrix<T, Cols, Rows>& d, space const T* src, ulong elements_per_row = Cols,    \
                      ulong2 matrix_origin = 0, bool transpose_matrix = false);                                        \
  template <typename T, int Cols, int Rows>                                                                           \
  void simdgroup_store(thread simdgroup_matrix<T, Cols, Rows> a, space T* dst, ulong elements_per_row = Cols,          \
                       ulong2 matrix_origin = 0, bool transpose_matrix = false);
OF_SPACE(device)
OF_SPACE(threadgroup)

// The documented form has one type for all; kernels in the field pass half operands beside float sums.
template <typename D, typename A, typename B, typename C, int Cols, int K, int Rows>
void simdgroup_multiply_accumulate(thread simdgroup_matrix<D, Cols, Rows>& d, thread simdgroup_matrix<A, K, Rows>& a,
                                   thread simdgroup_matrix<B, Cols, K>& b, thread simdgroup_matrix<C, Cols, Rows>& c);

}  // namespace metal
