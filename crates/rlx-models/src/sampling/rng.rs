//! A random number generator that never changes: the same seed gives the same tokens in every version.

/// PCG-XSH-RR 64/32 (O'Neill, "PCG: A Family of Simple Fast Space-Efficient Statistically Good Algorithms for Random
/// Number Generation", 2014), on the reference's default stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng {
    state: u64,
}

const MULTIPLIER: u64 = 6_364_136_223_846_793_005;
const INCREMENT: u64 = 1_442_695_040_888_963_407;

impl Rng {
    /// A generator whose numbers follow from `seed`.
    pub fn new(seed: u64) -> Self {
        let mut rng = Self { state: 0 };
        rng.next_u32();
        rng.state = rng.state.wrapping_add(seed);
        rng.next_u32();
        rng
    }

    /// The next 32 random bits.
    pub fn next_u32(&mut self) -> u32 {
        let old = self.state;
        self.state = old.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT);
        let xorshifted = (((old >> 18) ^ old) >> 27) as u32;
        xorshifted.rotate_right((old >> 59) as u32)
    }

    /// The next number in `[0, 1)`, with 53 random bits.
    pub fn next_f64(&mut self) -> f64 {
        let high = u64::from(self.next_u32()) << 21;
        let low = u64::from(self.next_u32()) >> 11;
        (high | low) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_fixed_for_ever() {
        // By the same recurrence in exact integers.
        let mut state: u128 = 0;
        let step = |s: u128| (s * u128::from(MULTIPLIER) + u128::from(INCREMENT)) % (1 << 64);
        state = step(state);
        state = step((state + 42) % (1 << 64));
        let mut rng = Rng::new(42);
        for _ in 0..100 {
            let x = ((((state >> 18) ^ state) >> 27) % (1 << 32)) as u32;
            let turn = (state >> 59) as u32;
            // A rotation, as a product of 64 bits.
            let spread = u64::from(x) << ((32 - turn) % 32);
            assert_eq!(rng.next_u32(), (spread | (spread >> 32)) as u32);
            state = step(state);
        }
    }

    #[test]
    fn numbers_fill_the_unit_interval() {
        let mut rng = Rng::new(7);
        let numbers: Vec<f64> = (0..10_000).map(|_| rng.next_f64()).collect();
        assert!(numbers.iter().all(|n| (0.0..1.0).contains(n)));
        let mean = numbers.iter().sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
    }
}
