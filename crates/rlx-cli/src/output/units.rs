//! Numbers and texts as people read them.

/// `1.5 MiB`.
pub fn bytes(n: u64) -> String {
    scaled(n, 1024.0, &[" B", " KiB", " MiB", " GiB", " TiB"])
}

/// `22.7 M`.
pub fn count(n: u64) -> String {
    scaled(n, 1000.0, &["", " k", " M", " G", " T"])
}

fn scaled(n: u64, step: f64, units: &[&str]) -> String {
    let (mut value, mut unit) = (n as f64, 0);
    while value >= step && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    let digits = usize::from(unit > 0 && value < 100.0);
    format!("{value:.digits$}{}", units[unit])
}

/// The start of a text in quotes, on one line.
pub fn preview(text: &str, max_chars: usize) -> String {
    let short: String = text.chars().take(max_chars).collect();
    let more = if short.len() < text.len() { "…" } else { "" };
    format!("{short:?}{more}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_grow_with_the_number() {
        assert_eq!(
            [bytes(0), bytes(1023), bytes(1536), bytes(200 << 20)],
            ["0 B", "1023 B", "1.5 KiB", "200 MiB"]
        );
        assert_eq!([count(999), count(22_713_216)], ["999", "22.7 M"]);
        assert_eq!(bytes(u64::MAX), "16777216 TiB");
    }

    #[test]
    fn previews_are_one_line() {
        assert_eq!(preview("a\n\0b", 9), "\"a\\n\\0b\"");
        assert_eq!(preview("日本語", 2), "\"日本\"…");
    }
}
