use super::*;
use crate::testing::{Numbers, canonical};

struct Map<'a, G> {
    x: &'a [f32],
    out: &'a mut [f32],
    f: G,
}

/// A function of a vector, generic over the level.
trait OfVector {
    fn call<S: Simd>(&self, s: S, x: S::F) -> S::F;
}

impl<G: OfVector> Kernel for Map<'_, G> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        for (x, out) in self.x.chunks(LANES).zip(self.out.chunks_mut(LANES)) {
            let mut y = [0.0; LANES];
            s.store(self.f.call(s, s.load(&tail(x, 0.0))), &mut y);
            out.copy_from_slice(&y[..out.len()]);
        }
    }
}

/// Checks a function at every level: `ulps` of the result plus `absolute`, the same bits at every position.
fn check<G: OfVector + Copy>(
    name: &str,
    f: G,
    reference: impl Fn(f64) -> f64,
    x: &[f32],
    ulps: f64,
    absolute: f64,
) {
    for level in SimdLevel::available() {
        let mut y = vec![0.0; x.len()];
        level.dispatch(Map { x, out: &mut y, f });
        for (&x, &y) in x.iter().zip(&y) {
            let r = reference(f64::from(x));
            let ulp = f64::from((r as f32).abs()).max(1.2e-38) * 2f64.powi(-23);
            let error = (f64::from(y) - r).abs();
            let same = canonical(y) == canonical(r as f32) || y == r as f32;
            assert!(
                same || error <= ulps * ulp + absolute,
                "{name}({x:e}) = {y:e}, expected {r:e}, {level:?}"
            );
        }
        // The same value at another position and in a tail.
        for shift in [1, 7] {
            let mut z = vec![0.0; x.len() - shift];
            level.dispatch(Map { x: &x[shift..], out: &mut z, f });
            assert!(
                z.iter().zip(&y[shift..]).all(|(a, b)| canonical(*a) == canonical(*b)),
                "{name} {level:?}"
            );
        }
    }
}

fn inputs(low: f32, high: f32) -> Vec<f32> {
    let mut numbers = Numbers::new(1);
    let mut x: Vec<f32> = (0..20_003).map(|_| low + (high - low) * (numbers.float() * 0.5 + 0.5)).collect();
    x.extend((0..3000).map(|_| numbers.float() * 1e-3));
    x.extend([
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        f32::MIN_POSITIVE,
        1e-40,
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
    ]);
    x
}

macro_rules! functions {
    ($($name:ident = $f:expr;)*) => {
        $(#[derive(Clone, Copy)]
        struct $name;
        impl OfVector for $name {
            #[inline(always)]
            fn call<S: Simd>(&self, s: S, x: S::F) -> S::F {
                $f(s, x)
            }
        })*
    };
}

functions! {
    Exp = math::exp;
    Ln = math::ln;
    Tanh = math::tanh;
    Erf = math::erf;
    Sigmoid = math::sigmoid;
    Silu = math::silu;
    Gelu = math::gelu;
    GeluTanh = math::gelu_tanh;
    Rsqrt = math::rsqrt;
    Sin = |s, x| math::sin_cos(s, x).0;
    Cos = |s, x| math::sin_cos(s, x).1;
}

fn gelu(x: f64) -> f64 {
    0.5 * x * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2)
}

fn gelu_tanh(x: f64) -> f64 {
    let inner = 2.0 * 0.797_884_560_802_865_4 * (x + 0.044_715 * x * x * x);
    x * (1.0 / (1.0 + (-inner).exp()))
}

