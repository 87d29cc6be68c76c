// What the driver and the runtime share. The structs have twins in src/ffi.rs.
#pragma once
#include <cstdint>

constexpr uint32_t SIMD_WIDTH = 32;
constexpr uint32_t MAX_THREADS = 1024;
// Arrays of threadgroup memory.
constexpr uint32_t MAX_ARRAYS = 8;
// Before and behind each buffer lie as many bytes that belong to nobody else.
constexpr uint64_t PAGE = 4096;

// Who last wrote and who last read some bytes, in which dispatch, and between which barriers.
struct Access {
  uint32_t dispatch;  // 0: nobody
  uint32_t group;
  uint32_t epoch;       // barriers of the threadgroup that were passed before
  uint32_t simd_epoch;  // barriers of the simdgroup
  uint16_t thread;
  uint16_t many;  // of readers: see Many
};

enum Many : uint16_t { ONE = 0, LANES = 1, SIMDS = 2, GROUPS = 4 };

struct Cell {
  Access write;
  Access read;
};

struct Buffer {
  Cell* cells;        // one for each `granule` bytes
  uint8_t* written;   // one for each byte: whether somebody wrote it
  uint64_t bytes;
  uint32_t granule;
  uint32_t ordered;  // dispatches below this one are over before those that follow
};

struct Binding {
  uint8_t* base;  // of the view that this binding alone uses
  uint64_t offset;
  uint64_t bytes;
  uint32_t buffer;
  uint32_t writes;  // 0: the kernel may only read
};

struct Ids {
  uint32_t group, group_y, group_z, groups, thread_index, threads, lane, simd, simds;
};

using Entry = void (*)(void* const* buffers, void* const* memory, const Ids& ids);

struct Dispatch {
  Entry entry;
  const Binding* bindings;
  Buffer* buffers;
  char* message;
  uint64_t message_bytes;
  uint64_t seed;
  uint32_t binding_count;
  uint32_t groups[3];
  uint32_t threads;
  uint32_t array_count;
  uint32_t array_bytes[MAX_ARRAYS];
  uint32_t array_granule;
  uint32_t serial;
  uint32_t hooked;
};

// The kinds of failure, in the order of `Fault` in src/fault.rs.
enum Fault : uint32_t {
  NONE,
  OUT_OF_RANGE,
  WRITE_TO_READ_ONLY,
  MISALIGNED,
  UNWRITTEN,
  RACE_IN_GROUP,
  RACE_BETWEEN_GROUPS,
  UNORDERED_DISPATCHES,
  BARRIER_NOT_REACHED,
  SIMD_NOT_REACHED,
  FOREIGN_MEMORY,
  NOT_UNIFORM,
};

struct Counts {
  uint64_t reads, writes, barriers, simd_ops;
};
