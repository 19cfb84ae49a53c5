//! What can be tested without a device.

mod plan;
