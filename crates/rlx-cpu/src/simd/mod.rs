//! Sixteen-lane vectors with one meaning on every instruction set, chosen at run time.
//!
//! A kernel is written once, generic over [`Simd`], and run through [`SimdLevel::dispatch`], which compiles it for
//! each level. All levels use the same virtual width ([`LANES`]) and the same operation order, so that levels with
//! fused multiply-add give equal bits. Only [`SimdLevel::portable`] on an x86-64 build without FMA rounds a product
//! before it is added; on aarch64 the portable level is the only one, is auto-vectorised to NEON, and fuses.
//!
//! `max` and `min` keep NaN; comparisons with NaN are false.

/// An array made by a loop over its index.
///
/// `std::array::from_fn` and `map` hand vectors to closures, which do not have the caller's target features: where one of
/// them is not inlined, every vector goes through memory (measured: a product of one row took 100 times as long).
macro_rules! array_of {
    ($zero:expr; $len:expr, |$i:ident| $value:expr) => {{
        let mut out = [$zero; $len];
        #[allow(clippy::needless_range_loop)]
        for $i in 0..$len {
            out[$i] = $value;
        }
        out
    }};
}
pub(crate) use array_of;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub mod math;
mod portable;
mod pow;
mod slices;
#[cfg(test)]
mod tests;

pub use slices::{reduce_max, reduce_min, reduce_prod, reduce_sum, tail};

/// Lanes of every vector.
pub const LANES: usize = 16;