#[test]
fn functions_are_accurate_to_a_few_ulps() {
    check("exp", Exp, f64::exp, &inputs(-110.0, 95.0), 2.0, 1e-44);
    check("ln", Ln, f64::ln, &inputs(-1.0, 20.0), 2.0, 0.0);
    check("ln", Ln, f64::ln, &inputs(0.0, 1e38), 2.0, 0.0);
    check("tanh", Tanh, f64::tanh, &inputs(-12.0, 12.0), 3.0, 0.0);
    check("erf", Erf, libm::erf, &inputs(-6.0, 6.0), 3.0, 0.0);
    check("sigmoid", Sigmoid, |x| 1.0 / (1.0 + (-x).exp()), &inputs(-100.0, 100.0), 4.0, 1e-44);
    let silu = |x: f64| x * (1.0 / (1.0 + (-x).exp()));
    check("silu", Silu, silu, &inputs(-95.0, 95.0), 4.0, 2e-43);
    check("gelu", Gelu, gelu, &inputs(-13.0, 13.0), 16.0, 2e-43);
    // The argument of the exponential is rounded: relative errors grow with it.
    check("gelu_tanh", GeluTanh, gelu_tanh, &inputs(-5.0, 20.0), 64.0, 1e-44);
    check("rsqrt", Rsqrt, |x| 1.0 / x.sqrt(), &inputs(0.0, 100.0), 1.5, 0.0);
    for range in [10.0, 8000.0, 1e6] {
        let finite: Vec<f32> = inputs(-range, range).into_iter().filter(|x| x.is_finite()).collect();
        check("sin", Sin, f64::sin, &finite, 2.0, 1e-7);
        check("cos", Cos, f64::cos, &finite, 2.0, 1e-7);
    }
}

struct Probe;

impl Kernel for Probe {
    type Output = Vec<u32>;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> Vec<u32> {
        let mut numbers = Numbers::new(4);
        let special = [f32::NAN, f32::INFINITY, -0.0, 0.0, 1e-40, -1e-40, 65504.0, 65520.0, 1e9, 3.0e38];
        let mut out = Vec::new();
        for round in 0..40 {
            let mut a: [f32; LANES] = std::array::from_fn(|_| numbers.float() * 4.0);
            let mut b: [f32; LANES] = std::array::from_fn(|_| numbers.float() * 4.0);
            a[round % LANES] = special[round % special.len()];
            b[(round + 3) % LANES] = special[(round + 1) % special.len()];
            let (x, y) = (s.load(&a), s.load(&b));
            let words: [u32; LANES] = std::array::from_fn(|_| numbers.next() as u32);
            let other: [u32; LANES] = std::array::from_fn(|_| numbers.next() as u32);
            let (u, v) = (s.load_i(&words), s.load_i(&other));
            let bytes: [u8; LANES] = std::array::from_fn(|i| (words[i] & 3) as u8);
            let halves: [u16; LANES] = std::array::from_fn(|i| words[i] as u16);
            let one = s.splat(1.0);
            let pick = |m| s.select(m, one, s.zero());
            let unit = s.bits_f(s.or_i(s.and_i(u, s.splat_i(0x007f_ffff)), s.splat_i(0x3f80_0000)));
            let floats = [
                s.clamp(x, -1.5, 2.5),
                s.scale(unit, s.splat(round as f32 * 10.0 - 200.0)),
                s.scale(unit, s.splat(-126.0 - round as f32)),
                s.add(x, y),
                s.sub(x, y),
                s.mul(x, y),
                s.div(x, y),
                s.sqrt(x),
                s.max(x, y),
                s.min(x, y),
                s.round(x),
                s.floor(x),
                s.ceil(x),
                pick(s.lt(x, y)),
                pick(s.le(x, y)),
                pick(s.eq(x, x)),
                pick(s.is_nan(x)),
                pick(s.and_m(s.lt(x, y), s.lt(y, one))),
                pick(s.or_m(s.lt(x, y), s.lt(y, one))),
                pick(s.lanes(round % 5, round % 17)),
                pick(s.mask_bytes(&bytes)),
                s.neg(x),
                s.abs(x),
                s.nibble(u),
                s.to_f(u),
                s.load_f16(&halves),
                s.load_bf16(&halves),
            ];
            for f in floats {
                let mut stored = [0.0; LANES];
                s.store(f, &mut stored);
                out.extend(stored.map(canonical));
            }
            let ints = [
                s.add_i(u, v),
                s.sub_i(u, v),
                s.mul_i(u, v),
                s.and_i(u, v),
                s.or_i(u, v),
                s.xor_i(u, v),
                s.shl(u, 5),
                s.shr(u, 7),
                s.sra(u, 9),
                s.dot4(u, v, u),
                s.load_u8(&bytes),
                s.load_i8(&bytes),
                s.bits_i(s.bits_f(u)),
                s.round_i(s.splat(a[(round + 1) % LANES].clamp(-9.0, 9.0))),
            ];
            for i in ints {
                let mut stored = [0; LANES];
                s.store_i(i, &mut stored);
                out.extend(stored);
            }
            let mut stored = [0u16; LANES];
            s.store_f16(s.select(s.is_nan(x), one, x), &mut stored);
            out.extend(stored.map(u32::from));
            s.store_bf16(s.select(s.is_nan(x), one, x), &mut stored);
            out.extend(stored.map(u32::from));
            out.extend([s.sum(x), s.fold_max(x), s.fold(y, |a, b| a * b)].map(canonical));
            out.push(u32::from(s.any(s.lt(x, y))));
            let mut square: [S::F; LANES] = std::array::from_fn(|i| s.add(x, s.splat(i as f32)));
            s.transpose(&mut square);
            for row in square {
                let mut stored = [0.0; LANES];
                s.store(row, &mut stored);
                out.extend(stored.map(canonical));
            }
        }
        out
    }
}

