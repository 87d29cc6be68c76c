//! What a place to run a plan in needs: the memory of its inputs and states, and the sizes that it may be bound to.

use rlx_ir::{Bindings, Dim};

use super::{Plan, Port};
use crate::error::{Error, Result};

impl Plan {
    /// The most bytes that `input` ever takes.
    ///
    /// # Errors
    /// `InvalidArgument` where a symbol in its shape has no bound.
    pub fn input_bytes(&self, input: &Port) -> Result<u64> {
        match self.symbols.upper_bound(&input.ty.bytes()) {
            Some(most) => Ok(most.unsigned_abs()),
            None => rlx_ir::bail!(InvalidArgument, "input {:?}: {} has no bound", input.name, input.ty),
        }
    }

    /// The bytes that `state` takes at `sizes`.
    ///
    /// # Errors
    /// `InvalidArgument` naming the state and the symbol that has no size, and where the size overflows.
    pub fn state_bytes(&self, state: &Port, sizes: &Bindings) -> Result<u64> {
        let bytes = state.ty.eval(sizes).and_then(|ty| ty.bytes());
        Ok(bytes.map_err(|e| e.context(format!("state {:?}", state.name)))? as u64)
    }

    /// Checks that `bindings` gives every symbol a size within its bounds, and keeps ranges within their axes.
    ///
    /// # Errors
    /// `InvalidArgument` naming the symbol, the bound or the two sizes.
    pub fn check(&self, bindings: &Bindings) -> Result<()> {
        self.symbols.check(bindings)?;
        for (low, high) in &self.conditions {
            let (needed, there) = (bindings.eval(low)?, bindings.eval(high)?);
            match (low.as_const(), high.as_const()) {
                _ if needed <= there => {}
                (Some(_), None) => {
                    rlx_ir::bail!(InvalidArgument, "{high} is {there}, but must be at least {needed}")
                }
                (None, Some(_)) => {
                    rlx_ir::bail!(InvalidArgument, "{low} is {needed}, but must not exceed {there}")
                }
                _ => rlx_ir::bail!(
                    InvalidArgument,
                    "{low} is {needed}, but must not exceed {high}, which is {there}"
                ),
            }
        }
        Ok(())
    }

    /// Checks that `bindings` leaves states the sizes that they were made with.
    ///
    /// # Errors
    /// `InvalidArgument` naming the symbol.
    pub fn check_states(&self, made_with: &Bindings, bindings: &Bindings) -> Result<()> {
        for name in self.states.iter().flat_map(|p| p.ty.shape.dims()).flat_map(Dim::symbols) {
            if bindings.get(&name) != made_with.get(&name) {
                rlx_ir::bail!(
                    InvalidArgument,
                    "symbol {name} sizes a state: it cannot change after the context was made"
                );
            }
        }
        Ok(())
    }
}
