//! Norms and softmax.

use super::{FLOATS, FLOATS_AND_WEIGHTS, Optional, PLAIN, Param, Read, Row, SUMS, Write, X_TO_OUT};
use crate::args::{Args, LayerNormArgs, RmsNormArgs, SoftmaxArgs};
use crate::source;

pub(super) const ROWS: &[Row] = &[
    Row {
        function: "softmax",
        source: &source::SOFTMAX,
        args: SoftmaxArgs::LAYOUT,
        buffers: X_TO_OUT,
        scratch: SUMS,
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
        scratch: SUMS,
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
        scratch: SUMS,
        types: FLOATS_AND_WEIGHTS,
        constants: PLAIN,
    },
    Row {
        function: "rms_norm",
        source: &source::RMS_NORM,
        args: RmsNormArgs::LAYOUT,
        buffers: &[("x", Param(0), Read), ("weight", Param(1), Read), ("out", Param(0), Write)],
        scratch: SUMS,
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
        scratch: SUMS,
        types: FLOATS_AND_WEIGHTS,
        constants: PLAIN,
    },
];