/// Operations on vectors of 16 lanes: `F` holds f32, `I` holds 32-bit integers, `M` holds one condition per lane.
///
/// A value of an implementing type is a proof that the machine has the instructions. Shapes: all 16 lanes.
#[allow(missing_docs)]
pub trait Simd: Copy + Send + Sync + 'static {
    type F: Copy;
    type I: Copy;
    type M: Copy;
    /// Rows of the register-blocked matmul tile, each of two vectors.
    const TILE_ROWS: usize;
    /// Whether products of few rows decode weights in registers. Without enough registers, what that costs to compile
    /// brings nothing.
    const DIRECT: bool;

    fn splat(self, x: f32) -> Self::F;
    fn load(self, x: &[f32; LANES]) -> Self::F;
    fn store(self, v: Self::F, out: &mut [f32; LANES]);
    fn add(self, a: Self::F, b: Self::F) -> Self::F;
    fn sub(self, a: Self::F, b: Self::F) -> Self::F;
    fn mul(self, a: Self::F, b: Self::F) -> Self::F;
    fn div(self, a: Self::F, b: Self::F) -> Self::F;
    fn sqrt(self, a: Self::F) -> Self::F;
    /// `a * b + c`, rounded once where the level fuses.
    fn fma(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    /// `a > b ? a : b`, NaN where either is NaN.
    fn max(self, a: Self::F, b: Self::F) -> Self::F;
    /// `a < b ? a : b`, NaN where either is NaN.
    fn min(self, a: Self::F, b: Self::F) -> Self::F;
    /// Nearest integer, ties to even.
    fn round(self, a: Self::F) -> Self::F;
    fn floor(self, a: Self::F) -> Self::F;
    fn ceil(self, a: Self::F) -> Self::F;

    fn lt(self, a: Self::F, b: Self::F) -> Self::M;
    fn le(self, a: Self::F, b: Self::F) -> Self::M;
    fn eq(self, a: Self::F, b: Self::F) -> Self::M;
    /// Lanes that hold NaN.
    fn is_nan(self, a: Self::F) -> Self::M;
    fn and_m(self, a: Self::M, b: Self::M) -> Self::M;
    fn or_m(self, a: Self::M, b: Self::M) -> Self::M;
    /// Lanes `from..to`.
    fn lanes(self, from: usize, to: usize) -> Self::M;
    /// Lanes whose byte is not 0.
    fn mask_bytes(self, x: &[u8; LANES]) -> Self::M;
    /// Whether any lane is set.
    fn any(self, m: Self::M) -> bool;
    /// `m ? a : b`.
    fn select(self, m: Self::M, a: Self::F, b: Self::F) -> Self::F;

    fn splat_i(self, x: i32) -> Self::I;
    fn load_i(self, x: &[u32; LANES]) -> Self::I;
    fn store_i(self, v: Self::I, out: &mut [u32; LANES]);
    fn add_i(self, a: Self::I, b: Self::I) -> Self::I;
    fn sub_i(self, a: Self::I, b: Self::I) -> Self::I;
    fn mul_i(self, a: Self::I, b: Self::I) -> Self::I;
    fn and_i(self, a: Self::I, b: Self::I) -> Self::I;
    fn or_i(self, a: Self::I, b: Self::I) -> Self::I;
    fn xor_i(self, a: Self::I, b: Self::I) -> Self::I;
    fn shl(self, a: Self::I, bits: u32) -> Self::I;
    /// Shifts in zeros.
    fn shr(self, a: Self::I, bits: u32) -> Self::I;
    /// Shifts in the sign.
    fn sra(self, a: Self::I, bits: u32) -> Self::I;
    fn to_f(self, a: Self::I) -> Self::F;
    /// Nearest integer, ties to even; unspecified outside the range of i32.
    fn round_i(self, a: Self::F) -> Self::I;
    fn bits_i(self, a: Self::F) -> Self::I;
    fn bits_f(self, a: Self::I) -> Self::F;
    /// The low 4 bits as 0.0 to 15.0.
    fn nibble(self, a: Self::I) -> Self::F;
    /// Each byte (0 to 15) becomes the table's entry of that number.
    fn lookup_bytes(self, table: &[u8; 16], index: Self::I) -> Self::I;
    /// The table's entries; `N` is a power of two, and indices count modulo `N`.
    fn gather<const N: usize>(self, table: &[u32; N], index: Self::I) -> Self::I;
    /// Adds to each lane of `acc` the four products of an unsigned byte of `u` and a signed byte of `x`, exactly.
    fn dot4(self, acc: Self::I, u: Self::I, x: Self::I) -> Self::I;
    /// Zero-extended bytes.
    fn load_u8(self, x: &[u8; LANES]) -> Self::I;
    /// Lanes from -128 to 127 as signed bytes.
    fn store_i8(self, v: Self::I, out: &mut [u8; LANES]);
    /// f16 bits to f32, exactly.
    fn load_f16(self, x: &[u16; LANES]) -> Self::F;
    /// f32 to f16 bits, to nearest, ties to even.
    fn store_f16(self, v: Self::F, out: &mut [u16; LANES]);
    /// The sum in the fixed tree: lane i with i + 8, then + 4, + 2, + 1.
    fn sum(self, v: Self::F) -> f32;
    /// Rows become columns.
    fn transpose(self, rows: &mut [Self::F; LANES]);

    #[inline(always)]
    fn zero(self) -> Self::F {
        self.splat(0.0)
    }
    #[inline(always)]
    fn neg(self, a: Self::F) -> Self::F {
        self.bits_f(self.xor_i(self.bits_i(a), self.splat_i(i32::MIN)))
    }
    #[inline(always)]
    fn abs(self, a: Self::F) -> Self::F {
        self.bits_f(self.and_i(self.bits_i(a), self.splat_i(i32::MAX)))
    }
    /// `x`, but no less than `low` and no more than `high`, which are not zero; NaN stays.
    #[inline(always)]
    fn clamp(self, x: Self::F, low: f32, high: f32) -> Self::F {
        self.max(self.min(x, self.splat(high)), self.splat(low))
    }
    /// `x` times 2 to the integer `n`, rounded once: for x from 0.5 to 2 and n from -200 to 200.
    #[inline(always)]
    fn scale(self, x: Self::F, n: Self::F) -> Self::F {
        // In two steps, since 2^n itself may be out of range.
        let n = self.round_i(n);
        let half = self.sra(n, 1);
        let power = |n| self.bits_f(self.shl(self.add_i(n, self.splat_i(127)), 23));
        self.mul(self.mul(x, power(half)), power(self.sub_i(n, half)))
    }
    /// Sign-extended bytes.
    #[inline(always)]
    fn load_i8(self, x: &[u8; LANES]) -> Self::I {
        self.sra(self.shl(self.load_u8(x), 24), 24)
    }
    /// bf16 bits to f32, exactly.
    #[inline(always)]
    fn load_bf16(self, x: &[u16; LANES]) -> Self::F {
        let mut wide = [0u32; LANES];
        for (w, &x) in wide.iter_mut().zip(x) {
            *w = u32::from(x) << 16;
        }
        self.bits_f(self.load_i(&wide))
    }
    /// f32 to bf16 bits, to nearest, ties to even; NaN stays NaN.
    #[inline(always)]
    fn store_bf16(self, v: Self::F, out: &mut [u16; LANES]) {
        let mut bits = [0u32; LANES];
        self.store_i(self.bits_i(v), &mut bits);
        for (o, b) in out.iter_mut().zip(bits) {
            let rounded = b.wrapping_add(0x7fff + (b >> 16 & 1)) >> 16;
            let quiet = b >> 16 | 0x40;
            *o = if b & 0x7fff_ffff > 0x7f80_0000 { quiet as u16 } else { rounded as u16 };
        }
    }
    /// The fixed tree of [`sum`](Self::sum) with `max`: NaN where any lane is NaN.
    #[inline(always)]
    fn fold_max(self, v: Self::F) -> f32 {
        self.fold(v, |a, b| if a > b || a.is_nan() { a } else { b })
    }
    /// Combines the lanes in the fixed tree.
    #[inline(always)]
    fn fold(self, v: Self::F, f: impl Fn(f32, f32) -> f32) -> f32 {
        let mut x = [0.0; LANES];
        self.store(v, &mut x);
        let mut width = LANES / 2;
        while width > 0 {
            for i in 0..width {
                x[i] = f(x[i], x[i + width]);
            }
            width /= 2;
        }
        x[0]
    }
}

