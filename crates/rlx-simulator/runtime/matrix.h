// What a simdgroup holds together: matrices, and the calls on them since its lanes last met.
#pragma once
#include <cstdint>

constexpr uint32_t MAX_MATRICES = 256;

struct MatrixCall {
  uint32_t kind, line;
  uint32_t matrices[4];
  uint64_t pointer;  // or the bits of a value
  uint64_t row_stride;

  // Field by field, since 31 of 32 calls do nothing but this.
  bool operator==(const MatrixCall& o) const {
    uint32_t places = (matrices[0] ^ o.matrices[0]) | (matrices[1] ^ o.matrices[1]) | (matrices[2] ^ o.matrices[2]) |
                      (matrices[3] ^ o.matrices[3]);
    uint64_t memory = (pointer ^ o.pointer) | (row_stride ^ o.row_stride);
    return ((kind ^ o.kind) | (line ^ o.line) | places | memory) == 0;
  }
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
