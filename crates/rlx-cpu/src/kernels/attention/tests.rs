use half::f16;

use super::*;
use crate::testing::{Numbers, close, everywhere, same_bits_everywhere};

fn heads(num_heads: usize, num_kv_heads: usize, head_dim: usize) -> Heads {
    Heads { num_heads, num_kv_heads, head_dim, scale: 1.0 / (head_dim as f32).sqrt(), softcap: None }
}

/// One query against the given keys (j, bias) in f64.
fn query(
    heads: &Heads,
    q: &[f32],
    seen: &[(usize, f64)],
    k: impl Fn(usize, usize) -> f64,
    v: impl Fn(usize, usize) -> f64,
) -> Vec<f64> {
    let scores: Vec<f64> = seen
        .iter()
        .map(|&(j, bias)| {
            let dot: f64 = q.iter().enumerate().map(|(d, &q)| f64::from(q) * k(j, d)).sum();
            let score = dot * f64::from(heads.scale);
            heads.softcap.map_or(score, |cap| f64::from(cap) * (score / f64::from(cap)).tanh()) + bias
        })
        .collect();
    let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = scores.iter().map(|s| (s - max).exp()).collect();
    let sum: f64 = weights.iter().sum();
    (0..heads.head_dim)
        .map(|d| {
            let total: f64 = seen.iter().zip(&weights).map(|(&(j, _), w)| w * v(j, d)).sum();
            if seen.is_empty() { 0.0 } else { total / sum }
        })
        .collect()
}

struct Case {
    heads: Heads,
    starts: Vec<i32>,
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
}

impl Case {
    fn new(heads: Heads, lengths: &[i32]) -> Self {
        let mut starts = vec![0];
        for l in lengths {
            starts.push(starts.last().unwrap() + l);
        }
        let tokens = *starts.last().unwrap() as usize;
        let mut numbers = Numbers::new(heads.head_dim as u64);
        let mut make = |n: usize| numbers.floats(tokens * n * heads.head_dim);
        let (q, k, v) = (make(heads.num_heads), make(heads.num_kv_heads), make(heads.num_kv_heads));
        Self { heads, starts, q: q.iter().map(|q| 4.0 * q).collect(), k, v }
    }

    fn tokens(&self) -> usize {
        *self.starts.last().unwrap() as usize
    }

    fn q(&self) -> Tokens<'_, f32> {
        Tokens::dense(&self.q, self.heads.num_heads * self.heads.head_dim)
    }

    fn kv(&self) -> (Tokens<'_, f32>, Tokens<'_, f32>) {
        let width = self.heads.num_kv_heads * self.heads.head_dim;
        (Tokens::dense(&self.k, width), Tokens::dense(&self.v, width))
    }

    fn run(&self, cpu: Cpu<'_>, mask: Mask<'_>) -> Vec<f32> {
        let mut out = vec![f32::NAN; self.q.len()];
        ragged(cpu, self.heads, self.q(), self.kv(), &self.starts, mask, &mut out).unwrap();
        out
    }

    fn reference(&self, bias: impl Fn(usize, usize, usize, usize) -> Option<f64>) -> Vec<f64> {
        let Heads { num_heads, num_kv_heads, head_dim, .. } = self.heads;
        let mut out = Vec::new();
        for n in 0..self.tokens() {
            let span = self.starts.windows(2).find(|w| (w[0] as usize..w[1] as usize).contains(&n)).unwrap();
            let (start, len) = (span[0] as usize, (span[1] - span[0]) as usize);
            for h in 0..num_heads {
                let seen: Vec<_> = (0..len).filter_map(|j| Some((j, bias(h, n, n - start, j)?))).collect();
                let kv = h / (num_heads / num_kv_heads);
                let at = |x: &[f32], j: usize, d: usize| {
                    f64::from(x[((start + j) * num_kv_heads + kv) * head_dim + d])
                };
                let q = &self.q[(n * num_heads + h) * head_dim..][..head_dim];
                out.extend(query(&self.heads, q, &seen, |j, d| at(&self.k, j, d), |j, d| at(&self.v, j, d)));
            }
        }
        out
    }
}

