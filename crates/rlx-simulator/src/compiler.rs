//! Building kernels with clang for the host.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::ffi::SharedObject;
use crate::unseen;

/// How kernels are built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Optimised, with no check of accesses.
    Fast,
    /// Every access is checked.
    Hooked,
}

/// The files of the runtime.
const RUNTIME: [(&str, &str); 7] = [
    ("sim.h", include_str!("../runtime/sim.h")),
    ("fibers.h", include_str!("../runtime/fibers.h")),
    ("hooks.h", include_str!("../runtime/hooks.h")),
    ("matrix.h", include_str!("../runtime/matrix.h")),
    ("fibers.cpp", include_str!("../runtime/fibers.cpp")),
    ("hooks.cpp", include_str!("../runtime/hooks.cpp")),
    ("matrix.cpp", include_str!("../runtime/matrix.cpp")),
];

/// What is compiled of it.
const RUNTIME_STEMS: [&str; 3] = ["fibers", "hooks", "matrix"];

/// The runtime's shared object. It has no name of its own, so that libraries find it by its path.
const RUNTIME_FILE: &str = "runtime.so";

/// How syntax is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pass {
    /// As kernels are built for the simulator.
    Plain,
    /// Address spaces are types: mixing two, copying a struct out of one and calling a method in one are refused.
    Spaces,
    /// C++ for OpenCL, which refuses casts between address spaces as well.
    OpenCl,
}

const OPENCL_FLAGS: &[&str] =
    &["-x", "clcpp", "-cl-std=clc++2021", "-target", "spir64", "-Wall", "-Wextra", "-Werror"];

/// Flags of every build of kernels. No contraction: a sum of products then has the same bits wherever it is compiled.
const KERNEL_FLAGS: &[&str] = &[
    "-std=c++17",
    "-fPIC",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-math-errno",
    "-ffp-contract=off",
    "-mf16c",
    "-Wall",
    "-Wextra",
    "-Wdouble-promotion",
    "-Wvla",
    // A thread's stack has 64 KiB.
    "-Wframe-larger-than=16384",
    "-Werror",
    "-Wno-unused-function",
    "-Wno-unused-parameter",
];

/// Without these, the read in `a += x` is not instrumented, nor is, at higher levels, what was joined to wide accesses.
/// `unseen` looks for the latter in what clang made all the same: a level or a pragma may say otherwise.
const HOOKED_FLAGS: &[&str] = &[
    "-O1",
    "-fno-vectorize",
    "-fno-slp-vectorize",
    "-fsanitize=thread",
    "-mllvm",
    "-tsan-instrument-read-before-write",
    "-mllvm",
    "-tsan-instrument-func-entry-exit=0",
    // Arrays of a thread lie on its stack, and those of arguments beside other fields: no access there looks wrong.
    "-fsanitize=array-bounds",
    "-fno-sanitize-recover=array-bounds",
];

/// From an instrumented module to an object: nothing is optimised after hooks were put in and looked at.
const MODULE_FLAGS: &[&str] = &[
    "-O1",
    "-fPIC",
    "-ffp-contract=off",
    "-Xclang",
    "-disable-llvm-passes",
    "-Wframe-larger-than=16384",
    "-Werror",
];

/// Clang, and a folder for what it builds.
#[derive(Clone, Debug)]
pub struct Compiler {
    clang: PathBuf,
    folder: PathBuf,
}

impl Compiler {
    /// The version of clang that kernels are built with: others instrument other accesses.
    pub const CLANG: &str = "clang++-19";

    /// Looks for clang; what is built is kept in `folder` and found again.
    ///
    /// # Errors
    /// `NotFound` where clang does not run, `Io` where the folder cannot be made.
    pub fn find(folder: &Path) -> Result<Self> {
        let works = Command::new(Self::CLANG).arg("--version").output().is_ok_and(|o| o.status.success());
        if !works {
            rlx_ir::bail!(NotFound, "{} does not run: install clang-19", Self::CLANG);
        }
        let compiler = Self { clang: Self::CLANG.into(), folder: folder.join("rlx-simulator") };
        fs::create_dir_all(&compiler.folder).map_err(|e| io(&compiler.folder, &e))?;
        Ok(compiler)
    }

    /// Checks the syntax of a text.
    ///
    /// # Errors
    /// `InvalidArgument` with clang's words where it refuses, or `Io`.
    pub fn check(&self, text: &str, pass: Pass) -> Result<()> {
        let source = self.write_source(text)?;
        let mut command = Command::new(&self.clang);
        match pass {
            Pass::Plain => command.args(KERNEL_FLAGS),
            Pass::Spaces => command.args(KERNEL_FLAGS).arg("-DSTRICT_SPACES"),
            Pass::OpenCl => command.args(OPENCL_FLAGS),
        };
        let result = run(command.arg("-fsyntax-only").arg(&source));
        let _ = fs::remove_file(&source);
        result
    }

