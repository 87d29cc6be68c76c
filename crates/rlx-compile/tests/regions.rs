//! What must hold of the regions of plans, on pseudo-random encoders: layers of several kinds, some of them disturbed.

#![allow(clippy::panic, clippy::unwrap_used)] // helpers of tests

use rlx_compile::plan::{PlanRegion, RegionKind, Unit};
use rlx_compile::{
    CompileOptions, Compute, OpFacts, Plan, PrecisionPolicy, RegionFacts, Support, Target, build_plan,
    run_passes,
};
use rlx_ir::interp::SplitMix64;
use rlx_ir::ops::activation::Activation;
use rlx_ir::ops::attention::{attention::Attention, mask::Mask};
use rlx_ir::ops::embedding::embedding::Embedding;
use rlx_ir::ops::matmul::linear::Linear;
use rlx_ir::ops::pooling::pool::PoolMode;
use rlx_ir::ops::position::rope::RopeStyle;
use rlx_ir::quant::BlockType;
use rlx_ir::{Builder, DType, Dim, Graph, Tensor, Value};

const SEEDS: u64 = 150;
const HIDDEN: usize = 64;

/// Claims some kinds, and lets results overwrite operands.
struct Device {
    claims: fn(&RegionKind) -> bool,
    in_place: bool,
}

impl Target for Device {
    fn supports(&self, _: &OpFacts<'_>) -> Support {
        Support::Yes
    }

    fn in_place(&self, facts: &OpFacts<'_>) -> Option<usize> {
        (self.in_place && !facts.op.writes_state()).then_some(0)
    }

    fn claims(&self, facts: &RegionFacts<'_>) -> Support {
        assert_eq!(facts.region_steps().len(), facts.region.steps.len());
        match (self.claims)(&facts.region.kind) {
            true => Support::Yes,
            false => Support::No("not this one".to_owned()),
        }
    }
}

const CLAIMS: [fn(&RegionKind) -> bool; 5] = [
    |_| false,
    |_| true,
    |kind| matches!(kind, RegionKind::AttentionBlock(_)),
    |kind| matches!(kind, RegionKind::BertLayer(_) | RegionKind::EmbeddingBlock(_)),
    |kind| matches!(kind, RegionKind::EmbeddingBlock(e) if e.cast.is_none()),
];

/// How a layer differs from one that is recognised.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// An op that reads the layer's input stands in the middle.
    Between,
    /// Norms come before.
    PreNorm,
    /// The result of attention is returned too.
    Returned,
    /// The other feed-forward part than its kind has.
    OtherKind,
}

struct Encoder {
    b: Builder,
    random: SplitMix64,
    n: Dim,
    starts: Value,
    positions: Value,
    frequencies: Value,
    outputs: Vec<Value>,
    /// What is to be found: BERT layers, Nomic layers, attention blocks.
    expected: [usize; 3],
}

impl Encoder {
    fn new(seed: u64) -> Self {
        let mut b = Builder::new("encoder");
        let (n, r) = (b.symbol("N", 96), b.symbol("R", 8));
        let starts = b.input("starts", DType::I32, [r + 1.into()]).unwrap();
        let positions = b.input("positions", DType::I32, [n.clone()]).unwrap();
        let frequencies = b.constant(Tensor::f32([8], &[0.5; 8]).unwrap());
        let random = SplitMix64::new(seed);
        Self { b, random, n, starts, positions, frequencies, outputs: Vec::new(), expected: [0; 3] }
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.random.below(n) == 0
    }

    fn vector(&mut self, name: &str) -> Value {
        self.b.weight(name, DType::F32, [HIDDEN]).unwrap()
    }

    fn linear(&mut self, name: &str, x: Value, [to, from]: [usize; 2], activation: Activation) -> Value {
        let w = self.b.weight(name, DType::Block(BlockType::Q8_0), [to, from]).unwrap();
        let bias = self.b.weight(&format!("{name}.bias"), DType::F32, [to]).unwrap();
        self.b.linear(x, w, Linear { activation, ..Linear::default() }, Some(bias), None).unwrap()
    }

    /// `x + residual` and its norm, in one op or in two.
    fn add_norm(&mut self, name: &str, x: Value, residual: Value) -> (Value, Value) {
        let (w, bias) = (self.vector(name), self.vector(&format!("{name}.bias")));
        if self.one_in(2) {
            return self.b.add_layer_norm(x, residual, w, Some(bias), 1e-12).unwrap();
        }
        let sum = if self.one_in(2) { self.b.add(x, residual) } else { self.b.add(residual, x) }.unwrap();
        (sum, self.b.layer_norm(sum, w, Some(bias), 1e-12).unwrap())
    }

