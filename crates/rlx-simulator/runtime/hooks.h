// The check of one access, for accesses that the runtime does for a kernel.
#pragma once
#include <cstdint>

void sim_hook(const void* pointer, uint64_t bytes, bool write);
