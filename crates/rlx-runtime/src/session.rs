//! Sessions: a graph compiled for a device, and contexts to run it in with typed inputs and outputs.

use std::sync::Arc;

use bytemuck::Pod;
use rlx_compile::passes::precision;
use rlx_compile::{CompileOptions, Compute, PassReport, Plan, build_plan, run_passes};
use rlx_ir::{Bindings, DType, Graph, Symbols, Tick};

use crate::backend::{Backend, DeviceWeight, Strategy};
use crate::error::{Error, Result};
use crate::executable::{Context, Executable, MemoryUse, Timing};
use crate::runtime::Runtime;
use crate::weights::{LoadProgress, WeightSource};

/// How a graph is compiled.
pub struct SessionOptions<'a> {
    /// The device: `auto`, `cpu`, ...; `None` takes the runtime's setting.
    pub device: Option<&'a str>,
    /// The strategy; `None` takes the runtime's setting, and there `auto` the backend's first.
    pub strategy: Option<Strategy>,
    /// Passes and precision.
    pub compile: CompileOptions,
    /// Called while weights load.
    pub progress: &'a LoadProgress<'a>,
}

impl Default for SessionOptions<'_> {
    fn default() -> Self {
        Self { device: None, strategy: None, compile: CompileOptions::default(), progress: &|_, _| {} }
    }
}

impl std::fmt::Debug for SessionOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionOptions")
            .field("device", &self.device)
            .field("strategy", &self.strategy)
            .field("compile", &self.compile)
            .finish_non_exhaustive()
    }
}

/// What compiling took, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompileStats {
    /// Passes over the graph.
    pub passes_ns: u64,
    /// The plan with its memory layout.
    pub plan_ns: u64,
    /// Reading and preparing weights.
    pub prepare_ns: u64,
    /// The backend's executable.
    pub build_ns: u64,
}

impl CompileStats {
    /// Compilation without weight preparation.
    pub fn compile_ns(&self) -> u64 {
        self.passes_ns + self.plan_ns + self.build_ns
    }
}

/// A graph compiled for a device. Cheap to clone; clones share the executable.
#[derive(Clone)]
pub struct Session {
    backend: Arc<dyn Backend>,
    executable: Arc<dyn Executable>,
    reports: Arc<Vec<PassReport>>,
    stats: CompileStats,
    weight_bytes: u64,
}

impl Session {
    /// Compiles `graph`, whose weights come from `source`.
    ///
    /// # Errors
    /// Errors of the passes, the plan, the weights and the backend; `UnsupportedOnDevice` where the device or the
    /// strategy is not there.
    pub fn compile(
        runtime: &Runtime,
        graph: &Graph,
        source: &dyn WeightSource,
        options: &SessionOptions<'_>,
    ) -> Result<Self> {
        let _span = tracing::debug_span!("compile", graph = graph.name()).entered();
        let settings = runtime.settings();
        let backend = runtime.backend(options.device.unwrap_or(settings.text("RLX_DEVICE")))?.clone();
        let strategy = match options.strategy {
            Some(strategy) => strategy.name(),
            None => settings.text("RLX_STRATEGY"),
        };
        let strategy = Strategy::choose(&*backend, strategy)?;
        let mut stats = CompileStats::default();
        let tick = Tick::now();
        let (graph, reports) = run_passes(graph.clone(), &*backend, &options.compile)?;
        stats.passes_ns = tick.elapsed_ns();
        warn_without_effect(options.compile.precision.compute, &reports);
        let tick = Tick::now();
        let plan = Arc::new(build_plan(&graph, &*backend)?);
        stats.plan_ns = tick.elapsed_ns();
        let tick = Tick::now();
        let weights = runtime.store().prepare(&plan, &*backend, source, options.progress)?;
        stats.prepare_ns = tick.elapsed_ns();
        let weight_bytes = weights.iter().map(|w: &Arc<DeviceWeight>| w.resident_bytes()).sum();
        let tick = Tick::now();
        let executable = backend.build(plan, weights, strategy)?;
        stats.build_ns = tick.elapsed_ns();
        tracing::debug!(
            graph = graph.name(),
            nodes = graph.nodes().len(),
            passes_us = stats.passes_ns / 1000,
            plan_us = stats.plan_ns / 1000,
            prepare_us = stats.prepare_ns / 1000,
            build_us = stats.build_ns / 1000,
            "compiled"
        );
        Ok(Self { backend, executable, reports: Arc::new(reports), stats, weight_bytes })
    }

