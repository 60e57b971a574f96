//! What can be chosen about the remap primitive.

use onefold_units::Nanos;

use crate::RecoverError;

/// How mappings made by remaps are kept consistent (remap.md section 4; Wu 2022, sections III and IV).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemapScheme {
    /// Remaps are executed as copies (the paper's `NoRemap`).
    None,
    /// One log for all superblocks, on flash. A model for comparison: it does not survive power loss.
    Gf,
    /// One log for all superblocks, in NVRAM. A model for comparison: it does not survive power loss.
    Gn,
    /// A log per superblock, in NVRAM.
    Ln,
    /// A log per superblock, in NVRAM and on flash.
    Lh,
    /// A reverse map without bounds and without cost. A model for comparison: it does not survive
    /// power loss.
    Opt,
}

impl RemapScheme {
    /// Every scheme, in the order of the paper's figures.
    pub const ALL: [Self; 6] = [Self::None, Self::Gf, Self::Gn, Self::Ln, Self::Lh, Self::Opt];

    /// Names in configuration.
    pub const NAMES: [&str; 6] = ["none", "gf", "gn", "ln", "lh", "opt"];

    /// Name in configuration, tables and errors.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gf => "gf",
            Self::Gn => "gn",
            Self::Ln => "ln",
            Self::Lh => "lh",
            Self::Opt => "opt",
        }
    }

    /// Whether entries are kept per superblock in NVRAM segments.
    #[must_use]
    pub const fn is_local(self) -> bool {
        matches!(self, Self::Ln | Self::Lh)
    }
}

/// Configuration of the remap primitive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemapConfig {
    /// Where the log lives.
    pub scheme: RemapScheme,
    /// The paper's rules instead of ours (remap.md section 9): one 16 B entry per page and no
    /// absorption. For simulation only.
    pub paper: bool,
    /// Bytes of the log: NVRAM, or flash for [`RemapScheme::Gf`].
    pub log_bytes: u64,
    /// Bytes of a segment of NVRAM.
    pub segment_bytes: u32,
    /// Logical units that may share a slot; 0 = any number.
    pub max_refs: u32,
    /// A full global log drops its stale entries if few enough are live; otherwise only those of superblocks that are erased.
    pub compacts: bool,
    /// A full log is rewritten only if less than this percentage of its entries is live (Wu 2022,
    /// sec. IV-D: high watermark).
    pub watermark: u32,
    /// Superblocks for the log beyond what its entries need (`O_max` of Wu 2022, sec. IV-D); 0 = by the
    /// size of the device.
    pub log_spare: u32,
    /// Time to read 64 B of NVRAM.
    pub nvram_read: Nanos,
    /// Time to write 64 B of NVRAM.
    pub nvram_write: Nanos,
}

impl RemapConfig {
    /// Whether a device can be stored with it, and used again after power was lost.
    ///
    /// # Errors
    /// [`RecoverError::Model`]: it is for simulation only.
    pub const fn check_storable(&self) -> Result<(), RecoverError> {
        let scheme = self.scheme;
        match scheme {
            RemapScheme::Gf | RemapScheme::Gn | RemapScheme::Opt => {
                Err(RecoverError::Model { scheme: scheme.name() })
            }
            RemapScheme::Ln | RemapScheme::Lh if self.paper => Err(RecoverError::PaperMode),
            RemapScheme::None | RemapScheme::Ln | RemapScheme::Lh => Ok(()),
        }
    }

    /// No remapping: remaps are copies.
    pub const OFF: Self = Self {
        scheme: RemapScheme::None,
        paper: false,
        log_bytes: 0,
        segment_bytes: 1024,
        max_refs: 0,
        compacts: true,
        watermark: 95,
        log_spare: 0,
        nvram_read: Nanos::ZERO,
        nvram_write: Nanos::ZERO,
    };

    /// Bytes of an entry as it is first written (remap.md section 3: P16, G16; ours is 24 B).
    #[must_use]
    pub const fn entry_bytes(&self) -> u32 {
        if self.paper { 16 } else { 24 }
    }

    /// Bytes of the header of a segment.
    #[must_use]
    pub const fn segment_head_bytes(&self) -> u32 {
        if self.paper { 16 } else { 32 }
    }

    /// Entries of a segment.
    #[must_use]
    pub const fn entries_per_segment(&self) -> u32 {
        (self.segment_bytes - self.segment_head_bytes()) / self.entry_bytes()
    }

    /// Longest run of one entry, in logical units.
    #[must_use]
    pub const fn run_max(&self) -> u16 {
        if self.paper { 1 } else { u16::MAX }
    }

    /// Largest distance of neighbouring units of a run: more dies in turn are an entry per unit. Larger
    /// ones come about by chance, and one of them widens every entry of its log page.
    pub(crate) const STRIDE_MAX: u16 = 1024;
}
