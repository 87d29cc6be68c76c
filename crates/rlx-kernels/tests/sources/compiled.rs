//! The host's compiler on all kernels at once.

use std::path::Path;

use rlx_kernels::manifest::kernels;
use rlx_kernels::source::{Target, library};
use rlx_simulator::{Compiler, Pass};

/// Clang; `None` where it is not there, which is a failure where REQUIRE_CLANG is set.
fn compiler() -> Option<Compiler> {
    match Compiler::find(Path::new(env!("CARGO_TARGET_TMPDIR"))) {
        Ok(compiler) => Some(compiler),
        Err(e) if std::env::var_os("REQUIRE_CLANG").is_some() => panic!("{e}"),
        Err(e) => {
            eprintln!("SKIPPED: {e}");
            None
        }
    }
}

#[test]
fn all_kernels_compile_for_the_host() {
    let Some(compiler) = compiler() else { return };
    compiler.check(&library(Target::Host, kernels()), Pass::Plain).unwrap();
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
}

#[test]
fn all_kernels_compile_with_real_address_spaces() {
    let Some(compiler) = compiler() else { return };
    let text = library(Target::Syntax, kernels());
    compiler.check(&text, Pass::Spaces).unwrap();
    compiler.check(&text, Pass::OpenCl).unwrap();
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
