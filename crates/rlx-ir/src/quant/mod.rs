//! Block formats: layout, scalar decode and encode, one file per format.
