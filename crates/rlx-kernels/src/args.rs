//! Argument structs: what a kernel gets by pointer in a device buffer, defined once for Rust and C++.
//!
//! Strides and sizes are in elements. A struct has no padding, so that its bytes are all meaningful, and its C++ text
//! checks sizes and offsets where it is compiled.

use std::fmt::Write;

/// A field of an argument struct, as C++ sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The name.
    pub name: &'static str,
    /// The C++ type of an element.
    pub cpp: &'static str,
    /// The length, for arrays.
    pub array: Option<usize>,
    /// Where it starts, in bytes.
    pub offset: usize,
}

/// The layout of an argument struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArgsLayout {
    /// The name of the struct in both languages.
    pub name: &'static str,
    /// The size in bytes.
    pub bytes: usize,
    /// The fields in order.
    pub fields: &'static [Field],
}

impl ArgsLayout {
    /// The struct in C++, with checks of its layout.
    pub fn cpp(&self) -> String {
        let mut text = format!("struct {} {{\n", self.name);
        for field in self.fields {
            let array = field.array.map_or(String::new(), |n| format!("[{n}]"));
            let _ = writeln!(text, "  {} {}{array};", field.cpp, field.name);
        }
        let _ = writeln!(text, "}};\nCHECK_SIZE({}, {});", self.name, self.bytes);
        for field in self.fields {
            let _ = writeln!(text, "CHECK_OFFSET({}, {}, {});", self.name, field.name, field.offset);
        }
        text
    }
}

/// A type of a field.
trait FieldType {
    const CPP: &'static str;
    const ARRAY: Option<usize> = None;
}

impl FieldType for u32 {
    const CPP: &'static str = "uint";
}

impl FieldType for f32 {
    const CPP: &'static str = "float";
}

impl<T: FieldType, const N: usize> FieldType for [T; N] {
    const CPP: &'static str = T::CPP;
    const ARRAY: Option<usize> = Some(N);
}

/// An argument struct.
pub trait Args: bytemuck::Pod {
    /// Its layout.
    const LAYOUT: &'static ArgsLayout;

    /// Its bytes, as a device buffer holds them.
    fn bytes(&self) -> &[u8] {
        bytemuck::bytes_of(self)
    }
}

