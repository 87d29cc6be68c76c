//! How deep a template nests, measured before it is parsed: what reads it recurses.

use minijinja::machinery::{Token, Tokenizer};
use minijinja::syntax::SyntaxConfig;
use minijinja::{Error, ErrorKind};

/// The longest template, in bytes. Those of real models have up to 20,000.
const MAX_BYTES: usize = 1 << 20;
/// The most operators, filters and brackets around a part of an expression. Those of real models have a few dozen.
const MAX_OPERATORS: usize = 1000;
/// The most blocks around a part of the template, where each `elif` is one more.
const MAX_BLOCKS: usize = 300;

/// Refuses a template that is too long or nests too deeply.
pub(super) fn check(source: &str, syntax: SyntaxConfig) -> Result<(), Error> {
    if source.len() > MAX_BYTES {
        return Err(refusal(format!("it has {} bytes, and {MAX_BYTES} are the most", source.len())));
    }
    let mut tokens = Tokenizer::new(source, "", false, syntax);
    let mut tag = Tag::default();
    // Open blocks, and how many branches each has so far.
    let mut blocks: Vec<usize> = Vec::new();
    while let Some((token, span)) = tokens.next_token()? {
        match token {
            Token::TemplateData(_) | Token::VariableEnd => {}
            Token::VariableStart | Token::BlockStart => tag = Tag::default(),
            Token::BlockEnd => match tag.name.as_str() {
                "if" | "for" | "with" | "block" | "filter" | "macro" | "call" | "autoescape" => {
                    blocks.push(1);
                }
                "set" if !tag.assigns => blocks.push(1),
                "elif" => *blocks.last_mut().unwrap_or(&mut 0) += 1,
                name if name.starts_with("end") => drop(blocks.pop()),
                _ => {}
            },
            token => tag.add(&token),
        }
        if tag.around + tag.here > MAX_OPERATORS || blocks.iter().sum::<usize>() > MAX_BLOCKS {
            return Err(refusal(format!("it nests too deeply in line {}", span.start_line)));
        }
    }
    Ok(())
}

fn refusal(message: String) -> Error {
    Error::new(ErrorKind::SyntaxError, message)
}

/// What is known of the tag that is being read.
#[derive(Default)]
struct Tag {
    /// Its first word.
    name: String,
    begun: bool,
    /// Whether it has a `=` outside of brackets.
    assigns: bool,
    /// Operators that may lie around the next token, within the innermost bracket.
    here: usize,
    /// Those outside of it, by bracket and in all.
    outer: Vec<usize>,
    around: usize,
}

impl Tag {
    fn add(&mut self, token: &Token) {
        if !std::mem::replace(&mut self.begun, true)
            && let Token::Ident(name) = token
        {
            self.name = (*name).to_owned();
            return;
        }
        match token {
            Token::BracketOpen | Token::ParenOpen | Token::BraceOpen => {
                self.outer.push(self.here + 1);
                self.around += self.here + 1;
                self.here = 0;
            }
            Token::BracketClose | Token::ParenClose | Token::BraceClose => {
                if let Some(here) = self.outer.pop() {
                    self.around -= here;
                    self.here = here;
                }
            }
            // What stands between commas lies side by side.
            Token::Comma => self.here = 0,
            Token::Ident("if" | "else" | "and" | "or" | "not" | "is" | "in") => self.here += 1,
            Token::Ident(_)
            | Token::Str(_)
            | Token::String(_)
            | Token::Int(_)
            | Token::Int128(_)
            | Token::Float(_) => {}
            other => {
                self.assigns |= matches!(other, Token::Assign) && self.outer.is_empty();
                self.here += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(source: &str) -> bool {
        check(source, SyntaxConfig::default()).is_ok()
    }

    #[test]
    fn nesting_counts_and_length_does_not() {
        let side_by_side =
            "{% set x = a.b.c %}{% if x %}{{ x[0] + 1 }}{% elif y %}{% endif %}{% set z %}a{% endset %}";
        assert!(fits(&side_by_side.repeat(5000)));
        assert!(fits(&format!("{{{{ [{}] }}}}", "a.b, ".repeat(50_000))));
        assert!(fits(&format!(
            "{{{{ '{}' }}}} {} {{# {} #}}",
            "-.".repeat(9000),
            "- ".repeat(9000),
            "((".repeat(9000)
        )));
        assert!(!fits(&" ".repeat((1 << 20) + 1)));
        for (deep, end) in [("-", "1"), ("not ", "1"), ("1|upper", ""), ("(", ""), ("[a,", ""), ("a ~ ", "a")]
        {
            assert!(!fits(&format!("{{{{ {}{end} }}}}", deep.repeat(2000))), "{deep}");
        }
        for chain in [".b", "[0]", "()", "|upper", " is x", " if a else b"] {
            assert!(fits(&format!("{{{{ a{} }}}}", chain.repeat(100))), "{chain}");
            assert!(!fits(&format!("{{{{ a{} }}}}", chain.repeat(2000))), "{chain}");
        }
        for block in ["{% if x %}", "{% if x %}{% elif y %}", "{% elif y %}{% elif y %}", "{% set x %}"] {
            assert!(!fits(&format!("{{% if x %}}{}", block.repeat(400))), "{block}");
        }
    }
}
