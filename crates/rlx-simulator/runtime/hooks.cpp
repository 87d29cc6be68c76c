// What clang's thread-sanitizer instrumentation calls before every access: the checks of the hooked mode.

#include <dlfcn.h>
#include <link.h>

#include <cstring>

#include "fibers.h"
#include "hooks.h"

namespace {

struct Epochs {
  uint32_t group, simd;
};

Epochs epochs(bool scratch) {
  uint32_t simd = running.thread / SIMD_WIDTH;
  if (scratch) return {running.threadgroup_epoch, running.simd_threadgroup_epoch[simd]};
  return {running.device_epoch, running.simd_device_epoch[simd]};
}

bool same_simd(const Access& a) { return a.thread / SIMD_WIDTH == running.thread / SIMD_WIDTH; }

// Whether an earlier write of this dispatch comes before what the current thread does now.
bool write_ordered(const Access& w, Epochs now) {
  if (w.group != running.group) return false;
  if (w.thread == running.thread || w.epoch < now.group) return true;
  return same_simd(w) && w.simd_epoch < now.simd;
}

bool reads_ordered(const Access& r, Epochs now) {
  if ((r.many & GROUPS) || r.group != running.group) return false;
  if (r.epoch < now.group) return true;
  if ((r.many & SIMDS) || !same_simd(r)) return false;
  if (r.simd_epoch < now.simd) return true;
  return !(r.many & LANES) && r.thread == running.thread;
}

void note_read(Access& r, uint32_t serial, Epochs now) {
  uint16_t many = ONE;
  if (r.dispatch == serial) {
    if (r.group != running.group || (r.many & GROUPS)) many = GROUPS;
    if (r.group == running.group && r.epoch == now.group) {
      many |= r.many & SIMDS;
      if (!same_simd(r)) {
        many |= SIMDS;
      } else if (r.simd_epoch == now.simd) {
        // Reads before the simdgroup's last barrier are over for its lanes, and too many for all others anyway.
        many |= r.thread == running.thread ? r.many & LANES : LANES;
      }
    }
  }
  r = {serial, running.group, now.group, now.simd, uint16_t(running.thread), many};
}

struct Place {
  const char* what;
  uint32_t index;
  uint64_t offset;
};

void race(const char* before, const char* after, const Access& a, bool scratch, const Place& p, uint32_t ordered) {
  if (!scratch && a.dispatch != running.dispatch->serial) {
    fail(UNORDERED_DISPATCHES,
         "byte %lu of %s %u: dispatch %u %s and dispatch %u %s it, and nothing orders them (ordered below %u)", p.offset,
         p.what, p.index, a.dispatch, before, running.dispatch->serial, after, ordered);
  } else if (a.group != running.group || (a.many & GROUPS)) {
    fail(RACE_BETWEEN_GROUPS, "byte %lu of %s %u: threadgroup %u %s it, threadgroup %u %s it", p.offset, p.what, p.index,
         a.group, before, running.group, after);
  } else {
    const char* others = a.many == ONE ? "" : " and others";
    fail(RACE_IN_GROUP, "byte %lu of %s %u: in threadgroup %u, thread %u%s %s it, thread %u %s it, with no barrier between",
         p.offset, p.what, p.index, a.group, a.thread, others, before, running.thread, after);
  }
}

// Whether what another dispatch did is over.
bool over(const Access& a, uint32_t serial, uint32_t ordered) { return a.dispatch != serial && a.dispatch < ordered; }

void check_cells(Buffer& shadow, uint64_t at, uint64_t bytes, bool write, bool scratch, const Place& place) {
  uint32_t serial = running.dispatch->serial;
  Epochs now = epochs(scratch);
  // Sizes are powers of two: a division would cost as much as all the rest.
  int shift = __builtin_ctz(shadow.granule);
  uint64_t last = (at + bytes - 1) >> shift;
  for (uint64_t i = at >> shift; i <= last; i++) {
    Cell& cell = shadow.cells[i];
    const Access& w = cell.write;
    // Threadgroup memory begins anew with each threadgroup.
    bool stale_write = w.dispatch == 0 || (scratch && w.group != running.group);
    if (!stale_write && !over(w, serial, shadow.ordered) && (w.dispatch != serial || !write_ordered(w, now))) {
      return race("writes", write ? "writes" : "reads", w, scratch, place, shadow.ordered);
    }
    if (!write) {
      if (scratch && cell.read.group != running.group) cell.read = {};
      note_read(cell.read, serial, now);
      continue;
    }
    const Access& r = cell.read;
    bool stale_read = r.dispatch == 0 || (scratch && r.group != running.group);
    if (!stale_read && !over(r, serial, shadow.ordered) && (r.dispatch != serial || !reads_ordered(r, now))) {
      return race("reads", "writes", r, scratch, place, shadow.ordered);
    }
    cell.write = {serial, running.group, now.group, now.simd, uint16_t(running.thread), ONE};
  }
}

void check_bytes(Buffer& shadow, uint64_t at, uint64_t bytes, bool write, bool scratch, const Place& place) {
  uint8_t* written = shadow.written + at;
  if (!write && memchr(written, 0, bytes) != nullptr) {
    fail(UNWRITTEN, "threadgroup %u, thread %u reads byte %lu of %s %u, which nobody wrote", running.group,
         running.thread, place.offset, place.what, place.index);
    return;
  }
  check_cells(shadow, at, bytes, write, scratch, place);
  if (write) memset(written, 1, bytes);
}

// Constant tables lie in a segment of the library that holds the kernel.
bool in_library(uint64_t address, uint64_t bytes) {
  struct Range {
    uint64_t first, end;
  };
  struct Search {
    uint64_t self, address, end;
    bool found;
  } search = {reinterpret_cast<uint64_t>(running.dispatch->entry), address, address + bytes, false};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto s = static_cast<Search*>(data);
        bool own = false, inside = false;
        for (int i = 0; i < info->dlpi_phnum; i++) {
          const auto& p = info->dlpi_phdr[i];
          if (p.p_type != PT_LOAD) continue;
          uint64_t first = info->dlpi_addr + p.p_vaddr, end = first + p.p_memsz;
          own |= s->self >= first && s->self < end;
          inside |= s->address >= first && s->end <= end && !(p.p_flags & PF_W);
        }
        s->found |= own && inside;
        return 0;
      },
      &search);
  return search.found;
}

