// Runs a dispatch: threadgroups one after the other, each as fibers that take turns in a seeded order.

#include "fibers.h"

#include <immintrin.h>
#include <sys/mman.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

thread_local Running* running_now;

namespace {

// Saves what the System V ABI wants kept and the stack pointer in *from, and goes on at `to`.
extern "C" void sim_switch(void** from, void* to);
asm(R"(
.text
.p2align 4
.globl sim_switch
.hidden sim_switch
.type sim_switch, @function
sim_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size sim_switch, .-sim_switch
)");

// Fibers with their stacks, kept for the next dispatch on whatever thread.
struct Pool {
  Fiber fibers[MAX_THREADS];
  uint8_t* stacks;
  SimdMatrices* matrices;
  Pool* next;

  static constexpr uint64_t EACH = STACK_BYTES + PAGE;

  static constexpr uint64_t MATRICES = sizeof(SimdMatrices) * (MAX_THREADS / SIMD_WIDTH);

  // Zeros, of which the system gives only the pages that are touched.
  static void* pages(uint64_t bytes) {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) abort();
    return memory;
  }

  Pool() : next(nullptr) {
    stacks = static_cast<uint8_t*>(pages(EACH * MAX_THREADS));
    matrices = static_cast<SimdMatrices*>(pages(MATRICES));
    for (uint32_t i = 0; i < MAX_THREADS; i++) {
      // Below each stack a page that faults.
      mprotect(stacks + i * EACH, PAGE, PROT_NONE);
      fibers[i].stack = stacks + i * EACH + PAGE;
      // Stacks a whole number of pages apart would all want the same few lines of the cache.
      fibers[i].top = fibers[i].stack + STACK_BYTES - i % 32 * 128;
      fibers[i].simd_matrices = matrices + i / SIMD_WIDTH;
    }
  }

  ~Pool() {
    for (uint32_t i = 0; i < MAX_THREADS / SIMD_WIDTH; i++) free(matrices[i].calls);
    munmap(matrices, MATRICES);
    munmap(stacks, EACH * MAX_THREADS);
  }
};

struct Pools {
  std::mutex mutex;
  Pool* first = nullptr;

  Pool* take() {
    std::lock_guard<std::mutex> lock(mutex);
    Pool* pool = first;
    if (pool == nullptr) return new Pool();
    first = pool->next;
    return pool;
  }

  void give(Pool* pool) {
    std::lock_guard<std::mutex> lock(mutex);
    pool->next = first;
    first = pool;
  }

  ~Pools() {
    while (first != nullptr) {
      Pool* pool = first;
      first = pool->next;
      delete pool;
    }
  }
};

Pools pools;

void to_scheduler() { sim_switch(&running.current->sp, running.scheduler_sp); }

[[noreturn]] void fiber_main() {
  const Dispatch& d = *running.dispatch;
  void* buffers[64];
  for (uint32_t i = 0; i < d.binding_count; i++) {
    buffers[i] = d.bindings[i].base == nullptr ? nullptr : d.bindings[i].base + d.bindings[i].offset;
  }
  uint32_t t = running.thread;
  Ids ids = {running.group_xyz[0], running.group_xyz[1], running.group_xyz[2], d.groups[0],          t,
             d.threads,            t % SIMD_WIDTH,       t / SIMD_WIDTH,       d.threads / SIMD_WIDTH};
  d.entry(buffers, running.arrays, ids);
  running.current->state = State::DONE;
  to_scheduler();
  abort();
}

void prepare(Fiber& f) {
  // `ret` pops the entry; at a function's first instruction the stack is 8 bytes off a multiple of 16.
  auto top = reinterpret_cast<uint64_t*>(f.top);
  top[-1] = 0;
  top[-2] = reinterpret_cast<uint64_t>(&fiber_main);
  f.sp = top - 8;
  memset(top - 8, 0, 6 * sizeof(uint64_t));
  f.state = State::READY;
  f.matrices = f.matrix_calls = 0;
}

