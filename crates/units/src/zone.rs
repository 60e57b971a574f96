//! What a zoned device says of a zone (NVMe Zoned Namespace Command Set, section 2.1.1).

/// State of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ZoneState {
    /// A conventional zone: it is written anywhere and has no write pointer (ZBC, Linux; NVMe has no such zones).
    NotWritePointer,
    /// Nothing was written since its reset.
    Empty,
    /// Opened by a write.
    ImplicitlyOpen,
    /// Opened by a command.
    ExplicitlyOpen,
    /// Written in part, and not open.
    Closed,
    /// Written up to its capacity, or finished.
    Full,
    /// It can only be read.
    ReadOnly,
    /// Its data is lost, and it takes none.
    Offline,
}

impl ZoneState {
    /// Every state of a zone with a write pointer, in the order of their codes.
    pub const ALL: [Self; 7] = [
        Self::Empty,
        Self::ImplicitlyOpen,
        Self::ExplicitlyOpen,
        Self::Closed,
        Self::ReadOnly,
        Self::Full,
        Self::Offline,
    ];

    /// Stable name in results and errors.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotWritePointer => "not write pointer",
            Self::Empty => "empty",
            Self::ImplicitlyOpen => "implicitly open",
            Self::ExplicitlyOpen => "explicitly open",
            Self::Closed => "closed",
            Self::Full => "full",
            Self::ReadOnly => "read only",
            Self::Offline => "offline",
        }
    }

    /// The zone state of an NVMe zone descriptor, or the condition that Linux reports (`BLK_ZONE_COND_NOT_WP`).
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::NotWritePointer => 0x0,
            Self::Empty => 0x1,
            Self::ImplicitlyOpen => 0x2,
            Self::ExplicitlyOpen => 0x3,
            Self::Closed => 0x4,
            Self::ReadOnly => 0xD,
            Self::Full => 0xE,
            Self::Offline => 0xF,
        }
    }

    /// Whether a zone in this state takes one of the open resources.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::ImplicitlyOpen | Self::ExplicitlyOpen)
    }

    /// Whether a zone in this state takes one of the active resources.
    #[must_use]
    pub const fn is_active(self) -> bool {
        self.is_open() || matches!(self, Self::Closed)
    }
}
