//! Decoders against the logits of the reference implementation, through the reference interpreter.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use rlx_ir::interp::{self, RunData};
use rlx_ir::{Builder, DType, Dim, Graph, Tensor, TensorType};
use rlx_models::arch::decoder::{self, Decoder, DecoderLimits, Direction, Tokens};
use rlx_models::arch::weight_type::WeightType;
use rlx_models::files::ModelFiles;
use rlx_runtime::WeightSource;
use rlx_runtime::pages::{PageTable, Sequence};
use rlx_runtime::weights::{SafetensorsFile, SafetensorsWeights};

const TOLERANCE: f32 = 2e-4;

const DECODERS: [&str; 7] =
    ["llama", "llama3_rope_scaling", "mistral", "qwen2", "qwen3", "qwen3_moe", "gemma3_text"];

const LIMITS: DecoderLimits = DecoderLimits {
    tokens: 128,
    sequences: 2,
    rows: 128,
    context: 128,
    page_len: 8,
    kv_dtype: DType::F32,
    weights: WeightType::AsStored,
};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/hf_models").join(name)
}

fn expected(name: &str) -> impl Fn(&str) -> Tensor {
    let file = SafetensorsFile::open(&fixture(name).join("expected.safetensors")).unwrap();
    let source = SafetensorsWeights::new(vec![file]);
    move |tensor| {
        let data = source.weight(tensor).unwrap();
        Tensor::from_bytes(data.ty, data.bytes.to_vec()).unwrap()
    }
}

/// A decoder in the interpreter, with one sequence in its cache.
struct Interpreted {
    decoder: Box<dyn Decoder>,
    graph: Graph,
    states: std::collections::BTreeMap<String, Tensor>,
    pages: PageTable,
    sequence: Sequence,
}

impl Interpreted {
    fn open(name: &str) -> Self {
        let decoder = decoder::open(&ModelFiles::open(&fixture(name)).unwrap()).unwrap();
        let graph = decoder.graph(&LIMITS).unwrap();
        let shape = decoder.shape();
        let state = [LIMITS.pages(), LIMITS.page_len, shape.num_kv_heads, shape.head_dim];
        let states = graph
            .states()
            .map(|(_, name)| (name.to_owned(), Tensor::zeros(TensorType::new(DType::F32, state)).unwrap()))
            .collect();
        let pages = PageTable::new(LIMITS.pages(), LIMITS.page_len);
        Self { decoder, graph, states, pages, sequence: Sequence::default() }
    }

    /// The logits after each of `ids`.
    fn step(&mut self, ids: &[i32]) -> Vec<f32> {
        let n = ids.len();
        let slots = self.pages.append(&mut self.sequence, n).unwrap();
        let len = self.sequence.len() as i32;
        let positions: Vec<i32> = (len - n as i32..len).collect();
        let rows: Vec<i32> = (0..n as i32).collect();
        let table: Vec<i32> = self.sequence.pages().iter().map(|&p| p as i32).collect();
        let weights = |name: &str, _: &TensorType| {
            let data = self.decoder.weights().weight(name).unwrap();
            Tensor::from_bytes(data.ty, data.bytes.to_vec())
        };
        let mut data = RunData { states: std::mem::take(&mut self.states), ..RunData::default() }
            .input("ids", Tensor::i32([n], ids).unwrap())
            .input("positions", Tensor::i32([n], &positions).unwrap())
            .input("slots", Tensor::i32([n], &slots).unwrap())
            .input("starts", Tensor::i32([2], &[0, n as i32]).unwrap())
            .input("lengths", Tensor::i32([1], &[len]).unwrap())
            .input("table", Tensor::i32([1, table.len()], &table).unwrap())
            .input("rows", Tensor::i32([n], &rows).unwrap());
        data.weights = Some(&weights);
        let out = interp::run(&self.graph, &mut data).unwrap();
        self.states = data.states;
        out[0].tensor.to_f32().unwrap()
    }
}

#[track_caller]
fn assert_close(found: &[f32], expected: &[f32], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let worst = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(worst <= TOLERANCE, "{what}: off by {worst}");
}

fn argmax(logits: &[f32]) -> i32 {
    let best = (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b]).then(b.cmp(&a)));
    best.unwrap() as i32
}

#[test]
fn logits_and_greedy_tokens_are_those_of_the_reference() {
    for name in DECODERS {
        let expected = expected(name);
        let ids: Vec<i32> = expected("input_ids").to_i64().unwrap().iter().map(|&i| i as i32).collect();
        let mut model = Interpreted::open(name);
        let logits = model.step(&ids);
        assert_close(&logits, &expected("logits").to_f32().unwrap(), name);

        let vocab_size = model.decoder.shape().vocab_size;
        let greedy: Vec<i32> = expected("greedy_ids").to_i64().unwrap().iter().map(|&i| i as i32).collect();
        let greedy_logits = expected("greedy_logits").to_f32().unwrap();
        let mut last = logits[logits.len() - vocab_size..].to_vec();
        for (i, (&id, row)) in greedy.iter().zip(greedy_logits.chunks(vocab_size)).enumerate() {
            assert_close(&last, row, &format!("{name}, step {i}"));
            assert_eq!(argmax(&last), id, "{name}, step {i}");
            last = model.step(&[id]);
        }
    }
}