    fn embeddings(&mut self) -> Value {
        let ids = self.b.input("ids", DType::I32, [self.n.clone()]).unwrap();
        let mut x = None;
        for (i, rows) in [100, 64, 2].into_iter().enumerate().take(1 + self.random.below(3)) {
            let table = self.b.weight(&format!("table.{i}"), DType::F32, [rows, HIDDEN]).unwrap();
            let term = match i {
                2 => self.b.slice(table, 0, Dim::constant(0), Dim::constant(1)).unwrap(),
                1 => self.b.embedding(table, self.positions, Embedding::default()).unwrap(),
                _ => self.b.embedding(table, ids, Embedding::default()).unwrap(),
            };
            x = Some(x.map_or(term, |x| self.b.add(x, term).unwrap()));
        }
        let (w, bias) = (self.vector("norm"), self.vector("norm.bias"));
        self.b.layer_norm(x.unwrap(), w, Some(bias), 1e-12).unwrap()
    }

    fn layer(&mut self, index: usize, input: Value, fault: Fault) -> Value {
        self.b.set_scope(format!("layers.{index}"));
        let name = |part: &str| format!("{index}.{part}");
        let (rotated, mut gated) = match self.random.below(2) {
            0 => (true, true),
            _ => (false, false),
        };
        gated ^= fault == Fault::OtherKind;
        let mut x = input;
        if fault == Fault::PreNorm {
            let w = self.vector(&name("pre"));
            x = self.b.layer_norm(input, w, None, 1e-5).unwrap();
        }
        let mut heads = Vec::new();
        for part in ["q", "k", "v"] {
            let y = self.linear(&name(part), x, [HIDDEN, HIDDEN], Activation::None);
            let y = self.b.reshape(y, [self.n.clone(), 4.into(), 16.into()]).unwrap();
            heads.push(match rotated && part != "v" {
                true => self.b.rope(y, self.positions, self.frequencies, RopeStyle::Half, 1.0).unwrap(),
                false => y,
            });
        }
        let attention = Attention { mask: Mask::None, scale: 0.25, softcap: None };
        let y = self.b.attention(heads[0], heads[1], heads[2], self.starts, None, attention).unwrap();
        let y = self.b.reshape(y, [self.n.clone(), HIDDEN.into()]).unwrap();
        if fault == Fault::Between {
            // Pooling takes another shape, so that no other op can take it in.
            self.outputs.push(self.b.pool(input, self.starts, PoolMode::Max).unwrap());
        }
        if fault == Fault::Returned {
            self.outputs.push(y);
        }
        let y = self.linear(&name("output"), y, [HIDDEN, HIDDEN], Activation::None);
        let (sum, x) = self.add_norm(&name("attention_norm"), y, input);
        let y = if gated {
            let gate = self.linear(&name("gate"), x, [128, HIDDEN], Activation::None);
            let up = self.linear(&name("up"), x, [128, HIDDEN], Activation::None);
            let gate = self.b.silu(gate).unwrap();
            self.b.mul(gate, up).unwrap()
        } else {
            self.linear(&name("up"), x, [128, HIDDEN], Activation::Gelu)
        };
        let y = self.linear(&name("down"), y, [HIDDEN, 128], Activation::None);
        match fault {
            Fault::None => self.expected[usize::from(rotated)] += 1,
            Fault::PreNorm => return self.b.add(y, sum).unwrap(),
            _ => {}
        }
        if !matches!(fault, Fault::Between | Fault::Returned) {
            self.expected[2] += 1;
        }
        self.add_norm(&name("norm"), y, x).1
    }

    fn build(mut self) -> (Graph, [usize; 3]) {
        let mut x = if self.one_in(3) {
            self.b.input("x", DType::F32, [self.n.clone(), HIDDEN.into()]).unwrap()
        } else {
            self.embeddings()
        };
        for index in 0..1 + self.random.below(3) {
            let faults = [Fault::Between, Fault::PreNorm, Fault::Returned, Fault::OtherKind];
            let fault = match self.random.below(8) {
                i if i < faults.len() => faults[i],
                _ => Fault::None,
            };
            x = self.layer(index, x, fault);
            if fault == Fault::PreNorm {
                self.expected[2] += 1;
            }
        }
        let pooled = self.b.pool(x, self.starts, PoolMode::Mean).unwrap();
        let pooled = self.b.l2_normalize(pooled, 1e-12).unwrap();
        self.outputs.push(pooled);
        if self.one_in(2) {
            self.outputs.push(x);
        }
        (self.b.finish(&self.outputs).unwrap(), self.expected)
    }
}

fn count(plan: &Plan, name: &str) -> usize {
    plan.regions.iter().filter(|r| r.kind.name() == name).count()
}

