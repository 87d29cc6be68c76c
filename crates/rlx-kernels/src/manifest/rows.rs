//! The rows of the manifest, and how a row becomes kernels.

use rlx_ir::DType;
use rlx_ir::DType::{Bool, F16, F32, I8, I16, I32, I64, U8, U32};

use super::{Access, Buffer, Kernel, Scratch, cpp_type};
use crate::args::{
    Args, ArgsLayout, CastArgs, CopyArgs, EmbeddingArgs, GluArgs, L2NormalizeArgs, LayerNormArgs, PoolArgs,
    ReduceArgs, RmsNormArgs, RopeArgs, SoftmaxArgs,
};
use crate::source::{self, Source};

/// The type of a buffer's elements.
#[derive(Clone, Copy)]
enum Elem {
    /// That of the template's type parameter at this place.
    Param(usize),
    /// Always the same.
    Fixed(DType),
}
use Elem::{Fixed, Param};

/// What a buffer is for.
#[derive(Clone, Copy)]
enum Use {
    Read,
    Optional,
    Write,
}
use Use::{Optional, Read, Write};

/// A template and all that it is instantiated for.
struct Row {
    function: &'static str,
    source: &'static Source,
    args: &'static ArgsLayout,
    buffers: &'static [(&'static str, Elem, Use)],
    /// Threadgroup memory: elements for each of 32 simdgroups.
    scratch: Option<Elem>,
    /// The dtypes of the template's type parameters, one list for each instantiation.
    types: &'static [&'static [DType]],
    /// The word in the name and the template arguments after the first type, for each constant.
    constants: &'static [(&'static str, &'static str)],
}

const FLOATS: &[&[DType]] = &[&[F32], &[F16]];
const FLOATS_AND_WEIGHTS: &[&[DType]] = &[&[F32, F32], &[F32, F16], &[F16, F32], &[F16, F16]];
const PLAIN: &[(&str, &str)] = &[("", "")];

/// In the order of `PoolMode::WORDS`.
const POOL_MODES: &[(&str, &str)] = &[("mean", ", 0"), ("cls", ", 1"), ("last", ", 2"), ("max", ", 3")];

const FLOAT_REDUCTIONS: &[(&str, &str)] = &[
    ("sum", ", 0, float"),
    ("max", ", 1, float"),
    ("min", ", 2, float"),
    ("mean", ", 3, float"),
    ("prod", ", 4, float"),
];
const I32_REDUCTIONS: &[(&str, &str)] =
    &[("sum", ", 0, int"), ("max", ", 1, int"), ("min", ", 2, int"), ("prod", ", 4, int")];
const U32_REDUCTIONS: &[(&str, &str)] =
    &[("sum", ", 0, uint"), ("max", ", 1, uint"), ("min", ", 2, uint"), ("prod", ", 4, uint")];

const X_TO_OUT: &[(&str, Elem, Use)] = &[("x", Param(0), Read), ("out", Param(0), Write)];
const POOL_BUFFERS: &[(&str, Elem, Use)] =
    &[("x", Param(0), Read), ("starts", Fixed(I32), Read), ("out", Param(0), Write)];

const fn reduction(
    function: &'static str,
    scratch: Option<Elem>,
    types: &'static [&'static [DType]],
    constants: &'static [(&'static str, &'static str)],
) -> Row {
    let (source, args) = (&source::REDUCE, ReduceArgs::LAYOUT);
    Row { function, source, args, buffers: X_TO_OUT, scratch, types, constants }
}