    /// The backend that runs it.
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    /// The plan.
    pub fn plan(&self) -> &Arc<Plan> {
        self.executable.plan()
    }

    /// The strategy.
    pub fn strategy(&self) -> Strategy {
        self.executable.strategy()
    }

    /// The name of the kernel behind each step, in the plan's order.
    pub fn kernels(&self) -> Vec<String> {
        self.executable.kernels()
    }

    /// What each pass did, and which rules nearly fired.
    pub fn reports(&self) -> &[PassReport] {
        &self.reports
    }

    /// What compiling took.
    pub fn stats(&self) -> CompileStats {
        self.stats
    }

    /// Bytes that were allocated for prepared weights; weights that are used in place from a mapped file count 0.
    pub fn weight_bytes(&self) -> u64 {
        self.weight_bytes
    }

    /// Makes a context to run in. `state_sizes` binds the symbols in the shapes of states. Where that leaves no symbol, as in a
    /// graph that has none, the context is bound.
    ///
    /// # Errors
    /// `InvalidArgument` where a state's symbol is not bound, or a name is none of the graph's symbols; `Device` where memory
    /// cannot be had.
    pub fn context(&self, state_sizes: &[(&str, usize)]) -> Result<RunContext> {
        let symbols = &self.plan().symbols;
        let state_sizes = extend(&Bindings::new(), symbols, state_sizes)?;
        let inner = self.executable.context(&state_sizes)?;
        let given = vec![false; self.plan().inputs.len()];
        let mut context = RunContext { inner, state_sizes, bound: None, given, ran: false };
        if symbols.names().iter().all(|name| context.state_sizes.get(name).is_some()) {
            context.bind(&[])?;
        }
        Ok(context)
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("backend", &self.backend.name())
            .field("graph", &self.plan().name)
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}

/// A type that was asked for, but that nothing computes in, is said.
fn warn_without_effect(compute: Compute, reports: &[PassReport]) {
    for report in reports.iter().filter(|r| r.pass == precision::PASS.name && r.fired.is_empty()) {
        if let Some(miss) = report.near_misses.first() {
            tracing::warn!(
                "{} was asked for, but nothing computes in it: at %{} and {} more, {}",
                compute.name(),
                miss.value,
                report.near_misses.len() - 1,
                miss.reason
            );
        }
    }
}

/// `made_with`, which a context was made with, and `sizes`.
fn extend(made_with: &Bindings, symbols: &Symbols, sizes: &[(&str, usize)]) -> Result<Bindings> {
    let mut all = made_with.clone();
    for &(name, size) in sizes {
        if !symbols.contains(name) {
            let names: Vec<&str> = symbols.names().iter().map(|n| &**n).collect();
            let there = if names.is_empty() { "there are none".to_owned() } else { names.join(", ") };
            rlx_ir::bail!(InvalidArgument, "no symbol {name:?}; the symbols are: {there}");
        }
        match (all.get(name), made_with.get(name)) {
            (Some(old), before) if usize::try_from(old) != Ok(size) => rlx_ir::bail!(
                InvalidArgument,
                "symbol {name} is given as {size}, but {} as {old}",
                if before.is_some() { "the context was made with it" } else { "in the same list also" }
            ),
            _ => all.bind(name, size)?,
        }
    }
    Ok(all)
}

/// Element types of typed inputs and outputs.
pub trait Element: Pod {
    /// Whether values of `dtype` can be seen as this type.
    fn fits(dtype: DType) -> bool;
}

macro_rules! elements {
    ($($ty:ty: $($dtype:ident)|+;)*) => {
        $(impl Element for $ty {
            fn fits(dtype: DType) -> bool {
                matches!(dtype, $(DType::$dtype)|+)
            }
        })*
    };
}

elements! {
    f32: F32;
    f64: F64;
    i8: I8;
    i16: I16;
    i32: I32;
    i64: I64;
    u8: U8 | Bool;
    u16: F16 | BF16;
    u32: U32;
}

/// A context with typed access by name. One run at a time.
///
/// It knows what was done since sizes were bound: a run wants every input to be given, and outputs are there only after a run.
pub struct RunContext {
    inner: Box<dyn Context>,
    state_sizes: Bindings,
    /// What is bound; `None` before the first bind and after one that failed.
    bound: Option<Bindings>,
    /// Per input, whether its memory was handed out since its sizes were bound.
    given: Vec<bool>,
    /// Whether outputs are those of a run with the bound sizes.
    ran: bool,
}

impl RunContext {
    /// Binds the graph's symbols, besides those of states. Call it before filling inputs: those whose sizes it changes have to
    /// be given again. Outputs are gone, unless the sizes are those that are bound.
    ///
    /// # Errors
    /// `InvalidArgument` where a symbol is missing, unknown, given twice, exceeds its bound, or makes a range that is beyond its
    /// axis. Nothing is bound then.
    pub fn bind(&mut self, sizes: &[(&str, usize)]) -> Result<()> {
        // Where binding fails, nothing is bound.
        let before = self.bound.take();
        let all = extend(&self.state_sizes, &self.inner.plan().symbols, sizes)?;
        if before.as_ref() != Some(&all) {
            self.ran = false;
            self.inner.bind(&all)?;
            for (given, port) in self.given.iter_mut().zip(&self.inner.plan().inputs) {
                let kept = |b: &Bindings| port.ty.shape.dims().iter().all(|d| b.eval(d) == all.eval(d));
                *given &= before.as_ref().is_some_and(kept);
            }
        }
        self.bound = Some(all);
        Ok(())
    }

