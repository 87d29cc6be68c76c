// Matrices of 8 x 8 elements that a simdgroup holds together.
//
// All lanes must call the same functions with the same arguments, so the first lane that comes does the work, and the others
// are compared with it: nobody waits. That is one of the orders that hardware may take, since memory that lanes share is
// ordered by barriers alone, and before a barrier lets them go on all lanes must have come to the same calls.

#include "matrix.h"

#include <immintrin.h>

#include <cstdlib>
#include <cstring>

#include "fibers.h"
#include "hooks.h"

namespace {

constexpr uint32_t SIDE = 8;
constexpr uint32_t ELEMS = SIDE * SIDE;

enum Kind : uint32_t { FILL, LOAD_F32, LOAD_F16, STORE_F32, STORE_F16, MULTIPLY_ACCUMULATE };

constexpr uint32_t TURNED = 1;

SimdMatrices& own() { return *running.current->simd_matrices; }

void remember(SimdMatrices& m, const MatrixCall& call) {
  if (m.count == m.room) {
    m.room = m.room == 0 ? 1024 : m.room * 2;
    m.calls = static_cast<MatrixCall*>(realloc(m.calls, m.room * sizeof(MatrixCall)));
    if (m.calls == nullptr) abort();
  }
  m.calls[m.count++] = call;
  running.counts.simd_ops++;
}

void differs(const MatrixCall& call, const MatrixCall& other) {
  uint32_t simd = running.thread / SIMD_WIDTH, lane = running.thread % SIMD_WIDTH;
  if (call.line != other.line || call.kind != other.kind) {
    fail(SIMD_NOT_REACHED, "simdgroup %u: lane %u is at line %u of the text, another lane at line %u", simd, lane, call.line,
         other.line);
  } else {
    fail(NOT_UNIFORM, "simdgroup %u: at line %u of the text, lane %u passes other arguments than another lane", simd,
         call.line, lane);
  }
  sim_leave();
}

// Whether the lane that runs is the first to come to this call.
inline __attribute__((always_inline)) bool first(const MatrixCall& call) {
  Fiber* self = running.current;
  SimdMatrices& m = *self->simd_matrices;
  uint32_t at = self->matrix_calls++;
  if (at == m.count) {
    remember(m, call);
    return true;
  }
  if (!(call == m.calls[at])) differs(call, m.calls[at]);
  return false;
}

float* elements(uint32_t matrix) { return own().elems[matrix]; }

// The elements of a matrix that holds some.
const float* filled(uint32_t matrix, uint32_t line) {
  if (!own().filled[matrix]) {
    fail(UNWRITTEN, "threadgroup %u, simdgroup %u uses a matrix that nobody filled at line %u of the text", running.group,
         running.thread / SIMD_WIDTH, line);
    sim_leave();
  }
  return elements(matrix);
}

// Each element is touched by the lane that owns it.
template <typename T>
void touch(T* from, uint64_t row_stride, bool write) {
  if (!running.dispatch->hooked) return;
  uint32_t thread = running.thread, first_lane = thread / SIMD_WIDTH * SIMD_WIDTH;
  for (uint32_t i = 0; i < ELEMS; i++) {
    running.thread = first_lane + running.matrix_owners[i];
    sim_hook(from + i / SIDE * row_stride + i % SIDE, sizeof(T), write);
  }
  running.thread = thread;
}

__m256 row_of(const float* from) { return _mm256_loadu_ps(from); }
__m256 row_of(const uint16_t* from) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}

void transpose(float* m) {
  for (uint32_t row = 0; row < SIDE; row++) {
    for (uint32_t column = 0; column < row; column++) {
      float kept = m[row * SIDE + column];
      m[row * SIDE + column] = m[column * SIDE + row];
      m[column * SIDE + row] = kept;
    }
  }
}

template <typename T>
void load(uint32_t kind, uint32_t matrix, const T* from, uint64_t row_stride, bool turned, uint32_t line) {
  if (!first({kind, line, {matrix, turned ? TURNED : 0, 0, 0}, reinterpret_cast<uint64_t>(from), row_stride})) return;
  touch(from, row_stride, false);
  float* m = elements(matrix);
  for (uint32_t row = 0; row < SIDE; row++) _mm256_storeu_ps(m + row * SIDE, row_of(from + row * row_stride));
  if (turned) transpose(m);
  own().filled[matrix] = true;
}

}  // namespace

