//! The memory of this process.

/// The most resident memory that this process has had, in bytes; 0 where the system does not say (it does on Linux).
pub fn peak_rss_bytes() -> u64 {
    std::fs::read_to_string("/proc/self/status").ok().and_then(|s| high_water(&s)).unwrap_or(0)
}

/// `VmHWM` of a `/proc/<pid>/status`, in bytes.
fn high_water(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_high_water_mark_is_in_kib() {
        assert_eq!(high_water("Name:\trlx\nVmHWM:\t    2048 kB\nVmRSS:\t 1 kB\n"), Some(2 << 20));
        assert_eq!(high_water("Name:\trlx\n"), None);
    }
}
