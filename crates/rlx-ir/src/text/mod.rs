//! The text form of graphs: what is printed parses again, to an equal graph.
//!
//! ```text
//! // A comment runs to the end of its line.
//! graph @ffn(N <= 8192, R, N * R <= 65536) {
//!   %x = input "x" : f32[N, 384]
//!   %w = weight "ffn.w" : q8_0[1536, 384]
//!   %t = weight "test.w" : f32[384] = seed 7
//!   %c = const f32[2] = [1.5, -2]
//!   %p = const q8_0[32] = bytes "00ff..."
//!   %s = state "kv" : f16[16, 16, 2, 64]
//!   %y = matmul %x, %w {transpose_b} in "layers.0"
//!   %v, %i = top_k %y {k = 4} : f32[N, 4], i32[N, 4]
//!   return %v, %i
//! }
//! ```
//!
//! The name of a graph that is no word stands in quotes: `graph @"org/name" { ... }`.
//!
//! Attributes are flags, numbers, words, "texts", sizes, `[lists]` and inner graphs. The types after an op are optional;
//! where they stand, they are checked against what the op infers.

mod lex;
mod parse;
mod print;

pub(crate) use lex::is_word;
pub use parse::{parse, parse_many};
pub use print::{PrintOptions, literal, print};
