//! Entry points in the Metal shading language.

use crate::manifest::{Kernel, cpp_type};
use crate::source::{parameters, passed};

/// A `kernel` function: arguments at buffer 0, buffers behind it, threadgroup memory from index 0 on.
pub(super) fn entry(kernel: &Kernel) -> String {
    let mut list = vec![format!("device const {}* args [[buffer(0)]]", kernel.args.name)];
    for (i, (ty, name)) in parameters(kernel).enumerate() {
        list.push(format!("{ty} {name} [[buffer({})]]", i + 1));
    }
    for (i, scratch) in kernel.scratch.iter().enumerate() {
        let cpp = cpp_type(scratch.dtype).unwrap_or("void");
        list.push(format!("threadgroup {cpp}* {} [[threadgroup({i})]]", scratch.name));
    }
    for (ty, name, attribute) in POSITIONS {
        list.push(format!("{ty} {name} [[{attribute}]]"));
    }
    format!(
        "kernel void {}({}) {{\n  \
         Ids ids = {{group.x, group.y, group.z, groups.x, thread_index, threads.x, lane, simd, simds}};\n  \
         {}({}, ids);\n}}\n",
        kernel.name,
        list.join(", "),
        kernel.function,
        passed(kernel)
    )
}

const POSITIONS: [(&str, &str, &str); 7] = [
    ("uint3", "group", "threadgroup_position_in_grid"),
    ("uint3", "groups", "threadgroups_per_grid"),
    ("uint", "thread_index", "thread_index_in_threadgroup"),
    ("uint3", "threads", "threads_per_threadgroup"),
    ("uint", "lane", "thread_index_in_simdgroup"),
    ("uint", "simd", "simdgroup_index_in_threadgroup"),
    ("uint", "simds", "simdgroups_per_threadgroup"),
];