struct Random {
  uint64_t state;
  uint64_t next() {
    state += 0x9e3779b97f4a7c15ull;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  template <typename T>
  void shuffle(T* list, uint32_t n) {
    for (uint32_t i = n; i > 1; i--) {
      uint32_t j = uint32_t(next() % i);
      T kept = list[i - 1];
      list[i - 1] = list[j];
      list[j] = kept;
    }
  }
};

float f32(uint32_t bits) {
  float v;
  memcpy(&v, &bits, 4);
  return v;
}

uint32_t bits(float v) {
  uint32_t b;
  memcpy(&b, &v, 4);
  return b;
}

enum Op : uint32_t {
  SUM_F32, MAX_F32, MIN_F32, SUM_U32, MAX_I32, MIN_I32, MAX_U32, MIN_U32, SHUFFLE, SHUFFLE_XOR, SHUFFLE_DOWN,
  SHUFFLE_UP, BALLOT,
};

uint32_t join(uint32_t op, uint32_t a, uint32_t b) {
  switch (op) {
    case SUM_F32: return bits(f32(a) + f32(b));
    // As fmax: a number wins over NaN.
    case MAX_F32: return f32(a) != f32(a) || f32(b) > f32(a) ? b : a;
    case MIN_F32: return f32(a) != f32(a) || f32(b) < f32(a) ? b : a;
    case SUM_U32: return a + b;
    case MAX_I32: return int32_t(a) > int32_t(b) ? a : b;
    case MIN_I32: return int32_t(a) < int32_t(b) ? a : b;
    case MAX_U32: return a > b ? a : b;
    default: return a < b ? a : b;
  }
}

// All lanes have come: gives each its result.
void complete_simd(Fiber* lanes) {
  uint32_t op = lanes[0].op;
  uint32_t in[SIMD_WIDTH], next[SIMD_WIDTH];
  for (uint32_t i = 0; i < SIMD_WIDTH; i++) in[i] = lanes[i].value;
  if (op <= MIN_U32) {
    // As a butterfly of shuffles, which is one of the orders that hardware may take.
    for (uint32_t mask = SIMD_WIDTH / 2; mask > 0; mask /= 2) {
      for (uint32_t i = 0; i < SIMD_WIDTH; i++) next[i] = join(op, in[i], in[i ^ mask]);
      memcpy(in, next, sizeof in);
    }
    for (uint32_t i = 0; i < SIMD_WIDTH; i++) lanes[i].value = in[i];
    return;
  }
  uint32_t ballot = 0;
  for (uint32_t i = 0; i < SIMD_WIDTH; i++) ballot |= in[i] << i;
  for (uint32_t i = 0; i < SIMD_WIDTH; i++) {
    uint32_t n = lanes[i].operand;
    uint32_t from = op == SHUFFLE ? n : op == SHUFFLE_XOR ? i ^ n : op == SHUFFLE_DOWN ? i + n : i - n;
    if (op == BALLOT) {
      lanes[i].value = ballot;
    } else {
      // A lane that is not there gives an undefined value: one that shows up in results.
      lanes[i].value = from < SIMD_WIDTH ? in[from] : 0x7fc0deadu;
    }
  }
}

struct Scheduler {
  Fiber* fibers;
  uint32_t threads, done = 0, at_barrier = 0;
  uint32_t at_simd[MAX_THREADS / SIMD_WIDTH] = {};
  uint32_t queue[MAX_THREADS];
  uint32_t queued = 0;
  Random random;

  void push_shuffled(uint32_t first, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) queue[queued + i] = first + i;
    if (running.dispatch->seed != 0) random.shuffle(queue + queued, count);
    queued += count;
    for (uint32_t i = 0; i < count; i++) fibers[first + i].state = State::READY;
  }

  bool matrices_met() {
    for (uint32_t simd = 0; simd < threads / SIMD_WIDTH; simd++) {
      if (!sim_matrices_met(simd, fibers + simd * SIMD_WIDTH)) return false;
    }
    return true;
  }

