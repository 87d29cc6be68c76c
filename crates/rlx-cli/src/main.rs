//! The `rlx` command.

fn main() {}
