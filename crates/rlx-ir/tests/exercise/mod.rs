//! What must hold for any bytes as graphs in text form. Shared by the corpus test and by the fuzz target.

use rlx_ir::interp::{RunData, run, seeded};
use rlx_ir::text::{PrintOptions, parse, parse_many, print};
use rlx_ir::{Bindings, ErrorKind, Graph, OpSet, Tensor, Value, verify};

/// The size that every symbol gets in a run.
const SYMBOL_SIZE: usize = 3;

/// Graphs whose values hold more elements than this together are not run, to keep a run short.
const MAX_ELEMS: usize = 4096;

/// Parses `bytes`; a graph that parses prints, parses again to the same and runs. `true` where the text was accepted.
pub fn exercise(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let ops = OpSet::builtin();
    let graphs = match parse_many(text, &ops) {
        Ok(graphs) => graphs,
        Err(e) => {
            assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{e}");
            return false;
        }
    };
    for graph in &graphs {
        assert_eq!(verify(graph), Ok(()));
        for types in [false, true] {
            let printed = print(graph, PrintOptions { types });
            let again = parse(&printed, &ops).map(|again| print(&again, PrintOptions { types }));
            assert_eq!(again.as_ref(), Ok(&printed));
        }
        if let Some(mut data) = data_for(graph) {
            match run(graph, &mut data) {
                Ok(outputs) => assert_eq!(outputs.len(), graph.outputs().len()),
                Err(e) => assert_ne!(e.kind(), ErrorKind::Bug, "{e}"),
            }
        }
    }
    !graphs.is_empty()
}

/// Seeded data for every input and state, where the graph is small.
fn data_for(graph: &Graph) -> Option<RunData<'static>> {
    let mut bindings = Bindings::new();
    for name in graph.symbols().names() {
        bindings.bind(name, SYMBOL_SIZE).ok()?;
    }
    let mut left = MAX_ELEMS;
    for value in graph.value_ids() {
        left = left.checked_sub(graph.ty(value).eval(&bindings).ok()?.elems())?;
    }
    let tensor = |value: Value| -> Option<Tensor> { seeded(&graph.ty(value).eval(&bindings).ok()?, 1).ok() };
    let mut data = RunData { weights: Some(&|_, ty| seeded(ty, 2)), ..RunData::default() };
    for (value, name) in graph.inputs() {
        data.inputs.insert(name.to_owned(), tensor(value)?);
    }
    for (value, name) in graph.states() {
        data.states.insert(name.to_owned(), tensor(value)?);
    }
    data.bindings = bindings;
    Some(data)
}
