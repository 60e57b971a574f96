//! What can be chosen about the buffer.

/// Buffer policies by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyKind {
    /// Least recently used, write-back.
    Lru,
}

impl PolicyKind {
    /// Every policy.
    pub const ALL: [Self; 1] = [Self::Lru];

    /// Name in configuration, tables and errors.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lru => "lru",
        }
    }
}

/// Configuration of the DRAM buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferConfig {
    /// Policy.
    pub policy: PolicyKind,
    /// Size in bytes; 0 = no buffer.
    pub bytes: u64,
    /// Whether its content is lost at a power cut. A power-loss-protected buffer is not.
    pub volatile: bool,
}