/// Weights are off by the error of a score (a dot product of `head_dim` terms up to 4), values are at most 1.
fn tolerance(heads: &Heads) -> f64 {
    6e-8 * (8.0 * (heads.head_dim as f64).sqrt() * 4.0 + 60.0)
}

#[test]
fn masks_match_f64() {
    let shapes = [heads(3, 3, 32), heads(6, 2, 64), heads(2, 1, 8), heads(2, 1, 80), heads(2, 2, 288)];
    for (i, mut heads) in shapes.into_iter().enumerate() {
        heads.softcap = (i == 1).then_some(3.0);
        let case = Case::new(heads, &[5, 0, 70, 1, 131]);
        let tokens = case.tokens();
        let mut numbers = Numbers::new(2);
        let keys = 140;
        let flags: Vec<u8> =
            (0..heads.num_heads * tokens * keys).map(|_| (numbers.float() > 0.2).into()).collect();
        let biases: Vec<f32> = (0..tokens * keys)
            .map(|_| numbers.float())
            .map(|b| if b > 0.5 { f32::NEG_INFINITY } else { b })
            .collect();
        let custom = MaskTable { data: &flags, heads: heads.num_heads, keys };
        let bias = MaskTable { data: &biases, heads: 1, keys };
        let when = |seen: bool| seen.then_some(0.0);
        everywhere(|cpu| {
            let check = |mask: Mask<'_>, reference: &[f64]| {
                let what =
                    format!("{heads:?} {} {cpu:?}", format!("{mask:?}").chars().take(20).collect::<String>());
                close(&what, &case.run(cpu, mask), reference, |_| tolerance(&heads));
            };
            check(Mask::None, &case.reference(|_, _, _, _| Some(0.0)));
            check(Mask::Causal, &case.reference(|_, _, i, j| when(j <= i)));
            check(Mask::SlidingWindow(40), &case.reference(|_, _, i, j| when(j <= i && i < j + 40)));
            check(Mask::SlidingWindow(0), &case.reference(|_, _, _, _| None));
            check(Mask::Local(17), &case.reference(|_, _, i, j| when(i.abs_diff(j) <= 17)));
            check(
                Mask::Custom(custom),
                &case.reference(|h, n, _, j| when(flags[(h * tokens + n) * keys + j] != 0)),
            );
            let bias_of =
                |n: usize, j: usize| Some(f64::from(biases[n * keys + j])).filter(|b| b.is_finite());
            check(Mask::Bias(bias), &case.reference(|_, n, _, j| bias_of(n, j)));
        });
    }
}

#[test]
fn bits_do_not_depend_on_batch_threads_or_level() {
    for mask in [Mask::None, Mask::Causal, Mask::SlidingWindow(30), Mask::Local(9)] {
        let case = Case::new(heads(6, 3, 64), &[90, 3, 200]);
        let width = 6 * 64;
        same_bits_everywhere(|cpu| case.run(cpu, mask));
        everywhere(|cpu| {
            let all = case.run(cpu, mask);
            for w in case.starts.windows(2) {
                let (from, to) = (w[0] as usize, w[1] as usize);
                let alone = Case {
                    heads: case.heads,
                    starts: vec![0, w[1] - w[0]],
                    q: case.q[from * width..to * width].to_vec(),
                    k: case.k[from * width / 2..to * width / 2].to_vec(),
                    v: case.v[from * width / 2..to * width / 2].to_vec(),
                };
                assert!(alone.run(cpu, mask) == all[from * width..to * width], "{cpu:?}");
            }
        });
    }
}

#[test]
fn invisible_keys_do_not_matter_and_visible_nan_is_kept() {
    let mut case = Case::new(heads(2, 1, 32), &[150]);
    let width = 64;
    everywhere(|cpu| {
        let clean = case.run(cpu, Mask::Causal);
        let (k, v) = (case.k.clone(), case.v.clone());
        case.k[100 * 32..101 * 32].fill(f32::NAN);
        case.v[120 * 32..121 * 32].fill(f32::INFINITY);
        let flags: Vec<u8> =
            (0..150 * 150).map(|i| (i % 150 != 100 && i % 150 != 120 && i % 150 <= i / 150).into()).collect();
        let dirty = case.run(cpu, Mask::Causal);
        assert!(dirty[..100 * width] == clean[..100 * width]);
        assert!(dirty[100 * width..].iter().all(|y| y.is_nan()));
        let custom = Mask::Custom(MaskTable { data: &flags, heads: 1, keys: 150 });
        assert!(case.run(cpu, custom).iter().all(|y| y.is_finite()));
        (case.k, case.v) = (k, v);
    });
}

