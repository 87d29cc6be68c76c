//! The tokens that are still in question, best first, as far as anyone needs to know.
//!
//! A vocabulary has 256,000 tokens and a choice falls on one of a few dozen, so nothing here sorts them all.

use std::cmp::Ordering;

/// A token and its logit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Candidate {
    pub(super) id: u32,
    pub(super) logit: f32,
}

/// Higher logits first; of equals, lower ids.
fn order(a: &Candidate, b: &Candidate) -> Ordering {
    b.logit.total_cmp(&a.logit).then(a.id.cmp(&b.id))
}

/// Cuts `candidates` to the best `k` and sorts these.
pub(super) fn keep_best(candidates: &mut Vec<Candidate>, k: usize) {
    sort_best(candidates, k);
    candidates.truncate(k);
}

/// Puts the best `k` in front, sorted.
pub(super) fn sort_best(candidates: &mut [Candidate], k: usize) {
    if k == 0 {
        return;
    }
    if k < candidates.len() {
        candidates.select_nth_unstable_by(k - 1, order);
    }
    let k = k.min(candidates.len());
    candidates[..k].sort_unstable_by(order);
}

/// The highest logit.
pub(super) fn highest(candidates: &[Candidate]) -> f32 {
    candidates.iter().map(|c| c.logit).fold(f32::NEG_INFINITY, f32::max)
}

/// The unnormalised probability of a logit: `exp(logit - highest)`, by a portable `exp`, so that all machines draw
/// the same.
pub(super) fn weight(logit: f32, highest: f32) -> f64 {
    libm::exp(f64::from(logit) - f64::from(highest))
}

/// Keeps the best tokens that together reach the probability `p`; at least one.
pub(super) fn keep_probable(candidates: &mut Vec<Candidate>, p: f32) {
    let highest = highest(candidates);
    let total: f64 = candidates.iter().map(|c| weight(c.logit, highest)).sum();
    let enough = total * f64::from(p);
    let (mut sorted, mut sum) = (0, 0.0);
    while sorted < candidates.len() {
        // The best are found in growing portions; mostly the first is enough.
        let rest = &mut candidates[sorted..];
        let portion = (sorted * 4).max(64).min(rest.len());
        sort_best(rest, portion);
        for at in sorted..sorted + portion {
            sum += weight(candidates[at].logit, highest);
            if sum >= enough {
                candidates.truncate(at + 1);
                return;
            }
        }
        sorted += portion;
    }
}

/// Keeps tokens of at least `p` times the probability of the best.
pub(super) fn keep_near_best(candidates: &mut Vec<Candidate>, p: f32) {
    let least = f64::from(highest(candidates)) + libm::log(f64::from(p));
    candidates.retain(|c| f64::from(c.logit) >= least);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(logits: &[f32]) -> Vec<Candidate> {
        logits.iter().zip(0..).map(|(&logit, id)| Candidate { id, logit }).collect()
    }

    fn ids(candidates: &[Candidate]) -> Vec<u32> {
        candidates.iter().map(|c| c.id).collect()
    }

    #[test]
    fn the_best_are_sorted_and_equals_go_by_id() {
        let mut c = of(&[1.0, 3.0, 2.0, 3.0]);
        keep_best(&mut c, 3);
        assert_eq!(ids(&c), [1, 3, 2]);
    }

    #[test]
    fn probable_tokens_are_those_that_reach_p() {
        // Probabilities 0.5, 0.3, 0.2.
        let logits = [0.2f32.ln(), 0.5f32.ln(), 0.3f32.ln()];
        let kept = |p| {
            let mut c = of(&logits);
            keep_probable(&mut c, p);
            ids(&c)
        };
        assert_eq!(kept(0.0), [1]);
        assert_eq!(kept(0.45), [1]);
        assert_eq!(kept(0.7), [1, 2]);
        assert_eq!(kept(0.9), [1, 2, 0]);
    }

    #[test]
    fn near_the_best_means_a_part_of_its_probability() {
        let mut c = of(&[0.5f32.ln(), 0.1f32.ln(), 0.04f32.ln()]);
        keep_near_best(&mut c, 0.19);
        assert_eq!(ids(&c), [0, 1]);
        keep_near_best(&mut c, 1.0);
        assert_eq!(ids(&c), [0]);
    }

    proptest! {
        #[test]
        fn portions_give_what_a_full_sort_gives(
            logits in proptest::collection::vec(-8f32..8.0, 1..1500),
            p in 0f32..0.999,
        ) {
            let mut all = of(&logits);
            all.sort_by(order);
            let highest = all[0].logit;
            let total: f64 = all.iter().map(|c| weight(c.logit, highest)).sum();
            let mut sum = 0.0;
            let mut expected = Vec::new();
            for c in &all {
                expected.push(c.id);
                sum += weight(c.logit, highest);
                if sum >= total * f64::from(p) {
                    break;
                }
            }
            let mut kept = of(&logits);
            keep_probable(&mut kept, p);
            // Sums in another order differ by rounding: the border may move by a token.
            prop_assert!(kept.len().abs_diff(expected.len()) <= 1);
            let common = kept.len().min(expected.len());
            prop_assert_eq!(&ids(&kept)[..common], &expected[..common]);
        }
    }
}
