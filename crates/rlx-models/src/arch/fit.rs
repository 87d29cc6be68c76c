//! Which dtype a weight can have.

use rlx_ir::DType;
use rlx_ir::quant::BlockType as B;

/// `wanted`, or where its blocks do not divide a row of `row_elems` the nearest type whose blocks do: one of at least the
/// same precision with smaller blocks, else f16.
pub fn fit(wanted: DType, row_elems: usize) -> DType {
    let fits = |dtype: DType| row_elems > 0 && row_elems.is_multiple_of(dtype.block_elems());
    if fits(wanted) {
        return wanted;
    }
    let smaller = match wanted {
        DType::Block(B::Q4_K) => DType::Block(B::Q5_0),
        DType::Block(B::Q5_K) => DType::Block(B::Q5_1),
        DType::Block(B::Q6_K) => DType::Block(B::Q8_0),
        // All of at most 4.5 bits.
        DType::Block(b) if b.block_elems() > 32 => DType::Block(B::IQ4_NL),
        _ => DType::F16,
    };
    if fits(smaller) { smaller } else { DType::F16 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_that_do_not_divide_a_row_give_way() {
        for (wanted, row, got) in [
            ("q4_k", 512, "q4_k"),
            ("q4_k", 384, "q5_0"),
            ("q6_k", 384, "q8_0"),
            ("q5_k", 384, "q5_1"),
            ("q2_k", 384, "iq4_nl"),
            ("iq4_xs", 96, "iq4_nl"),
            ("tq1_0", 128, "iq4_nl"),
            ("q1_0", 384, "q1_0"),
            ("q1_0", 64, "iq4_nl"),
            ("nvfp4", 64, "nvfp4"),
            ("nvfp4", 32, "iq4_nl"),
            ("nvfp4", 100, "f16"),
            ("mxfp4", 96, "mxfp4"),
            ("mxfp4", 100, "f16"),
            ("q6_k", 100, "f16"),
            ("q4_k", 100, "f16"),
            ("q8_0", 100, "f16"),
            ("q8_0", 96, "q8_0"),
            ("bf16", 7, "bf16"),
        ] {
            let wanted = DType::from_name(wanted).unwrap();
            assert_eq!(fit(wanted, row).name(), got, "{wanted} with {row}");
        }
    }
}
