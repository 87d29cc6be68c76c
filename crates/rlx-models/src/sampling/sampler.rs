//! The chain from logits to a token.

use std::collections::{BTreeSet, HashMap, VecDeque};

use rlx_ir::bail;

use super::SamplingParams;
use super::candidates::{self, Candidate};
use super::rng::Rng;
use crate::{Error, Result};

/// Chooses tokens: bias, penalties, top-k, top-p, min-p, temperature, draw, in this order.
///
/// With temperature 0 the highest logit after bias and penalties wins, and of equals the lowest id.
///
/// ```
/// use rlx_models::sampling::{Sampler, SamplingParams};
///
/// let mut sampler = Sampler::new(SamplingParams::greedy())?;
/// assert_eq!(sampler.sample(&[0.5, 2.0, 2.0])?, 1);
/// # Ok::<(), rlx_models::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sampler {
    params: SamplingParams,
    rng: Rng,
    /// The last tokens, for the penalties.
    recent: VecDeque<u32>,
    candidates: Vec<Candidate>,
}

impl Sampler {
    /// A sampler at the start of its random numbers.
    ///
    /// # Errors
    /// `InvalidArgument` if a parameter is out of range.
    pub fn new(params: SamplingParams) -> Result<Self> {
        params.validate()?;
        let rng = Rng::new(params.seed);
        Ok(Self { params, rng, recent: VecDeque::new(), candidates: Vec::new() })
    }

    /// The parameters.
    pub fn params(&self) -> &SamplingParams {
        &self.params
    }

    /// Tells the sampler of a token of the prompt or of the continuation, for the penalties. [`Sampler::sample`] does
    /// not do it by itself.
    pub fn accept(&mut self, token: u32) {
        if self.params.penalty_last_n == 0 {
            return;
        }
        if self.recent.len() == self.params.penalty_last_n {
            self.recent.pop_front();
        }
        self.recent.push_back(token);
    }

    /// Checks that the bias fits a vocabulary of so many tokens, before logits of it are there.
    ///
    /// # Errors
    /// `InvalidArgument` if a biased token is none of them, or if the bias bans all.
    pub fn check(&self, tokens: usize) -> Result<()> {
        let bias = &self.params.logit_bias;
        if let Some((token, _)) = bias.iter().find(|(token, _)| *token as usize >= tokens) {
            bail!(InvalidArgument, "logit_bias names token {token}, and there are {tokens} tokens");
        }
        let banned = bias.iter().filter(|(_, bias)| *bias == f32::NEG_INFINITY);
        if banned.map(|(token, _)| token).collect::<BTreeSet<_>>().len() == tokens {
            bail!(InvalidArgument, "logit_bias bans every token");
        }
        Ok(())
    }

    /// Chooses the next token by its logits, f32 `[vocab_size]`.
    ///
    /// # Errors
    /// `NonFinite` if a logit is NaN or infinite, naming the token; the sampler stays as it was. `InvalidArgument`
    /// if there are no logits, if a biased token is none of them, or if the bias bans all.
    pub fn sample(&mut self, logits: &[f32]) -> Result<u32> {
        if logits.is_empty() {
            bail!(InvalidArgument, "no logits to choose a token by");
        }
        if let Some(at) = logits.iter().position(|l| !l.is_finite()) {
            bail!(NonFinite, "the logit of token {at} is {}, so no token can be chosen", logits[at]);
        }
        let mut chosen = std::mem::take(&mut self.candidates);
        chosen.clear();
        chosen.extend(logits.iter().zip(0u32..).map(|(&logit, id)| Candidate { id, logit }));
        let token = self.choose(&mut chosen);
        self.candidates = chosen;
        token
    }

    fn choose(&mut self, candidates: &mut Vec<Candidate>) -> Result<u32> {
        let params = &self.params;
        for &(token, bias) in &params.logit_bias {
            match candidates.get_mut(token as usize) {
                Some(c) => c.logit = (c.logit + bias).min(f32::MAX),
                None => bail!(
                    InvalidArgument,
                    "logit_bias names token {token}, and there are {} tokens",
                    candidates.len()
                ),
            }
        }
        self.penalize(candidates);
        let highest = candidates::highest(candidates);
        if highest == f32::NEG_INFINITY {
            bail!(InvalidArgument, "logit_bias bans every token");
        }
        if params.is_greedy() {
            return Ok(candidates.iter().find(|c| c.logit == highest).map_or(0, |c| c.id));
        }
        if params.top_k != 0 {
            candidates::keep_best(candidates, params.top_k);
        }
        if params.top_p < 1.0 {
            candidates::keep_probable(candidates, params.top_p);
        }
        if params.min_p > 0.0 {
            candidates::keep_near_best(candidates, params.min_p);
        }
        Ok(draw(candidates, params.temperature, &mut self.rng))
    }

