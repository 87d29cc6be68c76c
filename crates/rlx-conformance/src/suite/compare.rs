//! Comparing a result with the reference.

use rlx_ir::op::Evaluated;
use rlx_ir::{DType, Tensor};

use crate::Result;

/// What a result should be: the reference, and how far each element may be from it.
#[derive(Clone, Debug)]
pub struct Reference {
    tensor: Tensor,
    /// The values before rounding, where the op has them.
    exact: Vec<f64>,
    rounded: Vec<f64>,
    tolerance: Vec<f64>,
    /// Whether values were only moved or rounded: then even zeros keep their sign.
    moved: bool,
}

impl Reference {
    /// The reference of an evaluated result, for kernels that accumulate in f32 (results of f64: in f64).
    ///
    /// # Errors
    /// An error of the block decoder.
    pub fn new(evaluated: Evaluated) -> Result<Self> {
        let wide = evaluated.tensor.dtype() == DType::F64;
        let accumulator = if wide { DType::F64 } else { DType::F32 }.unit_roundoff();
        let rounded = evaluated.tensor.to_f64()?;
        let tolerance = evaluated.tolerance(accumulator)?;
        let moved = evaluated.abs_terms.is_none();
        let exact = evaluated.exact.unwrap_or_else(|| rounded.clone());
        Ok(Self { tensor: evaluated.tensor, exact, rounded, tolerance, moved })
    }

    /// The reference of something that must be equal, byte for byte (but for the bits of NaN).
    ///
    /// # Errors
    /// An error of the block decoder.
    pub fn equal(tensor: Tensor) -> Result<Self> {
        Self::new(Evaluated::moved(tensor))
    }

    /// The reference of a graph of several ops, each element of which may be off by `relative` times the largest, or times 1
    /// where that is more.
    ///
    /// # Errors
    /// An error of the block decoder.
    pub fn of_graph(evaluated: Evaluated, relative: f64) -> Result<Self> {
        let mut reference = Self::new(evaluated)?;
        let finite = reference.rounded.iter().filter(|v| v.is_finite());
        let allowed = relative * finite.fold(1.0, |most: f64, v| most.max(v.abs()));
        reference.tolerance.fill(allowed);
        reference.exact.clone_from(&reference.rounded);
        reference.moved = false;
        Ok(reference)
    }

    /// The first element of `got` that is not within the tolerance.
    ///
    /// # Errors
    /// An error of the block decoder.
    pub fn check(&self, got: &Tensor) -> Result<Option<String>> {
        self.check_within(got, 0.0)
    }

    /// The same where computed results of f32 may be off by `slack` besides: by the least normal number, on devices that take
    /// smaller ones for zero.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn check_within(&self, got: &Tensor, slack: f64) -> Result<Option<String>> {
        let slack = if got.dtype() == DType::F32 && !self.moved { slack } else { 0.0 };
        if got.ty() != self.tensor.ty() {
            return Ok(Some(format!("got {}, want {}", got.ty(), self.tensor.ty())));
        }
        if got.bytes() == self.tensor.bytes() {
            return Ok(None);
        }
        if !got.dtype().is_float() {
            return Ok(Some(self.integers(got)?));
        }
        let values = got.to_f64()?;
        let wrong = (0..values.len()).find(|&i| !self.fits(i, values[i], slack));
        Ok(wrong.map(|i| {
            let (got, want, tolerance) = (values[i], self.exact[i], self.tolerance[i]);
            let off = (got - want).abs() / tolerance;
            let count = values.iter().enumerate().filter(|(i, v)| !self.fits(*i, **v, slack)).count();
            format!(
                "element {i} of {}: got {got:?}, want {want:?} within {tolerance:e} ({off:.2} times that); {count} of {} are off",
                self.tensor.ty(),
                values.len()
            )
        }))
    }

    fn fits(&self, i: usize, got: f64, slack: f64) -> bool {
        let (want, tolerance) = (self.rounded[i], self.tolerance[i] + slack);
        if got.is_nan() || want.is_nan() {
            return got.is_nan() && want.is_nan();
        }
        if tolerance == 0.0 {
            return got == want && (!self.moved || got.to_bits() == want.to_bits());
        }
        got == want || (got - self.exact[i]).abs() <= tolerance
    }

    /// The first difference of integers or blocks.
    fn integers(&self, got: &Tensor) -> Result<String> {
        let unit = got.dtype().block_bytes();
        let (mine, other) = (self.tensor.bytes().chunks(unit), got.bytes().chunks(unit));
        let at = mine.zip(other).position(|(a, b)| a != b).unwrap_or(0);
        let element = at * got.dtype().block_elems();
        let differ = |got: String, want: String| {
            format!(
                "element {element} of {}: got {got}, want {want}, and they must be equal",
                self.tensor.ty()
            )
        };
        if got.dtype().is_int() {
            let (got, want) = (got.to_i64()?, self.tensor.to_i64()?);
            return Ok(differ(format!("{:?}", got.get(element)), format!("{:?}", want.get(element))));
        }
        let (got, want) = (got.to_f64()?, self.tensor.to_f64()?);
        Ok(differ(format!("{:?}", got.get(element)), format!("{:?}", want.get(element))))
    }
}

