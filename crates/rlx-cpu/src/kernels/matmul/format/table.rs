//! The table of formats, as macros that call a generic function or block with the [`Format`](super::Format) of a dtype.

/// Any dtype that can be packed.
macro_rules! with_format {
    ($dtype:expr, $format:ident => $body:expr, else $other:expr) => {
        $crate::kernels::matmul::format::with_float!($dtype, $format => $body, else $crate::kernels::matmul::format::with_block!($dtype, $format => $body, else $other))
    };
}

/// The float dtypes.
macro_rules! with_float {
    ($dtype:expr, $format:ident => $body:expr, else $other:expr) => {
        match $dtype {
            rlx_ir::DType::F32 => {
                type $format = $crate::kernels::matmul::format::F32;
                $body
            }
            rlx_ir::DType::F16 => {
                type $format = $crate::kernels::matmul::format::F16;
                $body
            }
            rlx_ir::DType::BF16 => {
                type $format = $crate::kernels::matmul::format::Bf16;
                $body
            }
            _ => $other,
        }
    };
}

/// One arm for each of some block types.
macro_rules! block_arms {
    ($dtype:expr, $format:ident => $body:expr, else $other:expr; $($block:ident = $name:ident)*) => {
        match $dtype {
            $(rlx_ir::DType::Block(rlx_ir::quant::BlockType::$block) => {
                type $format = $crate::kernels::matmul::format::$name;
                $body
            })*
            _ => $other,
        }
    };
}

/// The block types.
macro_rules! with_block {
    ($dtype:expr, $format:ident => $body:expr, else $other:expr) => {
        $crate::kernels::matmul::format::block_arms!($dtype, $format => $body, else $other;
            Q8_0 = Q8_0
            Q4_0 = Q4_0
            Q4_1 = Q4_1
            Q5_0 = Q5_0
            Q5_1 = Q5_1
            Q2_K = Q2K
            Q3_K = Q3K
            Q4_K = Q4K
            Q5_K = Q5K
            Q6_K = Q6K
            IQ1_S = Iq1S
            IQ1_M = Iq1M
            IQ2_XXS = Iq2Xxs
            IQ2_XS = Iq2Xs
            IQ2_S = Iq2S
            IQ3_XXS = Iq3Xxs
            IQ3_S = Iq3S
            IQ4_NL = Iq4Nl
            IQ4_XS = Iq4Xs
            TQ1_0 = Tq1
            TQ2_0 = Tq2
            MXFP4 = Mxfp4
            NVFP4 = Nvfp4
            Q1_0 = Q1
        )
    };
}

/// The dtypes that are [`Direct`](super::Direct).
macro_rules! with_direct {
    ($dtype:expr, $format:ident => $body:expr, else $other:expr) => {
        $crate::kernels::matmul::format::with_float!($dtype, $format => $body, else $crate::kernels::matmul::format::block_arms!($dtype, $format => $body, else $other;
            Q8_0 = Q8_0
            Q4_0 = Q4_0
            Q4_1 = Q4_1
            Q4_K = Q4K
            Q6_K = Q6K
        ))
    };
}

pub(crate) use {block_arms, with_block, with_direct, with_float, with_format};
