//! What can be chosen about the buffer.

use crate::PolicySpec;

/// Which tables of a policy are paid for with buffer memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Charge {
    /// What the paper charges: the large-append table of append-only isolation (Jeong 2021,
    /// sec. IV-A). Ghosts of other policies are free, as in their papers.
    #[default]
    Paper,
    /// Every table that grows with the buffer or the device: also cursors, and 8 B per ghost.
    Full,
    /// Nothing: all of the size holds entries.
    None,
}

impl Charge {
    /// Every choice.
    pub const ALL: [Self; 3] = [Self::Paper, Self::Full, Self::None];

    /// Name in configuration, tables and errors.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::Full => "full",
            Self::None => "none",
        }
    }
}

/// Configuration of the DRAM buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferConfig {
    /// Policy and its parameters.
    pub policy: PolicySpec,
    /// Size in bytes; 0 = no buffer.
    pub bytes: u64,
    /// What the tables of the policy cost.
    pub charge: Charge,
    /// Whether its content is lost at a power cut. A power-loss-protected buffer is not.
    pub volatile: bool,
}
