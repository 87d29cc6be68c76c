//! Paths that files name: they must not lead out of the model's folder.

/// Whether `name` is a path with `/` that stays in its folder.
pub(crate) fn is_inside(name: &str) -> bool {
    name.split('/').all(|part| {
        let foreign = |c: char| c == '\\' || cfg!(windows) && c == ':' || c.is_control();
        !matches!(part, "" | "." | "..") && !part.contains(foreign)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_below_the_folder_stay_in_it() {
        for good in ["1_Pooling", "modules/2_Dense", "a..b", "weights-1.safetensors"] {
            assert!(is_inside(good), "{good}");
        }
        for bad in ["", "/etc", "..", "../x", "a/../../x", "a//b", "./a", "a/", "a\\b", "a\nb"] {
            assert!(!is_inside(bad), "{bad}");
        }
    }
}
