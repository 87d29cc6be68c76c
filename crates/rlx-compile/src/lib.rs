//! Passes over graphs, the memory plan, and the device-neutral plan.
