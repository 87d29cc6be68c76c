//! Runs the filetests of this crate, and checks that every rule has one.

use std::path::Path;

use rlx_compile::passes::PASSES;

fn dir() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/filetests"))
}

#[test]
fn filetests() {
    rlx_conformance::filetest::run_dir(dir()).unwrap();
}

/// The file shows the rule firing.
#[test]
fn every_rule_has_a_file() {
    for pass in PASSES {
        for rule in pass.rules {
            let path = dir().join("pass").join(pass.name).join(format!("{}.rlx", rule.name));
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let fires = text.contains(&format!("{} fired at", rule.name));
            assert!(fires, "{} must show rule {} firing", path.display(), rule.name);
        }
    }
}

#[test]
fn every_rule_is_listed_in_the_rules_page() {
    let page = include_str!("../src/passes/RULES.md");
    for rule in PASSES.iter().flat_map(|p| p.rules) {
        let row = format!("| `{}` | {:?} |", rule.name, rule.numerics);
        assert!(page.contains(&row), "RULES.md lacks a row that starts with {row}");
    }
}

#[test]
fn rule_names_are_unique() {
    let names: Vec<&str> = PASSES.iter().flat_map(|p| p.rules).map(|r| r.name).collect();
    let unique: std::collections::BTreeSet<&str> = names.iter().copied().collect();
    assert_eq!(names.len(), unique.len());
}
