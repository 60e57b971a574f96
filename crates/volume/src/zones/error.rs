//! Why a volume does not get along with the zones of its backing.

use onefold_format::volume::VolumeMode;
use onefold_units::ZoneId;
use thiserror::Error;

use crate::zones::ROOT_ZONES;

/// Why a volume does not get along with the zones of its backing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ZoneError {
    /// The backing has zones of another size than when the volume was made, or has none.
    #[error(
        "the backing has zones of {found} blocks (0: none), and the volume was made on zones of {expected}; nothing was changed"
    )]
    Size {
        /// Blocks of a zone now.
        found: u32,
        /// Blocks then.
        expected: u32,
    },
    /// The modes of the papers overwrite in place.
    #[error("a volume of mode {} overwrites in place, and the backing has zones: choose mode log", mode.name())]
    Mode {
        /// The mode.
        mode: VolumeMode,
    },
    /// Zones take different amounts, or not what they took when the volume was made.
    #[error("zone {} takes {found} blocks, expected {expected}, as all others", zone.raw())]
    Capacity {
        /// Which.
        zone: ZoneId,
        /// Blocks that it takes.
        found: u32,
        /// Blocks that were expected.
        expected: u32,
    },
    /// Fewer zones may be written in part at once than the volume has streams.
    #[error(
        "the backing allows {found} active zones, and a volume needs at least {min}: for data, for what is cleaned, for the map, \
         and for roots"
    )]
    Limit {
        /// Zones that may be open and active.
        found: u32,
        /// Fewest that do.
        min: u32,
    },
    /// A zone that labels or roots need cannot be written.
    #[error("zone {} is read-only or offline, and labels and roots need it", zone.raw())]
    Fixed {
        /// Which.
        zone: ZoneId,
    },
    /// One of the two zones with roots is conventional.
    #[error(
        "zones {} and {} hold roots, and only one of them is conventional; a device with more or fewer conventional zones is needed",
        ROOT_ZONES[0],
        ROOT_ZONES[1]
    )]
    RootZones,
    /// A zone holds less than the last checkpoint knows of.
    #[error(
        "zone {} was written up to its block {found}, and the last checkpoint knows of {expected}: somebody reset it, or the \
         device lost what it had called durable. Nothing was changed; `volume check --repair` gives up what is missing",
        zone.raw()
    )]
    WritePointer {
        /// Which.
        zone: ZoneId,
        /// Blocks that were written, by its write pointer.
        found: u32,
        /// Blocks that were written at least, by the checkpoint.
        expected: u32,
    },
    /// A zone that may hold the last batches is gone.
    #[error(
        "zone {} is offline, and may hold what was written after the last checkpoint. Nothing was changed; \
         `volume check --repair` gives it up",
        zone.raw()
    )]
    Offline {
        /// Which.
        zone: ZoneId,
    },
    /// Pages of the map are gone.
    #[error(
        "zone {} is offline, and held pages of the map. Nothing was changed; `volume check --repair` gives up the blocks that only these \
         pages told of, and `volume check --rebuild` makes the map anew from the headers in the log",
        zone.raw()
    )]
    Map {
        /// Which.
        zone: ZoneId,
    },
    /// A zone that the last checkpoint needs is gone.
    #[error(
        "zone {} is offline, and held {what} blocks of the last checkpoint, without which the volume cannot be opened. Nothing was changed; \
         `volume check --rebuild` makes the map anew from an older checkpoint or from the headers in the log",
        zone.raw()
    )]
    Checkpoint {
        /// Which.
        zone: ZoneId,
        /// What it held.
        what: &'static str,
    },
    /// A zone holds something although all were reset.
    #[error("zone {} is not empty after it was reset", zone.raw())]
    NotEmpty {
        /// Which.
        zone: ZoneId,
    },
}

impl ZoneError {
    /// Whether `give_up_zones` opens the volume in spite of it.
    #[must_use]
    pub const fn can_be_given_up(&self) -> bool {
        matches!(self, Self::WritePointer { .. } | Self::Offline { .. } | Self::Map { .. })
    }
}