  void release_group() {
    Fiber& first = fibers[0];
    for (uint32_t i = 1; i < threads; i++) {
      if (fibers[i].line != first.line || fibers[i].flags != first.flags) {
        fail(BARRIER_NOT_REACHED, "thread 0 is at the barrier of line %u of the text, thread %u at that of line %u",
             first.line, i, fibers[i].line);
      }
    }
    if (!matrices_met()) return;
    if (first.flags & ORDERS_THREADGROUP) running.threadgroup_epoch++;
    if (first.flags & ORDERS_DEVICE) running.device_epoch++;
    running.counts.barriers++;
    at_barrier = 0;
    push_shuffled(0, threads);
  }

  void release_simd(uint32_t simd) {
    Fiber* lanes = fibers + simd * SIMD_WIDTH;
    for (uint32_t i = 1; i < SIMD_WIDTH; i++) {
      if (lanes[i].line != lanes[0].line || lanes[i].op != lanes[0].op || lanes[i].state != lanes[0].state) {
        fail(SIMD_NOT_REACHED, "simdgroup %u: lane 0 is at line %u of the text, lane %u at line %u", simd,
             lanes[0].line, i, lanes[i].line);
      }
    }
    if (!sim_matrices_met(simd, lanes)) return;
    if (lanes[0].state == State::AT_SIMD_BARRIER) {
      if (lanes[0].flags & ORDERS_THREADGROUP) running.simd_threadgroup_epoch[simd]++;
      if (lanes[0].flags & ORDERS_DEVICE) running.simd_device_epoch[simd]++;
    } else {
      complete_simd(lanes);
    }
    running.counts.simd_ops++;
    at_simd[simd] = 0;
    push_shuffled(simd * SIMD_WIDTH, SIMD_WIDTH);
  }

  // Nobody can go on although not all are done.
  void stuck() {
    for (uint32_t i = 0; i < threads; i++) {
      const Fiber& f = fibers[i];
      if (f.state == State::AT_SIMD || f.state == State::AT_SIMD_BARRIER) {
        fail(SIMD_NOT_REACHED, "lane %u of simdgroup %u waits at line %u of the text for lanes that never come",
             i % SIMD_WIDTH, i / SIMD_WIDTH, f.line);
      }
    }
    for (uint32_t i = 0; i < threads; i++) {
      const Fiber& f = fibers[i];
      if (f.state == State::AT_BARRIER) {
        fail(BARRIER_NOT_REACHED, "thread %u waits at the barrier of line %u of the text; %u of %u threads are done", i,
             f.line, done, threads);
      }
    }
  }

  bool run() {
    while (done < threads) {
      if (queued == 0) {
        stuck();
        return false;
      }
      // Those that were released last run first; the order within is seeded.
      uint32_t thread = queue[--queued];
      Fiber& f = fibers[thread];
      running.current = &f;
      running.thread = thread;
      sim_switch(&running.scheduler_sp, f.sp);
      if (running.fault != NONE) return false;
      switch (f.state) {
        case State::DONE: done++; break;
        case State::AT_BARRIER:
          if (++at_barrier == threads) release_group();
          break;
        case State::AT_SIMD:
        case State::AT_SIMD_BARRIER:
          if (++at_simd[thread / SIMD_WIDTH] == SIMD_WIDTH) release_simd(thread / SIMD_WIDTH);
          break;
        case State::READY: break;
      }
      if (running.fault != NONE) return false;
    }
    return matrices_met();
  }
};

void wait(State state, uint32_t flags, uint32_t line) {
  running.current->state = state;
  running.current->flags = flags;
  running.current->line = line;
  to_scheduler();
}

}  // namespace

void fail(Fault fault, const char* format, ...) {
  if (running.fault == NONE) {
    running.fault = fault;
    va_list args;
    va_start(args, format);
    vsnprintf(running.dispatch->message, running.dispatch->message_bytes, format, args);
    va_end(args);
  }
}

extern "C" void sim_leave() { to_scheduler(); }

extern "C" void sim_barrier(uint32_t flags, uint32_t line) { wait(State::AT_BARRIER, flags, line); }

extern "C" void sim_simd_barrier(uint32_t flags, uint32_t line) {
  running.current->op = ~0u;
  wait(State::AT_SIMD_BARRIER, flags, line);
}

