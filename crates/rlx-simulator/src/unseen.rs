//! Accesses that no hook sees: clang instruments those of 1, 2, 4, 8 and 16 bytes, and passes over all others silently.

/// The first access in LLVM's text form of a module that is not instrumented because of its size.
pub(crate) fn access(module: &str) -> Option<&str> {
    module.lines().map(str::trim).find(|line| {
        let operation = line.split_once(" = ").map_or(*line, |(_, after)| after);
        let Some(after) = operation.strip_prefix("load ").or_else(|| operation.strip_prefix("store ")) else {
            return operation.contains("@llvm.masked.");
        };
        let after = after.strip_prefix("atomic ").unwrap_or(after);
        let after = after.strip_prefix("volatile ").unwrap_or(after);
        !bits(after).is_some_and(|bits| [8, 16, 32, 64, 128].contains(&bits.next_multiple_of(8)))
    })
}

/// The size of the type at the start of `text`; `None` for what is neither a scalar nor a vector.
fn bits(text: &str) -> Option<u64> {
    if let Some(vector) = text.strip_prefix('<') {
        let (count, elem) = vector.split_once('>')?.0.split_once(" x ")?;
        return Some(count.parse::<u64>().ok()? * bits(elem)?);
    }
    let end = text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(text.len());
    match &text[..end] {
        "half" => Some(16),
        "float" => Some(32),
        "double" | "ptr" => Some(64),
        integer => integer.strip_prefix('i')?.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::access;

    #[test]
    fn accesses_of_other_sizes_are_found() {
        let seen = [
            "  %3 = load float, ptr %1, align 4, !tbaa !4",
            "  %3 = load <4 x float>, ptr %1, align 4",
            "  store volatile <8 x half> zeroinitializer, ptr %0, align 2",
            "  store i1 true, ptr %0",
            "  %4 = load atomic ptr, ptr %1 acquire, align 8",
            "  %4 = add <8 x float> %1, %2",
            "  call void @__tsan_write4(ptr %1)",
        ];
        let unseen = [
            "  %3 = load <8 x float>, ptr %1, align 32, !tbaa !12",
            "  store <8 x float> %4, ptr %0, align 4",
            "  store <3 x float> %4, ptr %0, align 4",
            "  %1 = load volatile i24, ptr %0",
            "  %1 = load [2 x i64], ptr %0",
            "  %1 = load x86_fp80, ptr %0",
            "  %1 = tail call <4 x float> @llvm.masked.load.v4f32.p0(ptr %0, i32 4, <4 x i1> %m, <4 x float> poison)",
        ];
        assert_eq!(access(&seen.join("\n")), None);
        for line in unseen {
            assert_eq!(access(&format!("{}\n{line}\n", seen.join("\n"))), Some(line.trim()));
        }
    }
}
