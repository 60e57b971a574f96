//! Everything a policy is built from.

use crate::{Parameters, Shape};

/// Bytes of tables that a policy keeps next to its entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    /// What [`Charge::Paper`](crate::Charge::Paper) takes from the buffer.
    pub paper: u64,
    /// What [`Charge::Full`](crate::Charge::Full) takes from the buffer besides ghosts.
    pub full: u64,
}

/// What a policy is built from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setup {
    /// Sizes of the buffer, after its tables were paid for.
    pub shape: Shape,
    /// Parameters of the configured policy.
    pub parameters: Parameters,
    /// Entries the host can address.
    pub device_entries: u64,
    /// Flash channels of the drive.
    pub channels: u32,
    /// Dies on a channel.
    pub ways: u32,
}