#[test]
fn a_prompt_in_parts_gives_the_same_logits() {
    for name in ["mistral", "gemma3_text"] {
        let expected = expected(name);
        let ids: Vec<i32> = expected("input_ids").to_i64().unwrap().iter().map(|&i| i as i32).collect();
        let whole = Interpreted::open(name).step(&ids);
        let mut model = Interpreted::open(name);
        let parts: Vec<f32> = ids.chunks(7).flat_map(|part| model.step(part)).collect();
        assert_eq!(whole, parts, "{name}");
    }
}

#[test]
fn the_graph_goes_through_the_text_form() {
    for name in DECODERS {
        let model = Interpreted::open(name);
        let text = model.graph.to_string();
        let parsed = rlx_ir::text::parse(&text, &rlx_ir::OpSet::builtin()).unwrap();
        assert_eq!(parsed.to_string(), text);
    }
}

/// The vectors of two sequences after the last norm, without a cache.
fn hidden(decoder: &dyn Decoder, sequences: [&[i32]; 2], direction: Direction) -> Vec<f32> {
    let n = sequences[0].len() + sequences[1].len();
    let mut b = Builder::new("hidden");
    let dim = b.symbol("N", 128);
    let tokens = Tokens {
        ids: b.input("ids", DType::I32, [dim.clone()]).unwrap(),
        positions: b.input("positions", DType::I32, [dim.clone()]).unwrap(),
        starts: b.input("starts", DType::I32, [Dim::from(3)]).unwrap(),
        n: dim,
    };
    let hidden = decoder.hidden(&mut b, &tokens, WeightType::AsStored, direction).unwrap();
    let graph = b.finish(&[hidden]).unwrap();
    let weights = |name: &str, _: &TensorType| {
        let data = decoder.weights().weight(name).unwrap();
        Tensor::from_bytes(data.ty, data.bytes.to_vec())
    };
    let positions: Vec<i32> = sequences.iter().flat_map(|s| 0..s.len() as i32).collect();
    let starts = [0, sequences[0].len() as i32, n as i32];
    let mut data = RunData::default()
        .input("ids", Tensor::i32([n], &sequences.concat()).unwrap())
        .input("positions", Tensor::i32([n], &positions).unwrap())
        .input("starts", Tensor::i32([3], &starts).unwrap());
    data.weights = Some(&weights);
    interp::run(&graph, &mut data).unwrap()[0].tensor.to_f32().unwrap()
}

#[test]
fn vectors_without_a_cache_give_the_same_logits() {
    for name in ["qwen3", "qwen3_moe", "gemma3_text"] {
        let expected = expected(name);
        let ids: Vec<i32> = expected("input_ids").to_i64().unwrap().iter().map(|&i| i as i32).collect();
        let decoder = decoder::open(&ModelFiles::open(&fixture(name)).unwrap()).unwrap();
        let shape = decoder.shape();
        let before: &[i32] = &[5, 6, 7];
        let vectors = hidden(&*decoder, [before, &ids], Direction::Causal);
        let head = decoder.weights().find("output.weight").unwrap();
        // A tied head is the table of the tokens' vectors.
        let table = head.unwrap_or_else(|| decoder.weights().weight("token_embd.weight").unwrap());
        let table = Tensor::from_bytes(table.ty, table.bytes.to_vec()).unwrap().to_f32().unwrap();
        let logits: Vec<f32> = vectors[before.len() * shape.hidden_size..]
            .chunks(shape.hidden_size)
            .flat_map(|v| {
                table
                    .chunks(shape.hidden_size)
                    .map(move |row| row.iter().zip(v).map(|(a, b)| a * b).sum::<f32>())
            })
            .collect();
        assert_close(&logits, &expected("logits").to_f32().unwrap(), name);
        // Where tokens see those after them, the first one's vector depends on the last.
        let both = |last: i32| {
            let mut ids = ids.clone();
            *ids.last_mut().unwrap() = last;
            hidden(&*decoder, [before, &ids], Direction::Bidirectional)
        };
        let (one, other) = (both(1), both(2));
        let at = before.len() * shape.hidden_size;
        assert_eq!(one[..at], other[..at], "{name}: sequences are apart");
        assert_ne!(one[at..at + shape.hidden_size], other[at..at + shape.hidden_size], "{name}");
    }
}
