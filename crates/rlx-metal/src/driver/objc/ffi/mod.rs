//! The calls of Metal that are unsafe, each with the reason why it holds here.

pub(super) mod buffer;
pub(super) mod encoder;
pub(super) mod pipeline;
pub(super) mod run;

use objc2::rc::Retained;
use objc2::runtime::ProtocolObject;
use objc2_metal::{MTLCreateSystemDefaultDevice, MTLDevice};

// The system has a default device only for programs that link this.
#[link(name = "CoreGraphics", kind = "framework")]
unsafe extern "C" {}

pub(super) fn default_device() -> Option<Retained<ProtocolObject<dyn MTLDevice>>> {
    MTLCreateSystemDefaultDevice()
}