    /// Builds a library from a text that [`rlx_kernels::source::library`] made, and loads it.
    ///
    /// # Errors
    /// `InvalidArgument` with clang's words, or with an access that hooks would not see; or `Io`.
    pub fn library(&self, text: &str, mode: Mode) -> Result<Library> {
        let mut hash = DefaultHasher::new();
        (text, mode, RUNTIME, KERNEL_FLAGS, HOOKED_FLAGS, MODULE_FLAGS).hash(&mut hash);
        let path = self.folder.join(format!("{:016x}.so", hash.finish()));
        if !path.exists() {
            self.build(text, mode, &path)?;
        }
        Ok(Library { object: SharedObject::open(&path)?, mode })
    }

    fn build(&self, text: &str, mode: Mode, path: &Path) -> Result<()> {
        let source = self.write_source(text)?;
        let (object, shared) = (source.with_extension("o"), source.with_extension("so"));
        let runtime = self.runtime()?;
        let mut compile = Command::new(&self.clang);
        compile.args(KERNEL_FLAGS);
        match mode {
            Mode::Fast => run(compile.args(["-O2", "-c"]).arg(&source).arg("-o").arg(&object))?,
            Mode::Hooked => {
                let module = source.with_extension("ll");
                compile.args(HOOKED_FLAGS).args(["-S", "-emit-llvm"]);
                run(compile.arg(&source).arg("-o").arg(&module))?;
                let text = fs::read_to_string(&module).map_err(|e| io(&module, &e))?;
                if let Some(access) = unseen::access(&text) {
                    rlx_ir::bail!(InvalidArgument, "an access that no hook sees: {access}");
                }
                let mut assemble = Command::new(&self.clang);
                run(assemble.args(MODULE_FLAGS).arg("-c").arg(&module).arg("-o").arg(&object))?;
                let _ = fs::remove_file(module);
            }
        }
        let mut link = Command::new(&self.clang);
        link.args(["-shared", "-Wl,-z,defs", "-o"]).arg(&shared).arg(&object).arg(&runtime).arg("-lm");
        run(&mut link)?;
        // Tests build side by side: a name appears when its file is whole.
        fs::rename(&shared, path).map_err(|e| io(path, &e))?;
        for file in [source, object] {
            let _ = fs::remove_file(file);
        }
        Ok(())
    }

    /// The runtime, which all libraries of a process share: its stacks and thread-local variables are there once.
    fn runtime(&self) -> Result<PathBuf> {
        let mut hash = DefaultHasher::new();
        RUNTIME.hash(&mut hash);
        let folder = self.folder.join(format!("runtime-{:016x}", hash.finish()));
        if !folder.exists() {
            let fresh = self.unique("runtime");
            fs::create_dir_all(&fresh).map_err(|e| io(&fresh, &e))?;
            for (name, text) in RUNTIME {
                fs::write(fresh.join(name), text).map_err(|e| io(&fresh, &e))?;
            }
            for stem in RUNTIME_STEMS {
                let mut compile = Command::new(&self.clang);
                compile.args([
                    "-std=c++17",
                    "-O2",
                    "-fPIC",
                    "-ftls-model=initial-exec",
                    "-fno-exceptions",
                    "-mavx",
                    "-mf16c",
                    "-c",
                ]);
                compile.arg(fresh.join(format!("{stem}.cpp"))).arg("-o").arg(fresh.join(format!("{stem}.o")));
                run(&mut compile)?;
            }
            let mut link = Command::new(&self.clang);
            link.args(["-shared", "-Wl,-z,defs", "-o"]).arg(fresh.join(RUNTIME_FILE));
            run(link.args(RUNTIME_STEMS.map(|stem| fresh.join(format!("{stem}.o")))))?;
            // Another test may have been first.
            if fs::rename(&fresh, &folder).is_err() && !folder.exists() {
                rlx_ir::bail!(Io, "{}: cannot be made", folder.display());
            }
        }
        Ok(folder.join(RUNTIME_FILE))
    }

    fn write_source(&self, text: &str) -> Result<PathBuf> {
        let path = self.unique("kernels").with_extension("cpp");
        fs::write(&path, text).map_err(|e| io(&path, &e))?;
        Ok(path)
    }

    fn unique(&self, stem: &str) -> PathBuf {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        self.folder.join(format!("{stem}-{}-{n}", process::id()))
    }
}

fn io(path: &Path, e: &std::io::Error) -> Error {
    Error::new(rlx_ir::ErrorKind::Io, format!("{}: {e}", path.display()))
}

fn run(command: &mut Command) -> Result<()> {
    let output = match command.output() {
        Ok(output) => output,
        Err(e) => rlx_ir::bail!(Io, "{}: {e}", command.get_program().display()),
    };
    if !output.status.success() {
        rlx_ir::bail!(InvalidArgument, "{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

/// Kernels that can be run.
#[derive(Debug)]
pub struct Library {
    pub(crate) object: SharedObject,
    pub(crate) mode: Mode,
}

impl Library {
    /// How it was built.
    pub fn mode(&self) -> Mode {
        self.mode
    }
}