    fn check_bound(&self) -> Result<&Bindings> {
        match &self.bound {
            Some(bound) => Ok(bound),
            None => rlx_ir::bail!(InvalidArgument, "symbols are not bound: call bind first"),
        }
    }

    /// The memory of an input, to be filled in place.
    ///
    /// # Errors
    /// `InvalidArgument` where there is no such input, it has another dtype, or nothing is bound.
    pub fn input<T: Element>(&mut self, name: &str) -> Result<&mut [T]> {
        let index = self.input_index(name)?;
        let dtype = self.inner.plan().inputs[index].ty.dtype;
        if !T::fits(dtype) {
            rlx_ir::bail!(InvalidArgument, "input {name:?} holds {dtype}");
        }
        cast_mut(self.give(index)?)
    }

    /// The bytes of an input, to be filled in place: for dtypes without an [`Element`] type, as blocks.
    ///
    /// # Errors
    /// `InvalidArgument` where there is no such input or nothing is bound.
    pub fn input_bytes(&mut self, name: &str) -> Result<&mut [u8]> {
        let index = self.input_index(name)?;
        self.give(index)
    }

    /// The memory of input `index`: whoever asks for it fills it.
    fn give(&mut self, index: usize) -> Result<&mut [u8]> {
        self.check_bound()?;
        let memory = self.inner.input(index)?;
        self.given[index] = true;
        Ok(memory)
    }

    fn input_index(&self, name: &str) -> Result<usize> {
        let inputs = &self.inner.plan().inputs;
        match inputs.iter().position(|p| p.name == name) {
            Some(index) => Ok(index),
            None => {
                let names: Vec<&str> = inputs.iter().map(|p| p.name.as_str()).collect();
                rlx_ir::bail!(InvalidArgument, "no input {name:?}; the inputs are {}", names.join(", "))
            }
        }
    }

    /// Copies values into an input.
    ///
    /// # Errors
    /// As [`input`](Self::input); `InvalidArgument` where the number of values is not what is bound.
    pub fn set<T: Element>(&mut self, name: &str, values: &[T]) -> Result<()> {
        let index = self.input_index(name)?;
        let before = self.given[index];
        let memory = self.input::<T>(name)?;
        let takes = memory.len();
        if takes != values.len() {
            self.given[index] = before;
            rlx_ir::bail!(InvalidArgument, "input {name:?} takes {takes} values, got {}", values.len());
        }
        memory.copy_from_slice(values);
        Ok(())
    }

