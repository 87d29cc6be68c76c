//! What a device says of itself, and what kernels need of it.

use objc2::runtime::ProtocolObject;
use objc2_metal::{MTLDevice, MTLGPUFamily};
use rlx_kernels::geometry::DeviceLimits;

use crate::driver::DeviceFacts;

const FAMILIES: [(MTLGPUFamily, &str); 6] = [
    (MTLGPUFamily::Apple7, "apple7"),
    (MTLGPUFamily::Apple8, "apple8"),
    (MTLGPUFamily::Apple9, "apple9"),
    (MTLGPUFamily::Apple10, "apple10"),
    (MTLGPUFamily::Metal3, "metal3"),
    (MTLGPUFamily::Metal4, "metal4"),
];

pub(super) fn of(device: &ProtocolObject<dyn MTLDevice>) -> DeviceFacts {
    let most = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let families = FAMILIES.iter().filter(|(family, _)| device.supportsFamily(*family));
    DeviceFacts {
        name: device.name().to_string(),
        memory_bytes: device.recommendedMaxWorkingSetSize(),
        limits: DeviceLimits {
            threads: most(device.maxThreadsPerThreadgroup().width),
            threadgroup_bytes: most(device.maxThreadgroupMemoryLength()),
            ..DeviceLimits::APPLE
        },
        features: families.map(|(_, name)| (*name).to_owned()).collect(),
    }
}

/// What the device lacks of what every kernel needs, if anything. A virtual machine's GPU is such a device.
pub(super) fn missing(device: &ProtocolObject<dyn MTLDevice>) -> Option<&'static str> {
    if !device.supportsFamily(MTLGPUFamily::Apple7) {
        return Some("kernels need simdgroups of an Apple GPU of family 7, as the M1 and later have");
    }
    if !device.supportsFamily(MTLGPUFamily::Metal3) {
        return Some("kernels need Metal 3, which macOS 13 and later have");
    }
    None
}
