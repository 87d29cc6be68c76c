// What a simdgroup holds together: matrices, and the calls on them since its lanes last met.
#pragma once
#include <cstdint>

constexpr uint32_t MAX_MATRICES = 256;

struct MatrixCall {
  uint32_t kind, line;
  uint32_t matrices[4];
  uint64_t pointer;  // or the bits of a value
  uint64_t row_stride;
};

struct SimdMatrices {
  float elems[MAX_MATRICES][64];
  bool filled[MAX_MATRICES];
  MatrixCall* calls;
  uint32_t count, room;
};

struct Fiber;

// All lanes of a simdgroup have come to a barrier, to another function of the simdgroup, or to their end. Whether they came
// through the same calls on matrices.
bool sim_matrices_met(uint32_t simd, Fiber* lanes);
