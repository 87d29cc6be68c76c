//! Frequencies of rotary position embeddings, with the ways to stretch them beyond the trained length.
//!
//! `hf.rs` and `gguf.rs` read the configuration of either layout.

pub(super) mod gguf;
pub(super) mod hf;

use std::f64::consts::TAU;

use rlx_ir::bail;
use rlx_ir::ops::position::rope::RopeStyle;

use crate::{Error, Result};

/// How frequencies are stretched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RopeScaling {
    /// As trained.
    None,
    /// All frequencies divided by `factor` (Chen et al. 2023, position interpolation).
    Linear {
        /// How many times longer the text may be.
        factor: f64,
    },
    /// Llama 3.1: low frequencies divided by `factor`, high ones kept, those between blended.
    Llama3 {
        /// How many times longer the text may be.
        factor: f64,
        /// Waves longer than `original_context / low_freq_factor` are stretched.
        low_freq_factor: f64,
        /// Waves shorter than `original_context / high_freq_factor` are kept.
        high_freq_factor: f64,
        /// The trained length in tokens.
        original_context: f64,
    },
    /// YaRN (Peng et al. 2023): a ramp over the dimensions between kept and divided frequencies.
    Yarn {
        /// How many times longer the text may be.
        factor: f64,
        /// The trained length in tokens.
        original_context: f64,
        /// Turns within the trained length above which a frequency is kept.
        beta_fast: f64,
        /// Turns within the trained length below which a frequency is divided.
        beta_slow: f64,
        /// The factor of sine and cosine.
        attention_factor: f64,
        /// Whether the ends of the ramp are rounded to whole dimensions.
        truncate: bool,
    },
}

/// The rotary position embedding of a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RopeConfig {
    /// Which elements make a pair.
    pub style: RopeStyle,
    /// The base of the frequencies.
    pub theta: f64,
    /// How many elements of a head are rotated; even.
    pub rotary_dim: usize,
    /// How frequencies are stretched.
    pub scaling: RopeScaling,
}

impl RopeConfig {
    /// Checks what the parts mean together.
    ///
    /// # Errors
    /// `InvalidFile` naming the value that makes no sense.
    pub fn check(&self, head_dim: usize) -> Result<()> {
        if !self.rotary_dim.is_multiple_of(2) || self.rotary_dim == 0 || self.rotary_dim > head_dim {
            bail!(
                InvalidFile,
                "{} rotated elements of a head: expected an even number up to the {head_dim} elements it has",
                self.rotary_dim
            );
        }
        let positive: &[(&str, f64)] = match &self.scaling {
            RopeScaling::None => &[("rope_theta", self.theta)],
            RopeScaling::Linear { factor } => &[("rope_theta", self.theta), ("rope factor", *factor)],
            RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_context } => &[
                ("rope_theta", self.theta),
                ("rope factor", *factor),
                ("low_freq_factor", *low_freq_factor),
                ("high_freq_factor", *high_freq_factor),
                ("high_freq_factor - low_freq_factor", high_freq_factor - low_freq_factor),
                ("original_max_position_embeddings", *original_context),
            ],
            RopeScaling::Yarn {
                factor, original_context, beta_fast, beta_slow, attention_factor, ..
            } => &[
                ("rope_theta", self.theta),
                ("rope factor", *factor),
                ("original context", *original_context),
                ("beta_fast", *beta_fast),
                ("beta_slow", *beta_slow),
                ("attention factor", *attention_factor),
            ],
        };
        for (name, value) in positive {
            if !(value.is_finite() && *value > 0.0) {
                bail!(InvalidFile, "{name} is {value}, expected a finite number above 0");
            }
        }
        Ok(())
    }

    /// The angle per position of each pair, f32 `[rotary_dim / 2]`. `divisors` come from the model's file and divide the
    /// frequencies on top.
    ///
    /// # Errors
    /// `InvalidFile` where `divisors` are not one positive number per pair.
    pub fn inv_freq(&self, divisors: Option<&[f32]>) -> Result<Vec<f32>> {
        let pairs = self.rotary_dim / 2;
        if let Some(divisors) = divisors {
            if divisors.len() != pairs {
                bail!(InvalidFile, "{} rope factors, expected {pairs}", divisors.len());
            }
            if let Some(bad) = divisors.iter().find(|f| !(f.is_finite() && **f > 0.0)) {
                bail!(InvalidFile, "a rope factor is {bad}, expected a finite number above 0");
            }
        }
        let trained = |i: usize| 1.0 / libm::pow(self.theta, (2 * i) as f64 / self.rotary_dim as f64);
        let stretched = (0..pairs).map(|i| self.stretch(i, trained(i)));
        Ok(match divisors {
            None => stretched.map(|f| f as f32).collect(),
            Some(d) => stretched.zip(d).map(|(f, d)| (f / f64::from(*d)) as f32).collect(),
        })
    }

    /// What frequencies are divided by where GGUF files hold that in a tensor, f32 `[rotary_dim / 2]`; `None` where they do not.
    pub fn divisors(&self) -> Option<Vec<f32>> {
        let RopeScaling::Llama3 { .. } = self.scaling else { return None };
        let trained = |i: usize| 1.0 / libm::pow(self.theta, (2 * i) as f64 / self.rotary_dim as f64);
        let divisor = |i: usize| (trained(i) / self.stretch(i, trained(i))) as f32;
        Some((0..self.rotary_dim / 2).map(divisor).collect())
    }

    /// The factor of sine and cosine.
    pub fn scale(&self) -> f64 {
        match self.scaling {
            RopeScaling::Yarn { attention_factor, .. } => attention_factor,
            _ => 1.0,
        }
    }

    fn stretch(&self, pair: usize, frequency: f64) -> f64 {
        match self.scaling {
            RopeScaling::None => frequency,
            RopeScaling::Linear { factor } => frequency / factor,
            RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_context } => {
                let wavelength = TAU / frequency;
                if wavelength < original_context / high_freq_factor {
                    frequency
                } else if wavelength > original_context / low_freq_factor {
                    frequency / factor
                } else {
                    let turns = original_context / wavelength;
                    let keep = (turns - low_freq_factor) / (high_freq_factor - low_freq_factor);
                    (1.0 - keep) * frequency / factor + keep * frequency
                }
            }
            RopeScaling::Yarn { factor, original_context, beta_fast, beta_slow, truncate, .. } => {
                // The dimension whose frequency makes `turns` turns within the trained length.
                let dimension = |turns: f64| {
                    self.rotary_dim as f64 * libm::log(original_context / (turns * TAU))
                        / (2.0 * libm::log(self.theta))
                };
                let (mut low, mut high) = (dimension(beta_fast), dimension(beta_slow));
                if truncate {
                    (low, high) = (low.floor(), high.ceil());
                }
                let (low, high) = (low.max(0.0), high.min(self.rotary_dim as f64 - 1.0));
                let width = if low == high { 0.001 } else { high - low };
                let divided = ((pair as f64 - low) / width).clamp(0.0, 1.0);
                frequency / factor * divided + frequency * (1.0 - divided)
            }
        }
    }
}

