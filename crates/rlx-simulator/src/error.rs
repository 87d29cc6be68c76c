rlx_ir::define_error!(Error, from: [rlx_ir::Error, rlx_kernels::Error]);
