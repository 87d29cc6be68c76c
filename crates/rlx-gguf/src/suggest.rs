//! The nearest names, for the error about a name that is not there.

/// Longer names are not compared: they are hostile.
const MAX_LEN: usize = 256;
/// How many names are suggested.
const MOST: usize = 3;

/// Up to three names that are near to `wanted`, the nearest first.
pub fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    if wanted.len() > MAX_LEN {
        return Vec::new();
    }
    let most = (wanted.len() / 3).max(2);
    let mut near: Vec<(usize, &str)> = names
        .filter(|name| name.len() <= MAX_LEN)
        .filter_map(|name| {
            let related = !wanted.is_empty() && (name.contains(wanted) || wanted.contains(name));
            // Names that only differ in length are nearer than their distance says.
            let bound = if related { MAX_LEN } else { most };
            (name.len().abs_diff(wanted.len()) <= bound)
                .then(|| (distance(wanted.as_bytes(), name.as_bytes()), name))
                .filter(|(distance, _)| *distance <= bound)
        })
        .collect();
    near.sort();
    near.truncate(MOST);
    near.into_iter().map(|(_, name)| name).collect()
}

/// The edit distance in bytes: insertions, deletions and changes.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_edits() {
        assert_eq!(distance(b"kitten", b"sitting"), 3);
        assert_eq!(distance(b"", b"abc"), 3);
        assert_eq!(distance(b"abc", b"abc"), 0);
    }

    #[test]
    fn the_nearest_names_come_first() {
        let names = ["output.weight", "token_embd.weight", "output_norm.weight", "blk.0.attn_q.weight"];
        assert_eq!(nearest("token_emb.weight", names.into_iter())[0], "token_embd.weight");
        assert_eq!(nearest("blk.0.attn_q", names.into_iter()), ["blk.0.attn_q.weight"]);
        assert!(nearest("something else entirely", names.into_iter()).is_empty());
        assert!(nearest(&"x".repeat(1000), names.into_iter()).is_empty());
    }
}