#[cfg(test)]
mod tests {
    use rlx_ir::TensorType;

    use super::*;

    fn computed(dtype: DType, values: &[f64], abs: &[f64]) -> Reference {
        let ty = TensorType::new(dtype, [values.len()]);
        Reference::new(Evaluated::computed(&ty, values.to_vec(), abs.to_vec(), 4).unwrap()).unwrap()
    }

    fn tensor(dtype: DType, values: &[f64]) -> Tensor {
        Tensor::from_f64(TensorType::new(dtype, [values.len()]), values).unwrap()
    }

    #[test]
    fn what_is_beyond_the_tolerance_is_named() {
        let reference = computed(DType::F32, &[1.0, 2.0], &[1.0, 2.0]);
        // 4 u sqrt(4) |terms| + u |value| is 18 u: 9 units in the last place of 2.0.
        let near = 2.0 + 8.0 * 2f64.powi(-23);
        assert_eq!(reference.check(&tensor(DType::F32, &[1.0, near])).unwrap(), None);
        let far = 2.0 + 20.0 * 2f64.powi(-23);
        let said = reference.check(&tensor(DType::F32, &[1.0, far])).unwrap().unwrap();
        assert!(
            said.starts_with("element 1 of f32[2]: got 2.0000") && said.contains("1 of 2 are off"),
            "{said}"
        );
    }

    #[test]
    fn nan_and_infinities_match_themselves_alone() {
        let reference = computed(DType::F32, &[f64::NAN, f64::INFINITY], &[1.0, f64::INFINITY]);
        assert_eq!(reference.check(&tensor(DType::F32, &[f64::NAN, f64::INFINITY])).unwrap(), None);
        assert!(reference.check(&tensor(DType::F32, &[0.0, f64::INFINITY])).unwrap().is_some());
        assert!(reference.check(&tensor(DType::F32, &[f64::NAN, f64::NAN])).unwrap().is_some());
        let reference = computed(DType::F32, &[1.0], &[1.0]);
        assert!(reference.check(&tensor(DType::F32, &[f64::NAN])).unwrap().is_some());
    }

    #[test]
    fn moved_values_and_integers_must_be_equal() {
        let reference = Reference::equal(tensor(DType::F32, &[1.0, 0.5])).unwrap();
        assert!(reference.check(&tensor(DType::F32, &[1.0 + 2f64.powi(-23), 0.5])).unwrap().is_some());
        let reference = Reference::equal(tensor(DType::I32, &[1.0, 7.0])).unwrap();
        let said = reference.check(&tensor(DType::I32, &[1.0, 8.0])).unwrap().unwrap();
        assert!(said.contains("element 1") && said.contains("Some(8)"), "{said}");
        assert!(reference.check(&tensor(DType::I64, &[1.0, 7.0])).unwrap().is_some());
    }
}