fn places(plan: &Plan) -> Vec<(&RegionKind, &std::ops::Range<usize>)> {
    plan.regions.iter().map(|PlanRegion { kind, steps, .. }| (kind, steps)).collect()
}

#[test]
fn regions_of_pseudo_random_encoders() {
    let (mut found, mut parted) = ([0; 5], 0);
    for seed in 0..SEEDS {
        let (graph, expected) = Encoder::new(seed).build();
        for compute in [Compute::F32, Compute::F16, Compute::Int8] {
            let fuse = seed % 3 > 0;
            let options = CompileOptions {
                precision: PrecisionPolicy::new(compute),
                fuse,
                ..CompileOptions::default()
            };
            let device = |claims, in_place| Device { claims, in_place };
            let (graph, _) = run_passes(graph.clone(), &device(CLAIMS[0], false), &options).unwrap();
            for in_place in [false, true] {
                let plain = build_plan(&graph, &device(CLAIMS[0], in_place)).unwrap();
                let layers = [count(&plain, "bert_layer"), count(&plain, "nomic_layer")];
                let blocks = count(&plain, "attention_block");
                // Casts of what layers hand on may stand within blocks whose norms come before.
                let all = blocks == expected[2] || (compute == Compute::F16 && blocks <= expected[2]);
                let as_built = layers == expected[..2] && all && count(&plain, "pooling_head") > 0;
                assert!(
                    as_built || !fuse,
                    "seed {seed}, {compute:?}: {layers:?}, {blocks} of {expected:?}\n{plain}"
                );
                for (i, claims) in CLAIMS.into_iter().enumerate() {
                    let plan = build_plan(&graph, &device(claims, in_place)).unwrap();
                    plan.verify_regions().unwrap_or_else(|e| panic!("seed {seed}: {e}\n{plan}"));
                    assert_eq!(places(&plan), places(&plain), "seed {seed}\n{plan}{plain}");
                    let claimed = plan.regions.iter().filter(|r| r.is_claimed());
                    found[i] += claimed.clone().count();
                    let units: usize = plan
                        .units()
                        .map(|unit| match unit {
                            Unit::Step(_) => 1,
                            Unit::Region(region) => region.steps.len(),
                        })
                        .sum();
                    assert_eq!(units, plan.steps.len());
                    let names = |plan: &Plan| {
                        plan.steps.iter().map(|s| s.action.name().to_owned()).collect::<Vec<_>>()
                    };
                    assert_eq!(names(&plan), names(&plain));
                    parted += usize::from(plan.buffers.len() > plain.buffers.len());
                }
            }
        }
    }
    assert!(found[0] == 0 && found[1..].iter().all(|&n| n > 100) && parted > 20, "{found:?}, {parted}");
}

/// The checks that the test above relies on find what is wrong.
#[test]
fn the_verifier_finds_faults() {
    let claims = |kind: &RegionKind| !matches!(kind, RegionKind::AttentionBlock(_));
    let plan = (0..SEEDS).find_map(|seed| {
        let (graph, expected) = Encoder::new(seed).build();
        let device = Device { claims, in_place: true };
        let (graph, _) = run_passes(graph, &device, &CompileOptions::default()).unwrap();
        (expected[0] > 0).then(|| build_plan(&graph, &device).unwrap())
    });
    let plan = plan.unwrap();
    let layer = plan.regions.iter().position(|r| r.kind.name() == "bert_layer").unwrap();
    let broken = |change: &dyn Fn(&mut Plan)| {
        let mut plan = plan.clone();
        change(&mut plan);
        plan.verify_regions().unwrap_err().message().to_owned()
    };
    let e = broken(&|p| p.regions[layer].steps.end += 1);
    assert!(e.contains("do not cover its steps"), "{e}");
    let e = broken(&|p| p.regions[layer].steps = p.steps.len()..p.steps.len() + 2);
    assert!(e.contains("there are no steps"), "{e}");
    let e = broken(&|p| p.regions.swap(layer, layer + 1));
    assert!(e.contains("lie within"), "{e}");
    let e = broken(&|p| p.regions[layer].inputs.clear());
    assert!(e.contains("inputs and outputs"), "{e}");
    let e = broken(&|p| p.regions[layer].outputs.clear());
    assert!(e.contains("inputs and outputs"), "{e}");
    let e = broken(&|p| p.regions[layer + 1].claim = p.regions[layer].claim.clone());
    assert!(e.contains("was offered though"), "{e}");
    let e = broken(&|p| {
        let input = p.regions[layer].inputs[0];
        let step = p.regions[layer].steps.start;
        let written = p.steps[step].results[0].buffer;
        p.buffers[written.index()].home = p.buffers[input.index()].home;
    });
    assert!(e.contains("writes into what goes into"), "{e}");
}
