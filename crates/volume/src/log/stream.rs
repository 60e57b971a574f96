//! The streams of a log: who appends, each to a log segment of its own.

/// Who appends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stream {
    /// Blocks of the host, or those that it rarely writes.
    User,
    /// Blocks that the host often writes.
    Hot,
    /// Blocks that the cleaner moves.
    Clean,
    /// Checkpoints.
    Meta,
    /// Rings of journals (`crate::log::journal`).
    JournalLog,
    /// What journals rewrite beside their rings.
    JournalHot,
}

/// How many streams there are.
pub(crate) const STREAMS: usize = 6;

impl Stream {
    /// All streams.
    pub const ALL: [Self; STREAMS] =
        [Self::User, Self::Hot, Self::Clean, Self::Meta, Self::JournalLog, Self::JournalHot];

    /// Those that take writes of the host.
    pub(crate) const HOST: [Self; 4] = [Self::User, Self::Hot, Self::JournalLog, Self::JournalHot];

    /// Number in formats.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::User => 0,
            Self::Hot => 1,
            Self::Clean => 2,
            Self::Meta => 3,
            Self::JournalLog => 4,
            Self::JournalHot => 5,
        }
    }

    /// The stream of a number in a format.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::User),
            1 => Some(Self::Hot),
            2 => Some(Self::Clean),
            3 => Some(Self::Meta),
            4 => Some(Self::JournalLog),
            5 => Some(Self::JournalHot),
            _ => None,
        }
    }

    pub(crate) const fn is_user(self) -> bool {
        !matches!(self, Self::Clean | Self::Meta)
    }

    /// Whether it is one of the journal set.
    pub(crate) const fn is_journal(self) -> bool {
        matches!(self, Self::JournalLog | Self::JournalHot)
    }

    pub(crate) fn slot(self) -> usize {
        usize::from(self.code())
    }
}