void check(const void* pointer, uint64_t bytes, bool write, bool aligned) {
  auto address = reinterpret_cast<uint64_t>(pointer);
  auto stack = reinterpret_cast<uint64_t>(running.current->stack);
  if (address >= stack && address + bytes <= stack + STACK_BYTES) return;
  (write ? running.counts.writes : running.counts.reads)++;
  if (aligned && (address & (bytes - 1)) != 0) {
    fail(MISALIGNED, "threadgroup %u, thread %u: an access of %lu bytes at an address that is %lu off", running.group,
         running.thread, bytes, address & (bytes - 1));
    return;
  }
  auto scratch = reinterpret_cast<uint64_t>(running.scratch);
  const Dispatch& d = *running.dispatch;
  if (address + PAGE >= scratch && address < scratch + running.scratch_bytes + PAGE) {
    // The last array that begins before the access, or the first.
    uint32_t array = 0;
    while (array + 1 < d.array_count && address >= scratch + running.array_offsets[array + 1]) array++;
    uint64_t begin = running.array_offsets[array], at = address - scratch - begin;
    if (address < scratch + begin || at + bytes > d.array_bytes[array]) {
      fail(OUT_OF_RANGE, "threadgroup %u, thread %u %s bytes from %ld on of threadgroup memory %u, which has %u",
           running.group, running.thread, write ? "writes" : "reads", int64_t(at), array, d.array_bytes[array]);
      return;
    }
    check_bytes(running.scratch_shadow, begin + at, bytes, write, true, {"threadgroup memory", array, at});
    return;
  }
  for (uint32_t n = 0; n < d.binding_count; n++) {
    // Most accesses go where the last one went.
    uint32_t i = running.last_binding + n;
    i = i < d.binding_count ? i : i - d.binding_count;
    const Binding& b = d.bindings[i];
    if (b.base == nullptr) continue;
    auto base = reinterpret_cast<uint64_t>(b.base);
    Buffer& buffer = d.buffers[b.buffer];
    if (address + PAGE < base || address >= base + buffer.bytes + PAGE) continue;
    running.last_binding = i;
    uint64_t at = address - base;
    if (address < base + b.offset || at + bytes > b.offset + b.bytes) {
      fail(OUT_OF_RANGE, "threadgroup %u, thread %u %s %lu bytes from %ld on of binding %u, which is given %lu bytes",
           running.group, running.thread, write ? "writes" : "reads", bytes, int64_t(at - b.offset), i, b.bytes);
      return;
    }
    if (write && !b.writes) {
      fail(WRITE_TO_READ_ONLY, "threadgroup %u, thread %u writes byte %lu of binding %u, which is bound for reading",
           running.group, running.thread, at - b.offset, i);
      return;
    }
    check_bytes(buffer, at, bytes, write, false, {"binding", i, at - b.offset});
    return;
  }
  if (!write && in_library(address, bytes)) return;
  fail(FOREIGN_MEMORY, "threadgroup %u, thread %u %s %lu bytes that belong to no binding", running.group, running.thread,
       write ? "writes" : "reads", bytes);
}

void hook(const void* pointer, uint64_t bytes, bool write, bool aligned) {
  check(pointer, bytes, write, aligned);
  // The access itself must not happen.
  if (running.fault != NONE) sim_leave();
}

}  // namespace

void sim_hook(const void* pointer, uint64_t bytes, bool write) { hook(pointer, bytes, write, true); }

extern "C" {
#define HOOKS(n)                                                                    \
  void __tsan_read##n(void* p) { hook(p, n, false, true); }                         \
  void __tsan_write##n(void* p) { hook(p, n, true, true); }                         \
  void __tsan_unaligned_read##n(void* p) { hook(p, n, false, false); }              \
  void __tsan_unaligned_write##n(void* p) { hook(p, n, true, false); }
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)
#undef HOOKS
// An index beyond an array whose size the compiler knows.
[[noreturn]] void __ubsan_handle_out_of_bounds_abort(void*, uint64_t index) {
  fail(OUT_OF_RANGE, "threadgroup %u, thread %u: an array has no element %lu", running.group, running.thread, index);
  sim_leave();
  __builtin_unreachable();
}
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void* __tsan_memcpy(void* to, const void* from, uint64_t bytes) {
  if (bytes != 0) {
    hook(from, bytes, false, false);
    hook(to, bytes, true, false);
  }
  return memcpy(to, from, bytes);
}
void* __tsan_memmove(void* to, const void* from, uint64_t bytes) {
  if (bytes != 0) {
    hook(from, bytes, false, false);
    hook(to, bytes, true, false);
  }
  return memmove(to, from, bytes);
}
void* __tsan_memset(void* to, int value, uint64_t bytes) {
  if (bytes != 0) hook(to, bytes, true, false);
  return memset(to, value, bytes);
}
}