/// A state with shuffled pages that holds the keys of a case of one sequence.
fn pages_of<T: Copy>(
    case: &Case,
    page_len: usize,
    zero: T,
    to: impl Fn(f32) -> T,
) -> (Vec<T>, Vec<T>, Vec<i32>) {
    let row = case.heads.num_kv_heads * case.heads.head_dim;
    let count = case.tokens().div_ceil(page_len);
    let table: Vec<i32> = (0..count).map(|p| ((p * 7 + 3) % (count + 8)) as i32).collect();
    let mut pages = [vec![zero; (count + 8) * page_len * row], vec![zero; (count + 8) * page_len * row]];
    for (pages, source) in pages.iter_mut().zip([&case.k, &case.v]) {
        for (j, values) in source.chunks(row).enumerate() {
            let at = (table[j / page_len] as usize * page_len + j % page_len) * row;
            for (o, &x) in pages[at..at + row].iter_mut().zip(values) {
                *o = to(x);
            }
        }
    }
    let [k, v] = pages;
    (k, v, table)
}

#[test]
fn a_single_step_over_pages_has_the_bits_of_a_prefill() {
    for head_dim in [16, 64, 128] {
        let case = Case::new(heads(6, 2, head_dim), &[171]);
        let (k, v, table) = pages_of(&case, 16, f16::ZERO, f16::from_f32);
        let pages =
            Pages { k: &k[..], v: &v[..], page_len: 16, block_table: &table, table_width: table.len() };
        let width = 6 * head_dim;
        for mask in [Mask::Causal, Mask::SlidingWindow(70)] {
            everywhere(|cpu| {
                let run = |from: usize, to: usize| {
                    let mut out = vec![f32::NAN; (to - from) * width];
                    let q = &case.q[from * width..to * width];
                    let starts = [0, (to - from) as i32];
                    paged(
                        cpu,
                        case.heads,
                        Tokens::dense(q, case.heads.num_heads * case.heads.head_dim),
                        &starts,
                        &[to as i32],
                        pages,
                        mask,
                        &mut out,
                    )
                    .unwrap();
                    out
                };
                let all = run(0, 171);
                for (from, to) in [(0, 1), (63, 64), (64, 65), (100, 140), (170, 171)] {
                    assert!(run(from, to) == all[from * width..to * width], "{from}..{to} {cpu:?}");
                }
                // Two sequences in one batch: the second one a decode step.
                let mut both = table.clone();
                both.extend(&table);
                let pages = Pages { block_table: &both, ..pages };
                let mut out = vec![f32::NAN; 31 * width];
                let mut q = case.q[..30 * width].to_vec();
                q.extend(&case.q[150 * width..151 * width]);
                paged(
                    cpu,
                    case.heads,
                    Tokens::dense(&q, case.heads.num_heads * case.heads.head_dim),
                    &[0, 30, 31],
                    &[30, 151],
                    pages,
                    mask,
                    &mut out,
                )
                .unwrap();
                assert!(out[..30 * width] == all[..30 * width]);
                assert!(out[30 * width..] == all[150 * width..151 * width]);
            });
        }
    }
}

#[test]
fn pages_of_f32_have_the_bits_of_ragged_attention() {
    let case = Case::new(heads(4, 2, 32), &[100]);
    let (k, v, table) = pages_of(&case, 24, 0.0f32, |x| x);
    let pages = Pages { k: &k[..], v: &v[..], page_len: 24, block_table: &table, table_width: table.len() };
    everywhere(|cpu| {
        let mut out = vec![0.0; case.q.len()];
        paged(cpu, case.heads, case.q(), &[0, 100], &[100], pages, Mask::Causal, &mut out).unwrap();
        assert_eq!(out, case.run(cpu, Mask::Causal));
    });
}