#[test]
fn every_operation_means_the_same_at_every_level() {
    let expected = SimdLevel::portable().dispatch(Probe);
    for level in SimdLevel::available() {
        let got = level.dispatch(Probe);
        let first = got.iter().zip(&expected).position(|(a, b)| a != b);
        assert_eq!(first, None, "{level:?}");
    }
}

#[test]
fn reductions_keep_nan_and_their_units() {
    struct All<'a>(&'a [f32]);
    impl Kernel for All<'_> {
        type Output = [f32; 4];
        #[inline(always)]
        fn run<S: Simd>(self, s: S) -> [f32; 4] {
            [reduce_sum(s, self.0), reduce_max(s, self.0), reduce_min(s, self.0), reduce_prod(s, self.0)]
        }
    }
    for level in SimdLevel::available() {
        assert_eq!(level.dispatch(All(&[])), [0.0, f32::NEG_INFINITY, f32::INFINITY, 1.0]);
        assert_eq!(level.dispatch(All(&[2.0, -3.0, 4.0])), [3.0, 4.0, -3.0, -24.0]);
        for at in [0, 5, 16, 33] {
            let mut x = vec![1.0; 34];
            x[at] = f32::NAN;
            assert!(level.dispatch(All(&x)).iter().all(|y| y.is_nan()), "{level:?} {at}");
        }
    }
}

struct Tables;

impl Kernel for Tables {
    type Output = ([u32; LANES], [u32; LANES]);

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> Self::Output {
        let bytes: [u8; 16] = std::array::from_fn(|i| 200 + i as u8);
        let words: [u32; 64] = std::array::from_fn(|i| 1 << 31 | i as u32);
        let index: [u32; LANES] =
            std::array::from_fn(|i| 0x0f00_0703 + 0x0001_0000 * (i as u32 % 16) + 64 * i as u32);
        let index = s.load_i(&index);
        let mut out = ([0; LANES], [0; LANES]);
        s.store_i(s.lookup_bytes(&bytes, s.and_i(index, s.splat_i(0x0f0f_0f0f))), &mut out.0);
        s.store_i(s.gather(&words, index), &mut out.1);
        out
    }
}

#[test]
fn tables_are_looked_up_by_byte_and_by_lane() {
    for level in SimdLevel::available() {
        let (bytes, words) = level.dispatch(Tables);
        for i in 0..LANES as u32 {
            let index = 0x0f00_0703 + 0x0001_0000 * i + 64 * i;
            let expected = (index & 0x0f0f_0f0f).to_le_bytes().map(|b| 200 + b);
            assert_eq!(bytes[i as usize].to_le_bytes(), expected, "{level:?}");
            assert_eq!(words[i as usize], (1 << 31) | (index % 64), "{level:?}");
        }
    }
}
