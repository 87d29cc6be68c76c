//! Entry points for the host: plain functions over an array of pointers.

use crate::manifest::{Kernel, cpp_type};
use crate::source::{parameters, passed};

/// `void name(void* const* buffers, void* const* memory, const Ids& ids)`: buffer 0 holds the arguments, `memory` the arrays
/// of threadgroup memory.
///
/// The function itself is not instrumented, since it reads the simulator's own memory.
pub(super) fn entry(kernel: &Kernel) -> String {
    let mut body = format!("  auto args = (device const {}*)buffers[0];\n", kernel.args.name);
    for (i, (ty, name)) in parameters(kernel).enumerate() {
        body.push_str(&format!("  auto {name} = ({ty})buffers[{}];\n", i + 1));
    }
    for (i, scratch) in kernel.scratch.iter().enumerate() {
        let cpp = cpp_type(scratch.dtype).unwrap_or("void");
        body.push_str(&format!("  auto {} = (threadgroup {cpp}*)memory[{i}];\n", scratch.name));
    }
    format!(
        "extern \"C\" __attribute__((no_sanitize(\"thread\"))) void {}(void* const* buffers, void* const* memory, const Ids& ids) \
         {{\n{body}  {}({}, ids);\n}}\n",
        kernel.name,
        kernel.function,
        passed(kernel)
    )
}

/// A function with a parameter for each buffer, which instantiates the template and casts nothing.
pub(super) fn typed_entry(kernel: &Kernel) -> String {
    let mut list = vec![format!("device const {}* args", kernel.args.name)];
    list.extend(parameters(kernel).map(|(ty, name)| format!("{ty} {name}")));
    for scratch in &kernel.scratch {
        list.push(format!("threadgroup {}* {}", cpp_type(scratch.dtype).unwrap_or("void"), scratch.name));
    }
    format!(
        "void {}({}, Ids ids) {{\n  {}({}, ids);\n}}\n",
        kernel.name,
        list.join(", "),
        kernel.function,
        passed(kernel)
    )
}