#[test]
fn wrong_operands_are_refused() {
    let case = Case::new(heads(2, 1, 16), &[20]);
    let pool = crate::testing::pool(1);
    let cpu = Cpu { pool: &pool, level: crate::simd::SimdLevel::best() };
    let mut out = vec![0.0; case.q.len()];
    for starts in [&[0, 21][..], &[-1, 20], &[], &[0, 25, 20]] {
        assert!(ragged(cpu, case.heads, case.q(), case.kv(), starts, Mask::None, &mut out).is_err());
    }
    let bad = heads(3, 2, 16);
    assert!(ragged(cpu, bad, case.q(), case.kv(), &[0, 20], Mask::None, &mut out).is_err());
    let small = Mask::Custom(MaskTable { data: &[1; 20 * 19], heads: 1, keys: 19 });
    assert!(ragged(cpu, case.heads, case.q(), case.kv(), &[0, 20], small, &mut out).is_err());
    let (k, v, table) = pages_of(&case, 8, 0.0f32, |x| x);
    let mut run = |table: &[i32], length: i32| {
        let pages = Pages { k: &k[..], v: &v[..], page_len: 8, block_table: table, table_width: 3 };
        paged(cpu, case.heads, case.q(), &[0, 20], &[length], pages, Mask::Causal, &mut out)
    };
    run(&table, 20).unwrap();
    for (table, length) in
        [(&[0, 1, -1][..], 20), (&[0, 1, 999], 20), (&table, 25), (&table, 19), (&table, -5)]
    {
        let e = run(table, length).unwrap_err();
        assert!(e.message().contains("sequence 0"), "{e}");
    }
}

#[test]
fn no_tokens_give_no_result() {
    everywhere(|cpu| {
        let mut out: [f32; 0] = [];
        let empty: &[f32] = &[];
        let empty = Tokens::dense(empty, 32);
        ragged(cpu, heads(2, 1, 16), empty, (empty, empty), &[0, 0], Mask::Causal, &mut out).unwrap();
    });
}

#[test]
fn tokens_of_a_joint_row_and_tokens_behind_the_last_sequence() {
    let case = Case::new(heads(4, 2, 16), &[9, 0, 5]);
    // One row holds q, k and v of a token; two more tokens belong to no sequence.
    let mut joint = Vec::new();
    for n in 0..case.tokens() {
        joint.extend_from_slice(&case.q[n * 64..][..64]);
        joint.extend_from_slice(&case.k[n * 32..][..32]);
        joint.extend_from_slice(&case.v[n * 32..][..32]);
    }
    joint.extend([f32::NAN; 2 * 128]);
    everywhere(|cpu| {
        let part = |from: usize| Tokens { data: &joint[from..], stride: 128 };
        let mut out = vec![7.0; 16 * 64];
        ragged(cpu, case.heads, part(0), (part(64), part(96)), &case.starts, Mask::Causal, &mut out).unwrap();
        assert_eq!(out[..14 * 64], case.run(cpu, Mask::Causal));
        assert!(out[14 * 64..].iter().all(|x| *x == 0.0));
    });
}

#[test]
fn tokens_of_no_sequence_give_zeros() {
    everywhere(|cpu| {
        let heads = Heads { num_heads: 2, num_kv_heads: 1, head_dim: 4, scale: 0.5, softcap: None };
        let (q, kv) = ([1.0f32; 6 * 8], [2.0f32; 6 * 4]);
        let (q, kv) = (Tokens::dense(&q, 8), Tokens::dense(&kv, 4));
        let mut out = vec![f32::NAN; 6 * 8];
        ragged(cpu, heads, q, (kv, kv), &[1, 3, 3, 5], Mask::None, &mut out).unwrap();
        assert!(out[..8].iter().chain(&out[40..]).all(|y| *y == 0.0));
        assert!(out[8..40].iter().all(|y| *y == 2.0));
        ragged(cpu, heads, q, (kv, kv), &[3], Mask::None, &mut out).unwrap();
        assert!(out.iter().all(|y| *y == 0.0));
    });
}
