//! `linear` and `matmul` with a weight: products with packed panels, finished by an epilogue.

use half::{bf16, f16};
use rlx_compile::{OpFacts, Role, Support};
use rlx_ir::ops::activation;
use rlx_ir::ops::matmul::linear::Linear;
use rlx_ir::quant::BlockType;
use rlx_ir::{DType, bail};

use super::{StepCall, Thunk};
use crate::backend::launch::Read;
use crate::backend::support::{Entry, dense_rows, require};
use crate::error::{Error, Result};
use crate::kernels::matmul::{
    Activation, Arrangement, Element, Epilogue, PackedShape, Residual, Rows, packed, quantized,
};

/// `linear`, whose weight is packed.
pub(crate) static LINEAR: Entry = Entry {
    op: "linear",
    supports: supports_linear,
    build: build_linear,
    packs: |_, index| index == 1,
    in_place: residual,
};

/// The activation as the epilogue names it.
pub(crate) fn epilogue_activation(activation: activation::Activation) -> Option<Activation> {
    use activation::Activation as A;
    Some(match activation {
        A::None => Activation::None,
        A::Relu => Activation::Relu,
        A::Gelu => Activation::Gelu,
        A::GeluTanh => Activation::GeluTanh,
        A::Silu => Activation::Silu,
        A::Tanh | A::Sigmoid => return None,
    })
}

fn supports_linear(facts: &OpFacts<'_>) -> Support {
    let Some(op) = facts.op.downcast::<Linear>() else { return Support::No("another op".to_owned()) };
    let vectors = facts
        .operands
        .iter()
        .skip(2)
        .take(usize::from(op.bias))
        .all(|b| b.ty.dtype == DType::F32 && b.strides.is_none());
    match supports_product(facts) {
        Support::Yes => require(&[
            (
                epilogue_activation(op.activation).is_some(),
                "an activation among none, relu, gelu, gelu_tanh, silu",
            ),
            (vectors, "a dense f32 bias"),
            (!op.residual || facts.operands.last().is_some_and(|r| r.strides.is_none()), "a dense residual"),
        ]),
        no => no,
    }
}

/// The residual, which each element of the result reads at its own place only.
fn residual(facts: &OpFacts<'_>) -> Option<usize> {
    let op = facts.op.downcast::<Linear>()?;
    op.residual.then(|| residual_position(op.bias))
}

/// x and the weight come first.
fn residual_position(bias: bool) -> usize {
    2 + usize::from(bias)
}

/// Whether weights of this dtype can be packed.
pub(crate) fn packs(dtype: DType) -> bool {
    PackedShape::new(dtype, 1, dtype.block_elems(), Arrangement::Plain).is_ok()
}

/// Whether operand 1 is a weight matrix that can be packed, and operand 0 has rows without gaps.
pub(crate) fn supports_product(facts: &OpFacts<'_>) -> Support {
    let (x, w) = (&facts.operands[0], &facts.operands[1]);
    let quantised = x.ty.dtype == DType::Block(BlockType::Q8_F32);
    let float = matches!(x.ty.dtype, DType::F32 | DType::F16 | DType::BF16);
    let rows = x.strides.is_none() || (x.ty.rank() == 2 && dense_rows(x) && float);
    require(&[
        (w.role == Role::Weight && w.ty.rank() == 2, "a weight matrix"),
        (packs(w.ty.dtype), "a weight dtype that it can pack"),
        (
            float || (quantised && w.ty.dtype.is_block()),
            "an f32, f16 or bf16 activation, or q8_f32 with a block weight",
        ),
        (rows, "rows without gaps"),
    ])
}

fn build_linear(facts: &OpFacts<'_>) -> Result<Box<dyn Thunk>> {
    let Some(linear) = facts.op.downcast::<Linear>() else { bail!(Bug, "{} is not linear", facts.op.name()) };
    let Some(activation) = epilogue_activation(linear.activation) else {
        bail!(Bug, "linear: an activation without a kernel")
    };
    let product = Product { activation, bias: linear.bias, residual: linear.residual };
    product.thunk(facts)
}

