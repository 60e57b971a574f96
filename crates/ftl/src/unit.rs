//! A unit on its way to flash.

use onefold_units::Ppn;

use crate::frontier::Entry;

/// A unit on its way to flash.
#[derive(Clone, Copy)]
pub(crate) struct Unit<'a> {
    pub(crate) lpn: u32,
    pub(crate) seq: u64,
    pub(crate) entry: Entry,
    pub(crate) data: &'a [u8],
    /// The slot that collection copies it from.
    pub(crate) moves_from: Option<Ppn>,
}
