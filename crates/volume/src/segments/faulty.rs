//! How many log segments failed (`crate::volume::log::suspects`).

/// Log segments that are not used as others are, because the backing fails there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faulty {
    /// A write failed there: what they hold moves out, and they are used again.
    pub failed: u32,
    /// Writes failed there again and again: they are not used until a scrub is through, or the
    /// volume is opened again.
    pub retired: u32,
    /// What they hold could not be read when they were cleaned: they stay as they are, and are looked at again later.
    pub held: u32,
    /// Blocks of all these that hold nothing live: what the volume has less.
    pub lost_blocks: u64,
    /// Strikes against log segments.
    pub strikes: u32,
}

impl Faulty {
    /// How many there are.
    #[must_use]
    pub const fn segments(&self) -> u32 {
        self.failed + self.retired + self.held
    }
}