/// The factor of sine and cosine that YaRN recommends for a stretch by `factor`.
pub fn yarn_attention_factor(factor: f64, mscale: f64) -> f64 {
    if factor <= 1.0 { 1.0 } else { 0.1 * mscale * libm::log(factor) + 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rope(scaling: RopeScaling) -> RopeConfig {
        RopeConfig { style: RopeStyle::Half, theta: 10_000.0, rotary_dim: 8, scaling }
    }

    #[test]
    fn plain_frequencies_are_powers_of_theta() {
        let freq = rope(RopeScaling::None).inv_freq(None).unwrap();
        for (f, expected) in freq.iter().zip([1.0, 0.1, 0.01, 0.001]) {
            assert!((f - expected).abs() < 1e-8, "{freq:?}");
        }
        let halved = rope(RopeScaling::Linear { factor: 2.0 }).inv_freq(None).unwrap();
        assert!(halved.iter().zip(&freq).all(|(h, f)| h * 2.0 == *f));
    }

    #[test]
    fn llama3_keeps_short_waves_and_divides_long_ones() {
        let scaling = RopeScaling::Llama3 {
            factor: 8.0,
            low_freq_factor: 1.0,
            high_freq_factor: 4.0,
            original_context: 128.0,
        };
        let freq = rope(scaling).inv_freq(None).unwrap();
        // Wavelengths 6.3, 62.8, 628, 6283 against the borders 32 and 128.
        assert_eq!(freq[0], 1.0);
        let keep = (128.0 * 0.1 / TAU - 1.0) / 3.0;
        assert!((f64::from(freq[1]) - (0.1 * keep + 0.1 / 8.0 * (1.0 - keep))).abs() < 1e-8);
        assert!((freq[2] - 0.01 / 8.0).abs() < 1e-8 && (freq[3] - 0.001 / 8.0).abs() < 1e-9);
    }

    #[test]
    fn yarn_ramps_from_kept_to_divided() {
        let scaling = RopeScaling::Yarn {
            factor: 4.0,
            original_context: 1000.0,
            beta_fast: 32.0,
            beta_slow: 1.0,
            attention_factor: yarn_attention_factor(4.0, 1.0),
            truncate: true,
        };
        let yarn = rope(scaling);
        let freq = yarn.inv_freq(None).unwrap();
        // Dimensions 0.7 and 2.2 become the ramp from 0 to 3.
        for (i, f) in freq.iter().enumerate() {
            let plain = 0.1f64.powi(i as i32);
            let divided = i as f64 / 3.0;
            assert!((f64::from(*f) - plain * (1.0 - divided + divided / 4.0)).abs() < 1e-8, "{freq:?}");
        }
        assert!((yarn.scale() - 1.138_629_4).abs() < 1e-6);
        assert_eq!(yarn_attention_factor(0.5, 1.0), 1.0);
    }

    #[test]
    fn divisors_are_checked_and_applied() {
        let rope = rope(RopeScaling::None);
        let freq = rope.inv_freq(Some(&[1.0, 1.0, 2.0, 4.0])).unwrap();
        assert!((freq[3] - 0.001 / 4.0).abs() < 1e-9 && (freq[1] - 0.1).abs() < 1e-8);
        assert!(rope.inv_freq(Some(&[1.0; 3])).is_err());
        assert!(rope.inv_freq(Some(&[1.0, 1.0, 0.0, 1.0])).is_err());
    }

    #[test]
    fn senseless_values_are_named() {
        let e = rope(RopeScaling::Linear { factor: 0.0 }).check(8).unwrap_err();
        assert!(e.message().contains("rope factor is 0"), "{e}");
        assert!(rope(RopeScaling::None).check(7).is_err());
        let odd = RopeConfig { rotary_dim: 5, ..rope(RopeScaling::None) };
        assert!(odd.check(8).is_err());
        let llama3 = RopeScaling::Llama3 {
            factor: 8.0,
            low_freq_factor: 4.0,
            high_freq_factor: 4.0,
            original_context: 64.0,
        };
        assert!(rope(llama3).check(8).unwrap_err().message().contains("high_freq_factor"));
    }
}