macro_rules! args_struct {
    ($(#[doc = $doc:literal])* $name:ident { $($(#[doc = $field_doc:literal])* $field:ident: $ty:ty,)* }) => {
        $(#[doc = $doc])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
        pub struct $name {
            $($(#[doc = $field_doc])* pub $field: $ty,)*
        }

        impl Default for $name {
            fn default() -> Self {
                bytemuck::Zeroable::zeroed()
            }
        }

        impl Args for $name {
            const LAYOUT: &'static ArgsLayout = &ArgsLayout {
                name: stringify!($name),
                bytes: size_of::<$name>(),
                fields: &[$(Field {
                    name: stringify!($field),
                    cpp: <$ty as FieldType>::CPP,
                    array: <$ty as FieldType>::ARRAY,
                    offset: std::mem::offset_of!($name, $field),
                },)*],
            };
        }
    };
}

/// The most axes of a strided layout, after axes that lie dense behind each other are joined.
pub const MAX_RANK: usize = 6;

/// The most operands of a fused region.
pub const MAX_REGION_OPERANDS: usize = 16;

args_struct! {
    /// Arguments of `softmax`.
    SoftmaxArgs {
        /// Elements along the axis.
        width: u32,
        /// Elements after the axis: rows that lie interleaved.
        inner: u32,
        /// The distance between neighbours of the axes before.
        x_outer: u32,
        /// The distance between neighbours of the axes behind.
        x_inner: u32,
        /// The distance between neighbours along the axis.
        x_step: u32,
        /// The factor of the elements.
        scale: f32,
    }
}

args_struct! {
    /// Arguments of `layer_norm` and `add_layer_norm`.
    LayerNormArgs {
        /// Elements of a row.
        width: u32,
        /// The distance between rows of `x`.
        x_row: u32,
        /// The distance between rows of `residual`.
        residual_row: u32,
        /// Whether there is a bias.
        has_bias: u32,
        /// What is added to the variance.
        eps: f32,
    }
}

args_struct! {
    /// Arguments of `rms_norm` and `add_rms_norm`.
    RmsNormArgs {
        /// Elements of a row.
        width: u32,
        /// The distance between rows of `x`.
        x_row: u32,
        /// The distance between rows of `residual`.
        residual_row: u32,
        /// What is added to the mean of squares.
        eps: f32,
        /// What is added to each weight: 1 for `unit_offset`, else 0.
        weight_offset: f32,
    }
}

args_struct! {
    /// Arguments of `copy`.
    CopyArgs {
        /// The number of elements.
        elems: u32,
        /// The number of axes.
        rank: u32,
        /// Sizes, outermost first.
        sizes: [u32; MAX_RANK],
        /// Strides of `x`.
        x_strides: [u32; MAX_RANK],
        /// Strides of `out`.
        out_strides: [u32; MAX_RANK],
    }
}

args_struct! {
    /// Arguments of `cast`.
    CastArgs {
        /// The number of elements.
        elems: u32,
    }
}

args_struct! {
    /// Arguments of the reductions.
    ReduceArgs {
        /// The number of results.
        outputs: u32,
        /// The number of elements that make a result.
        count: u32,
        /// The number of axes that stay.
        kept_rank: u32,
        /// The number of axes that are reduced.
        reduced_rank: u32,
        /// Sizes of the axes that stay.
        kept_sizes: [u32; MAX_RANK],
        /// Strides of the axes that stay.
        kept_strides: [u32; MAX_RANK],
        /// Sizes of the axes that are reduced.
        reduced_sizes: [u32; MAX_RANK],
        /// Strides of the axes that are reduced.
        reduced_strides: [u32; MAX_RANK],
    }
}

args_struct! {
    /// Arguments of `embedding`.
    EmbeddingArgs {
        /// The number of elements of the result.
        elems: u32,
        /// Rows of the table.
        rows: u32,
        /// Elements of a row.
        width: u32,
        /// The factor of the values.
        scale: f32,
    }
}

/// The most embeddings that are summed up at once.
pub const MAX_EMBEDDINGS: usize = 3;

args_struct! {
    /// Arguments of `embedding_layer_norm`.
    EmbeddingLayerNormArgs {
        /// Elements of a row.
        width: u32,
        /// The number of embeddings that are summed up.
        parts: u32,
        /// Rows of each table.
        rows: [u32; MAX_EMBEDDINGS],
        /// Whether a row is chosen by id; else the table has one row for all tokens.
        by_ids: [u32; MAX_EMBEDDINGS],
        /// The factor of each table's values.
        scales: [f32; MAX_EMBEDDINGS],
        /// Whether there is a bias.
        has_bias: u32,
        /// What is added to the variance.
        eps: f32,
    }
}

args_struct! {
    /// Arguments of the products of matrices. `b_row` and `b_step` are of `b` seen as `[N, K]`.
    MatMulArgs {
        /// Rows of the result in each batch.
        m: u32,
        /// Columns of the result.
        n: u32,
        /// Elements of a sum.
        k: u32,
        /// Tiles along the rows of a batch.
        row_tiles: u32,
        /// Tiles along the columns.
        column_tiles: u32,
        /// The distance between rows of `a`.
        a_row: u32,
        /// The distance between neighbours in a row of `a`.
        a_step: u32,
        /// The distance between rows of `b`, each of which gives a column.
        b_row: u32,
        /// The distance between neighbours in a row of `b`.
        b_step: u32,
        /// The distance between rows of the residual.
        residual_row: u32,
        /// The distance between columns of the residual.
        residual_step: u32,
        /// Whether there is a bias.
        has_bias: u32,
        /// Whether there is a residual.
        has_residual: u32,
        /// The place of the function in `Activation::WORDS`.
        activation: u32,
        /// The number of axes of batches.
        batch_rank: u32,
        /// Sizes of the axes of batches.
        batch_sizes: [u32; MAX_RANK],
        /// Strides of `a` along them.
        a_batch: [u32; MAX_RANK],
        /// Strides of `b` along them; 0 where it is broadcast.
        b_batch: [u32; MAX_RANK],
        /// Strides of the residual along them.
        residual_batch: [u32; MAX_RANK],
    }
}

args_struct! {
    /// Arguments of `rope`.
    RopeArgs {
        /// Threads that have work: tokens times heads times the units of a head, which are its pairs and the elements
        /// that pass through.
        units: u32,
        /// Heads of a token.
        heads: u32,
        /// Elements of a head.
        head_dim: u32,
        /// Pairs that turn.
        pairs: u32,
        /// The distance between tokens of `x`.
        x_token: u32,
        /// The distance between heads of `x`.
        x_head: u32,
        /// Whether pairs are neighbours.
        interleaved: u32,
        /// The factor of sine and cosine.
        scale: f32,
    }
}

args_struct! {
    /// Arguments of `attention` and `paged_attention`.
    AttentionArgs {
        /// The number of tokens.
        tokens: u32,
        /// The number of sequences.
        sequences: u32,
        /// Heads of queries.
        heads: u32,
        /// Heads of queries for each head of keys.
        group_heads: u32,
        /// Elements of a head of queries and keys.
        head_dim: u32,
        /// Elements of a head of values.
        v_dim: u32,
        /// The distance between tokens of `q`.
        q_token: u32,
        /// The distance between heads of `q`.
        q_head: u32,
        /// The distance between tokens of `k`.
        k_token: u32,
        /// The distance between heads of `k`.
        k_head: u32,
        /// The distance between tokens of `v`.
        v_token: u32,
        /// The distance between heads of `v`.
        v_head: u32,
        /// How many keys before its own a query sees at most.
        before: u32,
        /// How many keys after its own a query sees at most.
        after: u32,
        /// Which mask operand there is: 0 none, 1 `custom`, 2 `bias_f32`, 3 `bias_f16`.
        mask_kind: u32,
        /// The distance between heads of the mask operand.
        mask_head: u32,
        /// The distance between tokens of the mask operand.
        mask_row: u32,
        /// The keys for which the mask operand has elements.
        mask_width: u32,
        /// Pages of state, for `paged_attention`.
        pages: u32,
        /// Keys of a page.
        page_len: u32,
        /// Pages that the table has for each sequence.
        pages_each: u32,
        /// The factor of a query's product with a key.
        scale: f32,
        /// The largest absolute score, approached smoothly; 0 for none.
        softcap: f32,
    }
}

args_struct! {
    /// Arguments of `kv_write`.
    KvWriteArgs {
        /// The number of tokens.
        tokens: u32,
        /// Heads of a token.
        heads: u32,
        /// Elements of a head.
        head_dim: u32,
        /// The distance between tokens of `x`.
        x_token: u32,
        /// The distance between heads of `x`.
        x_head: u32,
        /// Slots of all pages.
        slots: u32,
    }
}

args_struct! {
    /// Arguments of `glu`.
    GluArgs {
        /// The number of elements of the result.
        elems: u32,
        /// Elements of a row of the result.
        half_width: u32,
        /// The distance between rows of `x`.
        x_row: u32,
        /// The place of the function in `Activation::WORDS`.
        activation: u32,
    }
}

args_struct! {
    /// Arguments of `l2_normalize`.
    L2NormalizeArgs {
        /// Elements of a row.
        width: u32,
        /// The distance between rows of `x`.
        x_row: u32,
        /// The least length that is divided by.
        eps: f32,
    }
}

args_struct! {
    /// Arguments of `pool` and `pool_l2_normalize`.
    PoolArgs {
        /// The number of tokens.
        tokens: u32,
        /// Elements of a token.
        width: u32,
        /// The distance between tokens of `x`.
        x_row: u32,
        /// The least length that is divided by, where vectors are normalised.
        eps: f32,
    }
}

args_struct! {
    /// Arguments of a fused region.
    RegionArgs {
        /// The number of elements of each result.
        elems: u32,
        /// The number of axes.
        rank: u32,
        /// Sizes, outermost first.
        sizes: [u32; MAX_RANK],
        /// Strides of each operand in turn, `MAX_RANK` for each; 0 where an axis is broadcast.
        strides: [u32; MAX_RANK * MAX_REGION_OPERANDS],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpp_text_has_every_field_at_its_offset() {
        let text = CopyArgs::LAYOUT.cpp();
        assert!(
            text.starts_with("struct CopyArgs {\n  uint elems;\n  uint rank;\n  uint sizes[6];\n"),
            "{text}"
        );
        assert!(text.contains("CHECK_SIZE(CopyArgs, 80);"), "{text}");
        assert!(text.contains("CHECK_OFFSET(CopyArgs, out_strides, 56);"), "{text}");
    }
}