const ROWS: &[Row] = &[
    Row {
        function: "softmax",
        source: &source::SOFTMAX,
        args: SoftmaxArgs::LAYOUT,
        buffers: X_TO_OUT,
        scratch: Some(Fixed(F32)),
        types: FLOATS,
        constants: PLAIN,
    },
    Row {
        function: "layer_norm",
        source: &source::LAYER_NORM,
        args: LayerNormArgs::LAYOUT,
        buffers: &[
            ("x", Param(0), Read),
            ("weight", Param(1), Read),
            ("bias", Param(1), Optional),
            ("out", Param(0), Write),
        ],
        scratch: Some(Fixed(F32)),
        types: FLOATS_AND_WEIGHTS,
        constants: PLAIN,
    },
    Row {
        function: "add_layer_norm",
        source: &source::ADD_LAYER_NORM,
        args: LayerNormArgs::LAYOUT,
        buffers: &[
            ("x", Param(0), Read),
            ("residual", Param(0), Read),
            ("weight", Param(1), Read),
            ("bias", Param(1), Optional),
            ("sum", Param(0), Write),
            ("out", Param(0), Write),
        ],
        scratch: Some(Fixed(F32)),
        types: FLOATS_AND_WEIGHTS,
        constants: PLAIN,
    },
    Row {
        function: "rms_norm",
        source: &source::RMS_NORM,
        args: RmsNormArgs::LAYOUT,
        buffers: &[("x", Param(0), Read), ("weight", Param(1), Read), ("out", Param(0), Write)],
        scratch: Some(Fixed(F32)),
        types: FLOATS_AND_WEIGHTS,
        constants: PLAIN,
    },
    Row {
        function: "add_rms_norm",
        source: &source::ADD_RMS_NORM,
        args: RmsNormArgs::LAYOUT,
        buffers: &[
            ("x", Param(0), Read),
            ("residual", Param(0), Read),
            ("weight", Param(1), Read),
            ("sum", Param(0), Write),
            ("out", Param(0), Write),
        ],
        scratch: Some(Fixed(F32)),
        types: FLOATS_AND_WEIGHTS,
        constants: PLAIN,
    },
    // One for each size of an element; the types stand for their bits.
    Row {
        function: "copy",
        source: &source::COPY,
        args: CopyArgs::LAYOUT,
        buffers: X_TO_OUT,
        scratch: None,
        types: &[&[U8], &[I16], &[U32], &[I64]],
        constants: PLAIN,
    },
    Row {
        function: "cast",
        source: &source::CAST,
        args: CastArgs::LAYOUT,
        buffers: &[("x", Param(0), Read), ("out", Param(1), Write)],
        scratch: None,
        types: &CASTS,
        constants: PLAIN,
    },
    reduction("reduce_rows", Some(Fixed(F32)), FLOATS, FLOAT_REDUCTIONS),
    reduction("reduce_rows", Some(Fixed(I32)), &[&[I32]], I32_REDUCTIONS),
    reduction("reduce_rows", Some(Fixed(U32)), &[&[U32]], U32_REDUCTIONS),
    reduction("reduce_columns", None, FLOATS, FLOAT_REDUCTIONS),
    reduction("reduce_columns", None, &[&[I32]], I32_REDUCTIONS),
    reduction("reduce_columns", None, &[&[U32]], U32_REDUCTIONS),
    Row {
        function: "embedding",
        source: &source::EMBEDDING,
        args: EmbeddingArgs::LAYOUT,
        buffers: &[("table", Param(0), Read), ("ids_of", Param(1), Read), ("out", Param(2), Write)],
        scratch: None,
        types: &EMBEDDINGS,
        constants: PLAIN,
    },
    Row {
        function: "rope",
        source: &source::ROPE,
        args: RopeArgs::LAYOUT,
        buffers: &[
            ("x", Param(0), Read),
            ("positions", Fixed(I32), Read),
            ("inv_freq", Fixed(F32), Read),
            ("out", Param(0), Write),
        ],
        scratch: None,
        types: FLOATS,
        constants: PLAIN,
    },
    Row {
        function: "glu",
        source: &source::GLU,
        args: GluArgs::LAYOUT,
        buffers: X_TO_OUT,
        scratch: None,
        types: FLOATS,
        constants: PLAIN,
    },
    Row {
        function: "l2_normalize",
        source: &source::L2_NORMALIZE,
        args: L2NormalizeArgs::LAYOUT,
        buffers: X_TO_OUT,
        scratch: Some(Fixed(F32)),
        types: FLOATS,
        constants: PLAIN,
    },
    Row {
        function: "pool",
        source: &source::POOL,
        args: PoolArgs::LAYOUT,
        buffers: POOL_BUFFERS,
        scratch: None,
        types: FLOATS,
        constants: POOL_MODES,
    },
    Row {
        function: "pool_l2_normalize",
        source: &source::POOL,
        args: PoolArgs::LAYOUT,
        buffers: POOL_BUFFERS,
        scratch: Some(Fixed(F32)),
        types: FLOATS,
        constants: POOL_MODES,
    },
];

/// What `cast` goes between.
const CASTABLE: [DType; 9] = [F32, F16, I8, I16, I32, I64, U8, U32, Bool];

/// Every pair of different types.
const CAST_PAIRS: [[DType; 2]; 72] = {
    let mut pairs = [[F32; 2]; 72];
    let (mut from, mut at) = (0, 0);
    while from < CASTABLE.len() {
        let mut to = 0;
        while to < CASTABLE.len() {
            if from != to {
                pairs[at] = [CASTABLE[from], CASTABLE[to]];
                at += 1;
            }
            to += 1;
        }
        from += 1;
    }
    pairs
};

const CASTS: [&[DType]; 72] = {
    let mut lists: [&[DType]; 72] = [&[]; 72];
    let mut at = 0;
    while at < lists.len() {
        lists[at] = &CAST_PAIRS[at];
        at += 1;
    }
    lists
};

/// Tables by ids to results.
const EMBEDDINGS: [&[DType]; 12] = [
    &[F32, I32, F32],
    &[F32, I64, F32],
    &[F32, U32, F32],
    &[F32, I32, F16],
    &[F32, I64, F16],
    &[F32, U32, F16],
    &[F16, I32, F32],
    &[F16, I64, F32],
    &[F16, U32, F32],
    &[F16, I32, F16],
    &[F16, I64, F16],
    &[F16, U32, F16],
];

/// The simdgroups of the largest threadgroup, each of which has one element of scratch.
const SIMDS: u32 = 32;

/// All kernels of all rows.
pub(super) fn instantiate() -> Vec<Kernel> {
    let mut kernels = Vec::new();
    for row in ROWS {
        for types in row.types {
            for constant in row.constants {
                kernels.push(row.kernel(types, *constant));
            }
        }
    }
    kernels
}

impl Row {
    fn kernel(&self, types: &[DType], (word, constants): (&str, &str)) -> Kernel {
        let names: Vec<&str> =
            std::iter::once(word).filter(|w| !w.is_empty()).chain(types.iter().map(|t| t.name())).collect();
        let cpp: Vec<&str> = types.iter().filter_map(|t| cpp_type(*t)).collect();
        let dtype = |elem| match elem {
            Param(at) => types[at],
            Fixed(dtype) => dtype,
        };
        let buffers = self.buffers.iter().map(|&(name, elem, purpose)| Buffer {
            name: name.to_owned(),
            dtype: dtype(elem),
            access: if matches!(purpose, Write) { Access::Write } else { Access::Read },
            optional: matches!(purpose, Optional),
        });
        Kernel {
            name: format!("{}_{}", self.function, names.join("_")),
            function: format!("{}<{}{constants}>", self.function, cpp.join(", ")),
            sources: vec![self.source],
            text: None,
            args: self.args,
            buffers: buffers.collect(),
            scratch: self.scratch.map(|elem| Scratch { dtype: dtype(elem), elems: SIMDS }),
        }
    }
}
