// Where a thread stands. A threadgroup is one row of threads, a multiple of 32 of them.
struct Ids {
  uint group;         // of the threadgroup within the grid's first axis
  uint group_y;       // within its second
  uint group_z;       // within its third
  uint groups;        // threadgroups along the first axis
  uint thread_index;  // of the thread within the threadgroup
  uint threads;       // in the threadgroup
  uint lane;          // of the thread within its simdgroup of 32
  uint simd;          // of the simdgroup within the threadgroup
  uint simds;         // in the threadgroup
};
