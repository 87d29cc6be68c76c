//! The tag `{% generation %}`, which marks what the model wrote for those who train on it. Rendering needs only its body,
//! which is a scope of its own: the tag becomes `{% with %}`.

/// `source` with the tag replaced, outside of comments, texts and raw blocks.
pub(super) fn replace(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = next_mark(rest) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let len = match rest.as_bytes()[1] {
            b'#' => rest.find("#}").map_or(rest.len(), |end| end + 2),
            b'%' => {
                let len = end_of_tag(rest, "%}");
                let (name_at, name) = tag_name(&rest[..len]);
                let new = match name {
                    "generation" => "with",
                    "endgeneration" => "endwith",
                    "raw" => {
                        let raw = end_of_raw(rest, len);
                        out.push_str(&rest[..raw]);
                        rest = &rest[raw..];
                        continue;
                    }
                    name => name,
                };
                out.push_str(&rest[..name_at]);
                out.push_str(new);
                out.push_str(&rest[name_at + name.len()..len]);
                rest = &rest[len..];
                continue;
            }
            _ => end_of_tag(rest, "}}"),
        };
        out.push_str(&rest[..len]);
        rest = &rest[len..];
    }
    out.push_str(rest);
    out
}

fn next_mark(text: &str) -> Option<usize> {
    text.as_bytes().windows(2).position(|mark| mark[0] == b'{' && matches!(mark[1], b'%' | b'{' | b'#'))
}

/// Where the tag that `text` starts with ends, past texts in quotes.
fn end_of_tag(text: &str, end: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 2;
    while at < bytes.len() {
        match bytes[at] {
            quote @ (b'"' | b'\'') => {
                at += 1;
                while at < bytes.len() && bytes[at] != quote {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
            }
            _ if bytes[at..].starts_with(end.as_bytes()) => return at + end.len(),
            _ => {}
        }
        at += 1;
    }
    text.len()
}

/// The name of a tag, and where it starts.
fn tag_name(tag: &str) -> (usize, &str) {
    let inner = tag[2..].trim_start_matches(['-', '+']).trim_start();
    let at = tag.len() - inner.len();
    let end = inner.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(inner.len());
    (at, &inner[..end])
}

/// Where the raw block ends that begins with a tag of `len` bytes.
fn end_of_raw(text: &str, len: usize) -> usize {
    let mut at = len;
    while let Some(start) = text[at..].find("{%").map(|s| s + at) {
        let end = start + end_of_tag(&text[start..], "%}");
        if tag_name(&text[start..end]).1 == "endraw" {
            return end;
        }
        at = start + 2;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_tag_is_replaced() {
        assert_eq!(replace("a{%- generation -%}b{% endgeneration %}"), "a{%- with -%}b{% endwith %}");
        for same in [
            "{# {% generation %} #}",
            "{{ '{% generation %}' }}",
            "{% if x == \"%}{% generation %}\" %}",
            "{% raw %}{% generation %}{%- endraw %}",
            "{% set generation = 1 %}",
            "{% generation_x %}",
            "{% 'é\\",
            "{%",
            "{{ 'x",
            "{",
        ] {
            assert_eq!(replace(same), same);
        }
    }
}
