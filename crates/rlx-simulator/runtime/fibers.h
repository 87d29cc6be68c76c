// The threads of one threadgroup as fibers, and the dispatch that is running on this thread of the host.
#pragma once
#include "matrix.h"
#include "sim.h"

enum class State : uint8_t { READY, AT_BARRIER, AT_SIMD_BARRIER, AT_SIMD, DONE };

struct Fiber {
  void* sp;
  uint8_t* stack;
  uint8_t* top;  // where the stack begins, which grows downwards
  State state;
  uint32_t flags;
  uint32_t line;
  uint32_t op;
  uint32_t operand;
  uint32_t value;
  // Matrices that are alive, and calls on them since the lanes of the simdgroup last met.
  uint32_t matrices, matrix_calls;
  SimdMatrices* simd_matrices;
};

struct Running {
  const Dispatch* dispatch;
  uint32_t group;
  uint32_t group_xyz[3];
  Fiber* current;
  uint32_t thread;
  // How many barriers were passed that order threadgroup memory, and device memory.
  uint32_t threadgroup_epoch, device_epoch;
  uint32_t simd_threadgroup_epoch[MAX_THREADS / SIMD_WIDTH], simd_device_epoch[MAX_THREADS / SIMD_WIDTH];
  uint32_t fault;
  uint32_t last_binding;
  uint8_t* scratch;
  uint64_t scratch_bytes;
  // The arrays of threadgroup memory, and where they begin in it. Between two of them lies memory of nobody.
  void* arrays[MAX_ARRAYS];
  uint64_t array_offsets[MAX_ARRAYS];
  Buffer scratch_shadow;
  // For each simdgroup.
  SimdMatrices* matrices;
  // The lane that owns each element of a matrix.
  uint8_t matrix_owners[64];
  void* scheduler_sp;
  Counts counts;
};

constexpr uint32_t ORDERS_THREADGROUP = 1;
constexpr uint32_t ORDERS_DEVICE = 2;
constexpr uint64_t STACK_BYTES = 64 * 1024;

// A pointer only: static thread-local storage is scarce where many libraries are loaded.
extern thread_local Running* running_now;
#define running (*running_now)

// Leaves the fiber that runs, for the scheduler.
extern "C" void sim_leave();

// Records a fault, the first of a dispatch only; the dispatch ends when the fiber is left.
void fail(Fault fault, const char* format, ...) __attribute__((format(printf, 2, 3)));
