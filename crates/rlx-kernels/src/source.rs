//! Kernel sources, and the text that a target compiles: header, argument structs, templates, entry points.

mod cuda;
mod host;
mod metal;

use crate::manifest::{self, Kernel};

/// A file of kernels or of what they share.
#[derive(Debug)]
pub struct Source {
    /// The path below `kernels/`.
    pub path: &'static str,
    /// What it holds.
    pub text: &'static str,
    /// What must come before it.
    pub uses: &'static [&'static Source],
}

macro_rules! sources {
    ($($name:ident $path:literal uses [$($used:ident),*];)*) => {
        $(
            pub(crate) static $name: Source = Source {
                path: $path,
                text: include_str!(concat!("../kernels/", $path)),
                uses: &[$(&$used),*],
            };
        )*

        /// Every source, each after what it uses.
        pub static SOURCES: &[&Source] = &[$(&$name),*];
    };
}

sources! {
    IDS "dialect/ids.h" uses [];
    MATH "common/math.h" uses [];
    GROUP "common/group.h" uses [IDS, MATH];
    CONVERT "common/convert.h" uses [];
    INTEGER "common/integer.h" uses [];
    SOFTMAX "norm/softmax.metal" uses [GROUP];
    LAYER_NORM "norm/layer_norm.metal" uses [GROUP];
    ADD_LAYER_NORM "norm/add_layer_norm.metal" uses [LAYER_NORM];
    RMS_NORM "norm/rms_norm.metal" uses [GROUP];
    ADD_RMS_NORM "norm/add_rms_norm.metal" uses [RMS_NORM];
    COPY "shape/copy.metal" uses [IDS];
    CAST "elementwise/cast.metal" uses [IDS, CONVERT];
    REDUCE "reduce/reduce.metal" uses [GROUP, CONVERT, INTEGER];
    EMBEDDING "embedding/embedding.metal" uses [IDS];
    EMBEDDING_LAYER_NORM "embedding/embedding_layer_norm.metal" uses [GROUP];
    EPILOGUE "matmul/epilogue.h" uses [IDS, MATH];
    MATMUL "matmul/matmul.metal" uses [EPILOGUE];
    FEW_ROWS "matmul/few_rows.metal" uses [EPILOGUE];
    ROPE "position/rope.metal" uses [IDS];
    GLU "activation/glu.metal" uses [IDS, MATH];
    L2_NORMALIZE "pooling/l2_normalize.metal" uses [GROUP];
    POOL "pooling/pool.metal" uses [L2_NORMALIZE];
    ATTENTION_KEYS "attention/keys.h" uses [IDS, MATH];
    ATTENTION_ROWS "attention/attention_rows.metal" uses [ATTENTION_KEYS];
    ATTENTION_TILES "attention/attention_tiles.metal" uses [ATTENTION_KEYS];
    PAGED_ATTENTION "attention/paged_attention.metal" uses [ATTENTION_ROWS, ATTENTION_TILES];
    KV_WRITE "state/kv_write.metal" uses [GROUP];
}

/// Where a text is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// The Metal shading language, for Apple GPUs.
    Metal,
    /// C++ for clang on the host: functions that the simulator calls.
    Host,
    /// As `Host`, with entry points that cast nothing: for checks of syntax in which address spaces are types.
    Syntax,
    /// CUDA C++ for NVRTC.
    Cuda,
}

impl Target {
    fn header(self) -> &'static str {
        match self {
            Self::Metal => include_str!("../kernels/dialect/metal.h"),
            Self::Host | Self::Syntax => include_str!("../kernels/dialect/host.h"),
            Self::Cuda => include_str!("../kernels/dialect/cuda.h"),
        }
    }
}

/// One text with all of `kernels`, which needs no other file.
pub fn library<'a>(target: Target, kernels: impl IntoIterator<Item = &'a Kernel>) -> String {
    let kernels: Vec<&Kernel> = kernels.into_iter().collect();
    let mut included: Vec<&Source> = Vec::new();
    include(&IDS, &mut included);
    for source in kernels.iter().flat_map(|k| &k.sources) {
        include(source, &mut included);
    }
    let mut text = target.header().to_owned();
    // Functions that a kernel only uses have arguments of their own kernels.
    let used = manifest::kernels().iter().filter(|k| k.sources.iter().any(|s| holds(&included, s)));
    let mut structs: Vec<&str> = Vec::new();
    for kernel in kernels.iter().copied().chain(used) {
        if !structs.contains(&kernel.args.name) {
            structs.push(kernel.args.name);
            text.push('\n');
            text.push_str(&kernel.args.cpp());
        }
    }
    for source in included {
        text.push('\n');
        text.push_str(source.text);
    }
    let own = || kernels.iter().filter_map(|k| k.text.as_ref());
    if target == Target::Metal && own().next().is_some() {
        // Safe math still joins products and sums within a statement. Other targets have an option against it.
        text.push_str("\n#pragma METAL fp contract(off)\n");
    }
    for own in own() {
        text.push('\n');
        text.push_str(own);
    }
    for kernel in kernels {
        text.push('\n');
        text.push_str(&match target {
            Target::Metal => metal::entry(kernel),
            Target::Host => host::entry(kernel),
            Target::Syntax => host::typed_entry(kernel),
            Target::Cuda => cuda::entry(kernel),
        });
    }
    text
}

fn holds(list: &[&Source], source: &Source) -> bool {
    list.iter().any(|s| s.path == source.path)
}

/// Adds a source, after what it uses.
fn include(source: &'static Source, included: &mut Vec<&'static Source>) {
    if holds(included, source) {
        return;
    }
    for used in source.uses {
        include(used, included);
    }
    included.push(source);
}

/// The parameters of an entry point after the arguments: word of the address space, element type, name.
fn parameters(kernel: &Kernel) -> impl Iterator<Item = (String, &str)> {
    kernel.buffers.iter().map(|buffer| {
        let cpp = manifest::cpp_type(buffer.dtype).unwrap_or("void");
        let constness = if buffer.access == crate::Access::Read { "const " } else { "" };
        (format!("device {constness}{cpp}*"), buffer.name.as_str())
    })
}

/// What the entry point passes on, without where the thread stands.
fn passed(kernel: &Kernel) -> String {
    let names = kernel.buffers.iter().map(|b| b.name.as_str());
    let scratch = kernel.scratch.iter().map(|s| s.name);
    std::iter::once("args").chain(names).chain(scratch).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_metal_what_was_written_for_a_kernel_rounds_op_by_op() {
        const PRAGMA: &str = "#pragma METAL fp contract(off)";
        let kernel = &manifest::kernels()[0];
        let own = Kernel { text: Some("// own".to_owned()), ..kernel.clone() };
        let text = library(Target::Metal, [kernel, &own]);
        assert!(text.find(PRAGMA).unwrap() < text.find("// own").unwrap());
        assert!(text.find(PRAGMA).unwrap() > text.rfind("template").unwrap());
        assert!(!library(Target::Metal, [kernel]).contains(PRAGMA));
        assert!(!library(Target::Cuda, [&own]).contains(PRAGMA));
    }
}