/// The thunk of a `matmul` with a packed weight.
pub(crate) fn build_matmul(facts: &OpFacts<'_>) -> Result<Box<dyn Thunk>> {
    Product { activation: Activation::None, bias: false, residual: false }.thunk(facts)
}

/// What an epilogue does, before its slices are known.
#[derive(Clone, Copy, Debug)]
struct Product {
    activation: Activation,
    bias: bool,
    residual: bool,
}

impl Product {
    fn thunk(self, facts: &OpFacts<'_>) -> Result<Box<dyn Thunk>> {
        Ok(match (facts.operands[0].ty.dtype, facts.results[0].dtype) {
            (DType::F32, DType::F32) => Box::new(Floats::<f32>::new(self, "packed f32")),
            (DType::F16, DType::F16) => Box::new(Floats::<f16>::new(self, "packed f16")),
            (DType::BF16, DType::BF16) => Box::new(Floats::<bf16>::new(self, "packed bf16")),
            (DType::Block(BlockType::Q8_F32), DType::F32) => Box::new(Quantised(self)),
            (x, y) => bail!(Bug, "no packed product of {x} into {y}"),
        })
    }

    fn epilogue<'a, Y: Element + bytemuck::Pod>(
        self,
        call: &StepCall<'a>,
        columns: usize,
    ) -> Result<Epilogue<'a, Y>> {
        let bias = if self.bias { Some(call.read::<f32>(2)?) } else { None };
        let at = residual_position(self.bias);
        let residual = match call.reads.get(at) {
            _ if !self.residual => Residual::None,
            Some(Read::InPlace) => Residual::InPlace,
            _ => Residual::From { data: call.read::<Y>(at)?, stride: columns },
        };
        Ok(Epilogue { bias, activation: self.activation, residual })
    }
}

/// Rows before the last axis, and the last axis.
fn rows_of(shape: &[usize]) -> (usize, usize) {
    match shape.split_last() {
        Some((last, outer)) => (outer.iter().product(), *last),
        None => (1, 1),
    }
}

/// A float activation.
#[derive(Debug)]
struct Floats<T> {
    product: Product,
    kernel: &'static str,
    element: std::marker::PhantomData<T>,
}

impl<T> Floats<T> {
    fn new(product: Product, kernel: &'static str) -> Self {
        Self { product, kernel, element: std::marker::PhantomData }
    }
}

impl<T: Element + bytemuck::Pod> Thunk for Floats<T> {
    fn kernel(&self) -> &str {
        self.kernel
    }

    fn run(&self, call: &mut StepCall<'_>) -> Result<()> {
        let (rows, depth) = rows_of(&call.shape(0));
        let stride = if call.step.operands[0].dense { depth } else { call.strides(0)[0] };
        let weight = call.packed(1)?;
        let columns = weight.shape().columns();
        let epilogue = self.product.epilogue::<T>(call, columns)?;
        let x = Rows { data: call.read::<T>(0)?, rows, stride };
        packed(call.cpu, x, &weight, &epilogue, call.write::<T>(0)?, columns)
    }
}

/// An activation of block type `q8_f32`.
#[derive(Debug)]
struct Quantised(Product);

impl Thunk for Quantised {
    fn kernel(&self) -> &str {
        "packed int8"
    }

    fn run(&self, call: &mut StepCall<'_>) -> Result<()> {
        let (rows, depth) = rows_of(&call.shape(0));
        let Some(stride) = DType::Block(BlockType::Q8_F32).row_bytes(depth) else {
            bail!(Bug, "q8_f32 rows of {depth} elements")
        };
        let weight = call.packed(1)?;
        let columns = weight.shape().columns();
        let epilogue = self.0.epilogue::<f32>(call, columns)?;
        let x = Rows { data: call.bytes(0)?, rows, stride };
        quantized(call.cpu, x, &weight, &epilogue, call.write::<f32>(0)?, columns)
    }
}
