rlx_ir::define_error!(Error, from: [rlx_ir::Error, rlx_compile::Error, rlx_kernels::Error, rlx_runtime::Error]);

impl From<Error> for rlx_runtime::Error {
    fn from(e: Error) -> Self {
        Self::new(e.kind(), e.message())
    }
}
