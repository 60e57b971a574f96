//! Access patterns.

/// How requests follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Writes at random addresses.
    RandWrite,
    /// Reads at random addresses.
    RandRead,
    /// Writes in address order.
    Write,
    /// Reads in address order.
    Read,
    /// Reads and writes at random addresses.
    RandRw,
    /// Reads, writes and trims at random addresses.
    Mix,
}

impl Pattern {
    /// Every pattern.
    pub const ALL: [Self; 6] =
        [Self::RandWrite, Self::RandRead, Self::Write, Self::Read, Self::RandRw, Self::Mix];

    /// The word of the specification language.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::RandWrite => "randwrite",
            Self::RandRead => "randread",
            Self::Write => "write",
            Self::Read => "read",
            Self::RandRw => "randrw",
            Self::Mix => "mix",
        }
    }

    /// What it does, in one line.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Self::RandWrite => "writes at random addresses",
            Self::RandRead => "reads at random addresses",
            Self::Write => "writes in address order",
            Self::Read => "reads in address order",
            Self::RandRw => "reads and writes at random addresses",
            Self::Mix => "reads, writes and trims at random addresses",
        }
    }

    /// Whether addresses follow each other.
    #[must_use]
    pub const fn is_sequential(self) -> bool {
        matches!(self, Self::Write | Self::Read)
    }

    /// Whether it can write.
    #[must_use]
    pub const fn writes(self) -> bool {
        !matches!(self, Self::RandRead | Self::Read)
    }

    /// Whether the share of reads is free.
    pub(super) const fn mixes_reads(self) -> bool {
        matches!(self, Self::RandRw | Self::Mix)
    }

    pub(super) const fn default_read_share(self) -> f64 {
        match self {
            Self::RandWrite | Self::Write => 0.0,
            Self::RandRead | Self::Read => 1.0,
            Self::RandRw | Self::Mix => 0.5,
        }
    }

    pub(super) const fn default_trim_share(self) -> f64 {
        if matches!(self, Self::Mix) { 0.1 } else { 0.0 }
    }
}
