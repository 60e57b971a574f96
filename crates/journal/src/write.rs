//! A write of the host.

/// A write of the host.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// First byte on the device.
    pub at: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// What is written, if the driver has it at hand.
    pub data: Option<&'a [u8]>,
    /// Whether it has to be durable when it completes.
    pub fua: bool,
}