extern "C" uint32_t sim_matrix_new() {
  Fiber* self = running.current;
  uint32_t matrix = self->matrices++;
  if (matrix >= MAX_MATRICES) {
    fail(SIMD_NOT_REACHED, "a simdgroup holds more than %u matrices", MAX_MATRICES);
    sim_leave();
  }
  // A lane that comes later must not undo what the first one has done since.
  if (self->matrix_calls == own().count) own().filled[matrix] = false;
  return matrix;
}

extern "C" void sim_matrix_drop() { running.current->matrices--; }

extern "C" void sim_matrix_fill(uint32_t matrix, float value, uint32_t line) {
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof value);
  if (!first({FILL, line, {matrix, 0, 0, 0}, bits, 0})) return;
  float* m = elements(matrix);
  for (uint32_t i = 0; i < ELEMS; i++) m[i] = value;
  own().filled[matrix] = true;
}

extern "C" void sim_matrix_load_f32(uint32_t matrix, const float* from, uint64_t row_stride, bool turned, uint32_t line) {
  load(LOAD_F32, matrix, from, row_stride, turned, line);
}

extern "C" void sim_matrix_load_f16(uint32_t matrix, const uint16_t* from, uint64_t row_stride, bool turned, uint32_t line) {
  load(LOAD_F16, matrix, from, row_stride, turned, line);
}

extern "C" void sim_matrix_store_f32(uint32_t matrix, float* to, uint64_t row_stride, uint32_t line) {
  if (!first({STORE_F32, line, {matrix, 0, 0, 0}, reinterpret_cast<uint64_t>(to), row_stride})) return;
  const float* m = filled(matrix, line);
  touch(to, row_stride, true);
  for (uint32_t row = 0; row < SIDE; row++) memcpy(to + row * row_stride, m + row * SIDE, SIDE * sizeof(float));
}

extern "C" void sim_matrix_store_f16(uint32_t matrix, uint16_t* to, uint64_t row_stride, uint32_t line) {
  if (!first({STORE_F16, line, {matrix, 0, 0, 0}, reinterpret_cast<uint64_t>(to), row_stride})) return;
  const float* m = filled(matrix, line);
  touch(to, row_stride, true);
  for (uint32_t row = 0; row < SIDE; row++) {
    __m128i halves = _mm256_cvtps_ph(row_of(m + row * SIDE), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + row * row_stride), halves);
  }
}

extern "C" void sim_matrix_multiply_accumulate(uint32_t d, uint32_t a, uint32_t b, uint32_t c, uint32_t line) {
  if (!first({MULTIPLY_ACCUMULATE, line, {d, a, b, c}, 0, 0})) return;
  const float* left = filled(a, line);
  const float* right = filled(b, line);
  const float* addend = filled(c, line);
  // The result may be one of the operands.
  __m256 rows[SIDE];
  for (uint32_t row = 0; row < SIDE; row++) {
    rows[row] = row_of(addend + row * SIDE);
    for (uint32_t k = 0; k < SIDE; k++) {
      __m256 product = _mm256_mul_ps(_mm256_set1_ps(left[row * SIDE + k]), row_of(right + k * SIDE));
      rows[row] = _mm256_add_ps(rows[row], product);
    }
  }
  for (uint32_t row = 0; row < SIDE; row++) _mm256_storeu_ps(elements(d) + row * SIDE, rows[row]);
  own().filled[d] = true;
}

bool sim_matrices_met(uint32_t simd, Fiber* lanes) {
  SimdMatrices& m = running.matrices[simd];
  if (m.count == 0) return true;
  for (uint32_t i = 0; i < SIMD_WIDTH; i++) {
    if (lanes[i].matrix_calls != m.count) {
      uint32_t line = m.calls[lanes[i].matrix_calls].line;
      fail(SIMD_NOT_REACHED, "simdgroup %u: lane %u never came to the matrix of line %u of the text", simd, i, line);
      return false;
    }
  }
  for (uint32_t i = 0; i < SIMD_WIDTH; i++) lanes[i].matrix_calls = 0;
  m.count = 0;
  return true;
}