    fn penalize(&self, candidates: &mut [Candidate]) {
        let p = &self.params;
        if p.repetition_penalty == 1.0 && p.presence_penalty == 0.0 && p.frequency_penalty == 0.0 {
            return;
        }
        let mut counts: HashMap<u32, u32> = HashMap::new();
        for &token in &self.recent {
            *counts.entry(token).or_default() += 1;
        }
        for (token, count) in counts {
            let Some(c) = candidates.get_mut(token as usize) else { continue };
            let repeated =
                if c.logit <= 0.0 { c.logit * p.repetition_penalty } else { c.logit / p.repetition_penalty };
            let penalty = count as f32 * p.frequency_penalty + p.presence_penalty;
            c.logit = (repeated - penalty).min(f32::MAX);
        }
    }
}

/// Draws a token with the probabilities of `logit / temperature`.
fn draw(candidates: &[Candidate], temperature: f32, rng: &mut Rng) -> u32 {
    let highest = candidates::highest(candidates);
    let scale = f64::from(temperature);
    let weight = |c: &Candidate| libm::exp((f64::from(c.logit) - f64::from(highest)) / scale);
    let total: f64 = candidates.iter().map(weight).sum();
    let mut left = rng.next_f64() * total;
    let mut last = 0;
    for c in candidates {
        let weight = weight(c);
        if weight > 0.0 {
            last = c.id;
            left -= weight;
            if left < 0.0 {
                break;
            }
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use rlx_ir::ErrorKind;

    use super::*;

    const LOGITS: [f32; 5] = [1.0, 2.0, 0.5, 2.0, -1.0];

    fn open() -> SamplingParams {
        SamplingParams::default().temperature(1.0).top_k(0).top_p(1.0).min_p(0.0)
    }

    fn shares(params: SamplingParams, logits: &[f32]) -> Vec<f64> {
        let mut sampler = Sampler::new(params).unwrap();
        let mut counts = vec![0.0; logits.len()];
        for _ in 0..20_000 {
            counts[sampler.sample(logits).unwrap() as usize] += 1.0 / 20_000.0;
        }
        counts
    }

    #[test]
    fn tokens_come_as_often_as_their_probability_says() {
        for temperature in [0.5f32, 1.0, 2.0] {
            let shares = shares(open().temperature(temperature), &LOGITS);
            let weights = LOGITS.map(|l| f64::from(l / temperature).exp());
            let total: f64 = weights.iter().sum();
            for (share, weight) in shares.iter().zip(weights) {
                assert!((share - weight / total).abs() < 0.02, "{share} {weight}");
            }
        }
    }

    #[test]
    fn each_filter_leaves_out_what_it_should() {
        assert_eq!(shares(open().top_k(1), &LOGITS)[1], shares(SamplingParams::greedy(), &LOGITS)[1]);
        assert_eq!(shares(open().top_k(2), &LOGITS)[0], 0.0);
        assert_eq!(shares(open().top_p(0.5), &LOGITS)[2], 0.0);
        assert_eq!(shares(open().min_p(0.9), &LOGITS)[0], 0.0);
    }

    #[test]
    fn the_filters_go_before_the_temperature() {
        // At temperature 100 all five are alike, but top-p and min-p saw them before.
        let shares = shares(open().temperature(100.0).min_p(0.9), &LOGITS);
        assert!(shares[0] == 0.0 && shares[1] > 0.4 && shares[3] > 0.4, "{shares:?}");
    }

    #[test]
    fn greedy_takes_the_lowest_of_equal_ids_and_no_random_number() {
        let mut sampler = Sampler::new(SamplingParams::greedy().seed(3)).unwrap();
        assert_eq!(sampler.sample(&LOGITS).unwrap(), 1);
        assert_eq!(sampler.rng, Rng::new(3));
    }

    #[test]
    fn the_same_seed_gives_the_same_tokens() {
        let logits: Vec<f32> = (0..1000).map(|i| ((i * 37) % 101) as f32 / 25.0).collect();
        let tokens = |seed| {
            let mut sampler = Sampler::new(SamplingParams::default().seed(seed)).unwrap();
            (0..12).map(|_| sampler.sample(&logits).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(tokens(42), tokens(42));
        assert_ne!(tokens(42), tokens(43));
    }

    #[test]
    fn penalties_hit_the_tokens_that_came_before() {
        let mut sampler = Sampler::new(SamplingParams::greedy().repetition_penalty(2.0)).unwrap();
        sampler.accept(1);
        assert_eq!(sampler.sample(&LOGITS).unwrap(), 3);
        sampler.accept(3);
        assert_eq!(sampler.sample(&LOGITS).unwrap(), 0, "of three that are 1.0 now");
        assert_eq!(sampler.sample(&[-1.0, -1.5, -9.0, -9.0]).unwrap(), 0, "negative logits grow more so");
        let mut sampler = Sampler::new(SamplingParams::greedy().frequency_penalty(0.6)).unwrap();
        sampler.accept(1);
        sampler.accept(1);
        sampler.accept(3);
        assert_eq!(sampler.sample(&LOGITS).unwrap(), 3);
        let mut sampler =
            Sampler::new(SamplingParams::greedy().presence_penalty(1.2).penalty_last_n(1)).unwrap();
        sampler.accept(3);
        sampler.accept(1);
        assert_eq!(sampler.sample(&LOGITS).unwrap(), 3, "token 3 has left the window");
    }

    #[test]
    fn bias_moves_and_bans_tokens() {
        let biased = |token, bias| {
            Sampler::new(SamplingParams::greedy().logit_bias(token, bias)).and_then(|mut s| s.sample(&LOGITS))
        };
        assert_eq!(biased(4, 9.0).unwrap(), 4);
        assert_eq!(biased(1, f32::NEG_INFINITY).unwrap(), 3);
        assert_eq!(biased(5, 1.0).unwrap_err().kind(), ErrorKind::InvalidArgument);
        assert_eq!(biased(1, f32::NAN).unwrap_err().kind(), ErrorKind::InvalidArgument);
        let mut params = open();
        for token in 0..5 {
            params = params.logit_bias(token, f32::NEG_INFINITY);
        }
        let mut sampler = Sampler::new(params).unwrap();
        assert!(sampler.sample(&LOGITS).unwrap_err().to_string().contains("every token"));
        assert!(sampler.check(5).unwrap_err().to_string().contains("every token"));
        assert!(sampler.check(4).unwrap_err().to_string().contains("token 4"));
        assert!(sampler.check(6).is_ok());
    }

    #[test]
    fn logits_that_are_no_numbers_are_an_error_that_leaves_the_sampler_usable() {
        let mut sampler = Sampler::new(SamplingParams::default()).unwrap();
        let before = sampler.rng.clone();
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let e = sampler.sample(&[0.0, bad]).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::NonFinite);
            assert!(e.to_string().contains("token 1"), "{e}");
        }
        assert_eq!(sampler.sample(&[]).unwrap_err().kind(), ErrorKind::InvalidArgument);
        assert_eq!(sampler.rng, before);
        assert!(sampler.sample(&LOGITS).is_ok());
    }

    #[test]
    fn extreme_logits_do_not_overflow() {
        let mut sampler = Sampler::new(open().temperature(f32::MIN_POSITIVE)).unwrap();
        assert_eq!(sampler.sample(&[-f32::MAX, f32::MAX, 0.0]).unwrap(), 1);
    }

    #[test]
    fn parameters_out_of_range_are_named() {
        let bad = [
            ("temperature", open().temperature(-0.1)),
            ("temperature", open().temperature(f32::NAN)),
            ("top_p", open().top_p(1.1)),
            ("min_p", open().min_p(-1.0)),
            ("repetition_penalty", open().repetition_penalty(0.0)),
            ("presence_penalty", open().presence_penalty(f32::INFINITY)),
            ("frequency_penalty", open().frequency_penalty(f32::NAN)),
        ];
        for (name, params) in bad {
            let e = Sampler::new(params).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::InvalidArgument);
            assert!(e.to_string().starts_with(name), "{e}");
        }
    }
}