extern "C" uint32_t sim_simd(uint32_t op, uint32_t value, uint32_t operand, uint32_t line) {
  Fiber* self = running.current;
  self->op = op;
  self->value = value;
  self->operand = operand;
  wait(State::AT_SIMD, 0, line);
  return self->value;
}

// Runs a dispatch; gives the fault, or 0.
extern "C" uint32_t sim_run(const Dispatch* dispatch, Counts* counts) {
  Running now = {};
  running_now = &now;
  Pool* pool = pools.take();
  running.dispatch = dispatch;
  running.matrices = pool->matrices;
  uint64_t scratch_bytes = 0;
  for (uint32_t i = 0; i < dispatch->array_count; i++) {
    // So far from the last one that nothing strays from one into another.
    if (i > 0) scratch_bytes = (scratch_bytes / PAGE + 2) * PAGE;
    running.array_offsets[i] = scratch_bytes;
    scratch_bytes += dispatch->array_bytes[i];
  }
  running.scratch_bytes = scratch_bytes;
  auto scratch = static_cast<uint8_t*>(aligned_alloc(PAGE, (scratch_bytes / PAGE + 3) * PAGE));
  running.scratch = scratch + PAGE;
  for (uint32_t i = 0; i < dispatch->array_count; i++) running.arrays[i] = running.scratch + running.array_offsets[i];
  uint32_t granule = dispatch->array_granule;
  uint64_t cells = scratch_bytes / granule + 1;
  if (dispatch->hooked) {
    running.scratch_shadow = {static_cast<Cell*>(calloc(cells, sizeof(Cell))),
                              static_cast<uint8_t*>(calloc(scratch_bytes + 1, 1)), scratch_bytes, granule, 0};
  }
  uint32_t total = dispatch->groups[0] * dispatch->groups[1] * dispatch->groups[2];
  auto order = static_cast<uint32_t*>(malloc(sizeof(uint32_t) * (total + 1)));
  for (uint32_t i = 0; i < total; i++) order[i] = i;
  Random random = {dispatch->seed};
  if (dispatch->seed != 0) random.shuffle(order, total);
  for (uint32_t i = 0; i < 64; i++) running.matrix_owners[i] = uint8_t(i % SIMD_WIDTH);
  Random{~dispatch->seed}.shuffle(running.matrix_owners, 64);

  // Denormals are zero, as on the GPU.
  uint32_t mode = _mm_getcsr();
  _mm_setcsr(mode | 0x8040);
  for (uint32_t i = 0; i < total; i++) {
    uint32_t group = order[i];
    running.group = group;
    running.group_xyz[0] = group % dispatch->groups[0];
    running.group_xyz[1] = group / dispatch->groups[0] % dispatch->groups[1];
    running.group_xyz[2] = group / dispatch->groups[0] / dispatch->groups[1];
    running.threadgroup_epoch = running.device_epoch = 0;
    memset(running.simd_threadgroup_epoch, 0, sizeof running.simd_threadgroup_epoch);
    memset(running.simd_device_epoch, 0, sizeof running.simd_device_epoch);
    for (uint32_t simd = 0; simd < dispatch->threads / SIMD_WIDTH; simd++) pool->matrices[simd].count = 0;
    // Nothing is left of the last threadgroup but bytes that make NaN.
    memset(running.scratch, 0xff, scratch_bytes);
    if (dispatch->hooked) memset(running.scratch_shadow.written, 0, scratch_bytes);
    Scheduler scheduler = {};
    scheduler.fibers = pool->fibers;
    scheduler.threads = dispatch->threads;
    scheduler.random = {random.next()};
    for (uint32_t t = 0; t < dispatch->threads; t++) prepare(scheduler.fibers[t]);
    scheduler.push_shuffled(0, dispatch->threads);
    if (!scheduler.run()) break;
  }
  _mm_setcsr(mode);
  free(order);
  free(scratch);
  free(running.scratch_shadow.cells);
  free(running.scratch_shadow.written);
  pools.give(pool);
  *counts = now.counts;
  running_now = nullptr;
  return now.fault;
}
