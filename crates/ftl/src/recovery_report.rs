//! What recovery is asked for, what it found, and why it could not.

use onefold_nand::MediaError;
use onefold_units::{Lpn, Seq};

use crate::{ConfigError, FtlError};

/// What recovery found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Checkpoint it started from; 0 = none.
    pub checkpoint: u64,
    /// Superblocks whose slots were read.
    pub scanned_superblocks: u32,
    /// Slots considered.
    pub candidates: u64,
    /// Slots that a power cut left torn, or that fail their checksum.
    pub torn_slots: u64,
    /// Trim records applied.
    pub trim_records: u64,
    /// Mapped units.
    pub mapped_units: u64,
    /// Units whose content is lost: reading them is an error.
    pub lost_units: u64,
    /// Entries of the remap log.
    pub log_entries: u64,
    /// Atomic commands that power failed in: as if never issued.
    pub aborted_commands: u64,
    /// Bytes of NVRAM read for the remap log.
    pub nvram_bytes: u64,
    /// Pages of the remap log on flash.
    pub log_pages: u64,
    /// Pages of the remap log that cannot be read. What they said is known from elsewhere, but for those
    /// of `log_damage`.
    pub damaged_log_pages: u64,
    /// Pages of the remap log that cannot be read and that nothing replaces; only where recovery was to
    /// give up what they may be about.
    pub log_damage: Option<LogDamage>,
    /// Units given up for that, among the lost ones: they may hold older contents.
    pub given_up_units: u64,
}

/// What recovery does about a page of the remap log that cannot be read and that nothing replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnLogDamage {
    /// It ends with [`RecoverError::DamagedLog`].
    Refuse,
    /// Every unit that the page may be about is lost: all but those that are known to have changed since.
    GiveUp {
        /// A unit that is never the target of a remap.
        but: Option<Lpn>,
    },
}

/// Pages of the remap log that cannot be read although nothing else says what they said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogDamage {
    /// Superblock of the first.
    pub superblock: u32,
    /// Its slot there.
    pub slot: u32,
    /// How many there are.
    pub pages: u64,
    /// What they said is older than this.
    pub before: Seq,
}

/// Why a device cannot be recovered.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RecoverError {
    /// The configuration cannot work on this geometry.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The scheme is a model that does not survive power loss.
    #[error(
        "ftl.remap = \"{scheme}\" is a model for comparison and does not survive power loss: use \
         \"ln\" or \"lh\""
    )]
    Model {
        /// Its name.
        scheme: &'static str,
    },
    /// The paper's rules do not survive power loss.
    #[error(
        "ftl.remap_mode = \"paper\" is for comparison and does not survive power loss: use \"default\""
    )]
    PaperMode,
    /// A part of the remap log cannot be read, and nothing else says what it said.
    #[error(
        "slot {} of superblock {}, a page of the remap log, is damaged{}: which units it was about is \
         not known, and they would read as older contents; restore the image from a copy, or see \
         what `onefold ssd check` tells about giving those units up",
        .0.slot,
        .0.superblock,
        further(.0.pages)
    )]
    DamagedLog(LogDamage),
    /// The medium has a remap log, but remapping is off.
    #[error(
        "superblock {superblock} holds a remap log, but ftl.remap is \"none\": use the scheme the \
         device was written with"
    )]
    ForeignLog {
        /// A superblock of the log.
        superblock: u32,
    },
    /// The medium failed.
    #[error(transparent)]
    Ftl(#[from] FtlError),
}

fn further(pages: u64) -> String {
    if pages > 1 { format!(", and {} further ones", pages - 1) } else { String::new() }
}

impl From<MediaError> for RecoverError {
    fn from(error: MediaError) -> Self {
        Self::Ftl(error.into())
    }
}