    /// Runs and waits.
    ///
    /// # Errors
    /// `InvalidArgument` where nothing is bound, or naming an input that was not given since its sizes were bound; what kernels
    /// report; `Device`.
    pub fn run(&mut self) -> Result<()> {
        let _span = tracing::debug_span!("run", graph = self.inner.plan().name).entered();
        self.ran = false;
        self.check_bound()?;
        if let Some(missing) = self.given.iter().position(|given| !given) {
            let name = &self.inner.plan().inputs[missing].name;
            rlx_ir::bail!(InvalidArgument, "input {name:?} is missing: fill it after sizes are bound");
        }
        self.inner.run()?;
        self.ran = true;
        Ok(())
    }

    fn check_ran(&self) -> Result<()> {
        self.check_bound()?;
        if self.ran {
            return Ok(());
        }
        rlx_ir::bail!(
            InvalidArgument,
            "there are no outputs: nothing ran since sizes were bound, or the run failed"
        )
    }

    /// The values of output `index`, in place.
    ///
    /// # Errors
    /// `InvalidArgument` where there is no such output, it has another dtype, nothing ran since sizes were bound, or the run
    /// failed.
    pub fn output<T: Element>(&self, index: usize) -> Result<&[T]> {
        let dtype = self.output_operand(index)?.ty.dtype;
        if !T::fits(dtype) {
            rlx_ir::bail!(InvalidArgument, "output {index} holds {dtype}");
        }
        self.check_ran()?;
        let bytes = self.inner.output(index)?;
        if bytes.is_empty() {
            return Ok(&[]);
        }
        match bytemuck::try_cast_slice(bytes) {
            Ok(values) => Ok(values),
            Err(e) => rlx_ir::bail!(Bug, "output {index}: {e}"),
        }
    }

    /// The bytes of output `index`, in place.
    ///
    /// # Errors
    /// `InvalidArgument` where there is no such output, nothing ran since sizes were bound, or the run failed.
    pub fn output_bytes(&self, index: usize) -> Result<&[u8]> {
        self.output_operand(index)?;
        self.check_ran()?;
        self.inner.output(index)
    }

    /// The sizes of output `index` as bound.
    ///
    /// # Errors
    /// `InvalidArgument` where there is no such output or nothing is bound.
    pub fn output_shape(&self, index: usize) -> Result<Vec<usize>> {
        let shape = &self.output_operand(index)?.ty.shape;
        Ok(shape.eval(self.check_bound()?)?)
    }

    fn output_operand(&self, index: usize) -> Result<&rlx_compile::plan::Operand> {
        let outputs = &self.inner.plan().outputs;
        match outputs.get(index) {
            Some(o) => Ok(o),
            None => rlx_ir::bail!(InvalidArgument, "no output {index}; there are {}", outputs.len()),
        }
    }

    /// The memory of the state called `name`.
    ///
    /// # Errors
    /// `InvalidArgument` where there is no such state.
    pub fn state(&mut self, name: &str) -> Result<&mut [u8]> {
        let index = self.inner.plan().states.iter().position(|p| p.name == name);
        match index {
            Some(index) => self.inner.state(index),
            None => rlx_ir::bail!(InvalidArgument, "no state {name:?}"),
        }
    }

    /// Measures each step in the next runs.
    pub fn set_timing(&mut self, timing: Timing) {
        self.inner.set_timing(timing);
    }

    /// Nanoseconds per step of the last run; empty while timing is off.
    pub fn timings(&self) -> &[u64] {
        self.inner.timings()
    }

    /// The memory of this context.
    pub fn memory(&self) -> MemoryUse {
        self.inner.memory()
    }
}

impl std::fmt::Debug for RunContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunContext")
            .field("graph", &self.inner.plan().name)
            .field("bound", &self.bound)
            .finish()
    }
}

fn cast_mut<T: Element>(bytes: &mut [u8]) -> Result<&mut [T]> {
    // No bytes may lie anywhere.
    if bytes.is_empty() {
        return Ok(&mut []);
    }
    match bytemuck::try_cast_slice_mut(bytes) {
        Ok(values) => Ok(values),
        Err(e) => rlx_ir::bail!(Bug, "input memory: {e}"),
    }
}
