//! Backends, executables, sessions, weights and state.
