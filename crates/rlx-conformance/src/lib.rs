//! Cases that every backend must pass, and the filetest runner.
