//! RLX: compile a model once, run it on any device.
