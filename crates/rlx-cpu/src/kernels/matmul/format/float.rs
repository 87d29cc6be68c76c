//! f32, f16 and bf16: element after element.

use rlx_ir::DType;

use super::{Direct, Floats, Format, Sums, lanes, lanes_mut, u16_at};
use crate::kernels::matmul::{PANEL, PanelRow};
use crate::simd::{Simd, array_of};

macro_rules! float {
    ($name:ident, $dtype:ident, $bits:ty, $read:expr, $load:expr) => {
        #[doc = concat!("Weights of dtype ", stringify!($dtype), ".")]
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        impl Format for $name {
            const DTYPE: DType = DType::$dtype;
            const K: usize = 1;
            type Block = [$bits; PANEL];

            #[inline(always)]
            fn pack(source: &[u8], column: usize, block: &mut Self::Block) {
                block[column] = $read(source);
            }
        }

        impl Floats for $name {
            #[inline(always)]
            fn decode<S: Simd>(s: S, blocks: &[Self::Block], out: &mut [PanelRow]) {
                for (block, out) in blocks.iter().zip(out) {
                    for half in 0..2 {
                        s.store($load(s, lanes(block, half)), lanes_mut(out, half));
                    }
                }
            }
        }

        impl Direct for $name {
            #[inline(always)]
            fn accumulate<S: Simd, const H: usize, const P: usize>(
                s: S,
                panels: [&[Self::Block]; P],
                x: [&[f32]; H],
                acc: &mut Sums<S, H, P>,
            ) {
                let depth = panels.first().map_or(0, |p| p.len());
                let panels = panels.map(|p| &p[..depth]);
                let x = x.map(|x| &x[..depth]);
                let mut sums = *acc;
                for k in 0..depth {
                    let w: [[S::F; 2]; P] = array_of!([s.zero(); 2]; P, |p| {
                        [$load(s, lanes(&panels[p][k], 0)), $load(s, lanes(&panels[p][k], 1))]
                    });
                    for h in 0..H {
                        let x = s.splat(x[h][k]);
                        for p in 0..P {
                            sums[h][p][0] = s.fma(x, w[p][0], sums[h][p][0]);
                            sums[h][p][1] = s.fma(x, w[p][1], sums[h][p][1]);
                        }
                    }
                }
                *acc = sums;
            }
        }
    };
}

float!(F32, F32, f32, |b: &[u8]| f32::from_le_bytes([b[0], b[1], b[2], b[3]]), S::load);
float!(F16, F16, u16, |b: &[u8]| u16_at(b, 0), S::load_f16);
float!(Bf16, BF16, u16, |b: &[u8]| u16_at(b, 0), S::load_bf16);
