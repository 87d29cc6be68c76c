//! The host's compiler on all kernels at once.

use std::path::Path;

use rlx_kernels::manifest::kernels;
use rlx_kernels::source::{Target, library};
use rlx_simulator::{Compiler, Pass, or_skip};

use crate::regions::{all, regions};

/// Clang, if it is there.
fn compiler() -> Option<Compiler> {
    or_skip(Compiler::find(Path::new(env!("CARGO_TARGET_TMPDIR"))))
}

#[test]
fn all_kernels_compile_for_the_host() {
    let Some(compiler) = compiler() else { return };
    compiler.check(&library(Target::Host, &all()), Pass::Plain).unwrap();
}

#[test]
fn a_kernel_compiles_without_the_others() {
    let Some(compiler) = compiler() else { return };
    let mut seen = Vec::new();
    for kernel in kernels() {
        let source = kernel.sources[0].path;
        if !seen.contains(&source) {
            seen.push(source);
            let checked = compiler.check(&library(Target::Host, [kernel]), Pass::Plain);
            checked.unwrap_or_else(|e| panic!("{} alone: {e}", kernel.name));
        }
    }
    // What regions list is enough for them.
    compiler.check(&library(Target::Host, &regions()), Pass::Plain).unwrap();
}

#[test]
fn all_kernels_compile_with_real_address_spaces() {
    let Some(compiler) = compiler() else { return };
    let text = library(Target::Syntax, &all());
    compiler.check(&text, Pass::Spaces).unwrap();
    compiler.check(&text, Pass::OpenCl).unwrap();
}

/// The text for Metal with declarations of what MSL offers in place of its headers. Words for address spaces are macros there,
/// so an attribute must not be one.
fn declared_metal(text: &str) -> String {
    let text = text.replace("[[threadgroup(", "[[threadgroup_index(");
    let lines = text.lines().filter(|line| !line.starts_with("#include <metal_"));
    format!("{}\n{}\n", include_str!("msl.h"), lines.collect::<Vec<_>>().join("\n"))
}

#[test]
fn the_metal_text_fits_the_signatures_of_msl() {
    let Some(compiler) = compiler() else { return };
    compiler.check(&declared_metal(&library(Target::Metal, &all())), Pass::Plain).unwrap();
    let wrong = [
        (
            "inline void f(simd_matrix<half> d, simd_matrix<half> a) { matrix_multiply_accumulate(d, a, a, d); }",
            "no matching",
        ),
        (
            "inline void f(device const float* x) { simd_matrix<half> a; matrix_load(a, x, 8); }",
            "no matching",
        ),
        (
            "inline void f(device const float* x) { threadgroup const float* y = x; (void)y; }",
            "cannot initialize",
        ),
        ("inline uint f(bool x) { return simd_ballot(x); }", "no viable conversion"),
    ];
    for (text, why) in wrong {
        let text = format!("{}\n{text}\n", library(Target::Metal, []));
        let refused = compiler.check(&declared_metal(&text), Pass::Plain).unwrap_err();
        assert!(refused.message().contains(why), "{refused}");
    }
}

#[test]
fn the_plain_pass_refuses_what_flags_forbid() {
    let Some(compiler) = compiler() else { return };
    let wrong = [
        ("float f(uint n) { float a[n]; a[0] = 1.0f; return a[0]; }", "variable length arrays"),
        ("float f(float x) { return x * 0.5; }", "-Wdouble-promotion"),
        ("void f() { throw 1; }", "exceptions disabled"),
        ("float f() { float x; return x; }", "-Wuninitialized"),
        ("bool f(int a, uint b) { return a < b; }", "-Wsign-compare"),
    ];
    let header = library(Target::Host, []);
    compiler.check(&header, Pass::Plain).unwrap();
    for (text, why) in wrong {
        let refused = compiler.check(&format!("{header}\n{text}\n"), Pass::Plain);
        let refused = refused.expect_err(text);
        assert!(refused.message().contains(why), "{text}: {refused}");
    }
}

#[test]
fn real_address_spaces_refuse_what_the_plain_pass_lets_through() {
    let Some(compiler) = compiler() else { return };
    let header = library(Target::Syntax, []);
    let both = [Pass::Spaces, Pass::OpenCl].as_slice();
    let spaces = [Pass::Spaces].as_slice();
    let open_cl = [Pass::OpenCl].as_slice();
    let wrong = [
        ("void f(threadgroup float* x) { device float* y = x; y[0] = 1.0f; }", both),
        ("float f(constant float* x) { device const float* y = x; return y[0]; }", both),
        (
            "float g(device const float* x) { return x[0]; }\nfloat f(threadgroup float* x) { return g(x); }",
            both,
        ),
        ("struct S { int a; };\nint f(device const S* x) { S y = *x; return y.a; }", spaces),
        (
            "struct S { int a; int get() const { return a; } };\nint f(device const S* x) { return x->get(); }",
            spaces,
        ),
        ("float f(threadgroup float* x) { return ((device float*)x)[0]; }", open_cl),
        ("float f(float (*g)(float)) { return g(1.0f); }", open_cl),
        ("float f(float (&g)(float)) { return g(1.0f); }", open_cl),
    ];
    for (text, passes) in wrong {
        let text = format!("{header}\n{text}\n");
        compiler.check(&text, Pass::Plain).unwrap_or_else(|e| panic!("the plain pass refuses: {e}"));
        for &pass in passes {
            assert!(compiler.check(&text, pass).is_err(), "{pass:?} takes {text}");
        }
    }
}

#[test]
fn argument_structs_are_checked_against_their_rust_twins() {
    let Some(compiler) = compiler() else { return };
    let right = library(Target::Host, kernels());
    let wrong =
        right.replacen("CHECK_OFFSET(SoftmaxArgs, inner, 4)", "CHECK_OFFSET(SoftmaxArgs, inner, 8)", 1);
    assert_ne!(right, wrong);
    assert!(compiler.check(&wrong, Pass::Plain).unwrap_err().message().contains("SoftmaxArgs"));
}
