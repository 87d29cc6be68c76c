//! The error of this crate.

rlx_ir::define_error!(Error, from: [rlx_ir::Error, rlx_compile::Error, rlx_runtime::Error]);
