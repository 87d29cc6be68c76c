//! Compares the tokenizer of a GGUF file with ids that another program gave.
//!
//! `cargo run -p rlx-models --example check_tokenizer -- VOCAB.gguf|FOLDER [TEXT.txt]`
//!
//! Reads `VOCAB.gguf.inp` (texts with a line `__ggml_vocab_test__` between) and `VOCAB.gguf.out` (a line of ids for
//! each, without added tokens). With `TEXT.txt` it writes how long loading and encoding take, and the ids to
//! `TEXT.txt.ids`.

use std::path::Path;
use std::time::Instant;

use rlx_gguf::Gguf;
use rlx_models::text::{EncodeOptions, GgufVocab, SpecialText, Tokenizer};

const OPTIONS: EncodeOptions = EncodeOptions { add_special: false, parse_special: false };

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: check_tokenizer VOCAB.gguf [TEXT.txt]")?;
    let mut start = Instant::now();
    let mut read = start.elapsed();
    let tokenizer = if Path::new(&path).is_dir() {
        Tokenizer::from_folder(Path::new(&path))?
    } else {
        let gguf = Gguf::open(&path)?;
        start = Instant::now();
        let vocab = GgufVocab::from_metadata(gguf.metadata())?;
        read = start.elapsed();
        Tokenizer::from_gguf(vocab)?
    };
    println!(
        "{path}: {} tokens, read in {read:.1?}, built after {:.1?}",
        tokenizer.vocab_size(),
        start.elapsed()
    );
    if let Some(text_path) = arguments.next() {
        let text = std::fs::read_to_string(&text_path)?;
        let start = Instant::now();
        let encoding = tokenizer.encode(&text, OPTIONS)?;
        println!("{} bytes to {} tokens in {:.1?}", text.len(), encoding.len(), start.elapsed());
        let ids: Vec<String> = encoding.ids.iter().map(u32::to_string).collect();
        std::fs::write(format!("{text_path}.ids"), ids.join("\n"))?;
        println!("round trip: {}", tokenizer.decode(&encoding.ids, SpecialText::Keep)? == text);
    }
    if !Path::new(&format!("{path}.inp")).exists() {
        return Ok(());
    }
    let inputs = std::fs::read_to_string(format!("{path}.inp"))?;
    let outputs = std::fs::read_to_string(format!("{path}.out"))?;
    let (mut right, mut wrong) = (0, 0);
    for (text, expected) in inputs.split("\n__ggml_vocab_test__\n").zip(outputs.lines()) {
        let expected: Vec<u32> = expected.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        let found = tokenizer.encode(text, OPTIONS)?.ids;
        if found == expected {
            right += 1;
        } else {
            wrong += 1;
            println!("{text:?}\n  expected {expected:?}\n  found    {found:?}");
        }
    }
    println!("{right} texts right, {wrong} wrong");
    if wrong > 0 || right == 0 { Err("the tokenizer differs".into()) } else { Ok(()) }
}
