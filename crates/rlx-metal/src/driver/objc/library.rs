//! Compiling kernels.

use objc2::available;
use objc2::rc::Retained;
use objc2::runtime::ProtocolObject;
use objc2_foundation::NSString;
use objc2_metal::{
    MTLCompileOptions, MTLDevice, MTLLanguageVersion, MTLLibrary, MTLMathFloatingPointFunctions, MTLMathMode,
};
use rlx_ir::ErrorKind;

use crate::error::{Error, Result};

pub(super) fn compile(
    device: &ProtocolObject<dyn MTLDevice>,
    text: &str,
) -> Result<Retained<ProtocolObject<dyn MTLLibrary>>> {
    device
        .newLibraryWithSource_options_error(&NSString::from_str(text), Some(&options()))
        .map_err(|e| Error::new(ErrorKind::Device, e.localizedDescription().to_string()))
}

/// Safe math: kernels tell NaN and infinities apart, and reductions keep their order.
fn options() -> Retained<MTLCompileOptions> {
    let options = MTLCompileOptions::new();
    // The newest version that all systems know on which `facts::missing` finds nothing.
    options.setLanguageVersion(MTLLanguageVersion::Version3_0);
    if available!(macos = 15.0, ..) {
        options.setMathMode(MTLMathMode::Safe);
        options.setMathFloatingPointFunctions(MTLMathFloatingPointFunctions::Precise);
    } else {
        #[allow(deprecated)]
        options.setFastMathEnabled(false);
    }
    options
}