/// A computation that is compiled once per level. Implement `run` with `#[inline(always)]`.
pub trait Kernel {
    /// What it returns.
    type Output;
    /// Runs with the instructions of `s`.
    fn run<S: Simd>(self, s: S) -> Self::Output;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Level {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// An instruction set that this machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SimdLevel(Level);

impl SimdLevel {
    /// Plain Rust: everywhere.
    pub const fn portable() -> Self {
        Self(Level::Portable)
    }

    /// Every level of this machine, the fastest last.
    pub fn available() -> Vec<Self> {
        #[allow(unused_mut)]
        let mut levels = vec![Self::portable()];
        #[cfg(target_arch = "x86_64")]
        {
            if avx2::detected() {
                levels.push(Self(Level::Avx2));
            }
            if avx2::detected() && avx512::detected() {
                levels.push(Self(Level::Avx512));
            }
        }
        levels
    }

    /// The fastest level of this machine.
    pub fn best() -> Self {
        Self::available().pop().unwrap_or(Self::portable())
    }

    /// The name: `portable`, `avx2`, `avx512`.
    pub fn name(self) -> &'static str {
        match self.0 {
            Level::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => "avx512",
        }
    }

    /// Whether a multiply and an add are rounded once: all such levels give the same bits.
    pub fn fuses(self) -> bool {
        self.0 != Level::Portable || portable::FUSES
    }

    /// [`Simd::DIRECT`].
    pub(crate) fn is_direct(self) -> bool {
        match self.0 {
            Level::Portable => portable::Portable::DIRECT,
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => avx2::Avx2::DIRECT,
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => avx512::Avx512::DIRECT,
        }
    }

    /// Runs a kernel at this level.
    pub fn dispatch<K: Kernel>(self, kernel: K) -> K::Output {
        match self.0 {
            Level::Portable => kernel.run(portable::Portable),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => avx2::run(kernel),
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => avx512::run(kernel),
        }
    }
}
