//! Changing the size of a volume, or of its backing, while it is used.
//!
//! 1. The newest label says how large both are. It is written when nothing lies any more where a smaller one does not
//!    reach, and before anything lies where only a larger one does. So a power cut leaves the old size or the new one, and
//!    needs no record of what was under way: all that was done before the label does no harm to the old size.
//! 2. What no longer belongs to the exported device is unmapped in the last root, and in every block of the directory: it
//!    must not come back when the device grows again.
//! 3. Log segments that end behind a smaller backing are empty, and no root names them as places for batches.
//! 4. The sizes in memory change between checkpoints.

mod labels;
mod shrink;

use onefold_format::volume::{DIRECTORY_ENTRIES, VolumeLabel};
use onefold_units::convert::low16;
use thiserror::Error;

use crate::config::{Geometry, GeometryError};
use crate::layout::Layout;
use crate::map::Ready;
use crate::volume::Volume;

/// A new size in blocks of 4 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resize {
    /// Of the exported device.
    Logical {
        /// Its blocks.
        blocks: u64,
        /// What lies behind a smaller end is lost. Without, it has to be unmapped.
        discard: bool,
    },
    /// Of the backing, which has to have as many already, or still.
    Backing {
        /// Its blocks.
        blocks: u64,
    },
}

/// Why a size was not changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ResizeError {
    /// The new geometry cannot work.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    /// Copies of label and root would have to move.
    #[error(
        "a backing of {from} blocks of 4 KiB cannot have {to}: below 32,768 (128 MiB) roots lie in the middle, which must not move"
    )]
    Moves {
        /// Blocks now.
        from: u64,
        /// Blocks then.
        to: u64,
    },
    /// There is something behind the new end.
    #[error(
        "block {lba} is behind the new end and holds data; trim it, or have the tail discarded"
    )]
    Mapped {
        /// The first one.
        lba: u64,
    },
    /// The map of what is behind the new end cannot be read.
    #[error("the map of block {lba}, behind the new end, cannot be read")]
    Unreadable {
        /// The first block.
        lba: u64,
    },
    /// What the volume holds does not fit a smaller backing.
    #[error("{live} blocks are in use, and a backing of that size has room for {room}")]
    NoRoom {
        /// Blocks in use, with the map.
        live: u64,
        /// Room.
        room: u64,
    },
    /// A log segment behind the new end cannot be emptied.
    #[error(
        "log segment {segment} holds blocks that cannot be moved: its medium or its headers are damaged"
    )]
    Stuck {
        /// Which.
        segment: u32,
    },
    /// Snapshots and clones are as large as the device.
    #[error("the volume has snapshots or clones, which are as large as it is; delete them first")]
    Members,
    /// Zones are as many as the device has.
    #[error(
        "the volume lies on the zones of a device, all of them: only what it exports can change its size"
    )]
    Zoned,
    /// Another resize is under way.
    #[error("another resize is under way")]
    Busy,
    /// The volume takes no changes, or stopped taking them.
    #[error("the volume takes no changes")]
    ReadOnly,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing may be mapped from here to the old end (invariant 2).
    Clear { at: u64, discard: bool },
    /// No image of those pages may be left (invariant 2).
    Forget,
    /// Log segments behind the new end become empty (invariant 3).
    Evacuate,
    /// This checkpoint has to count.
    Checkpoint { number: u64 },
    /// On zones a label takes one that may be active ([`Volume::hold_zones`]).
    Room,
    /// Copies of the label are written one after the other, with a flush behind each: whatever a power cut does to one,
    /// the others are whole.
    Labels { next: usize },
    /// No checkpoint may run (invariant 4).
    Apply,
}

#[derive(Debug)]
struct Work {
    phase: Phase,
    layout: Layout,
    label: VolumeLabel,
}

/// The resize under way, and how the last one ended.
#[derive(Debug, Default)]
pub(crate) struct Resizing {
    work: Option<Work>,
    outcome: Option<Result<(), ResizeError>>,
}

impl Volume {
    /// Begins to change a size. [`Volume::poll_resized`] says how that ended. From now on the host cannot use what is
    /// behind a smaller end.
    ///
    /// # Errors
    /// Nothing was changed then.
    pub fn resize(&mut self, to: Resize) -> Result<(), ResizeError> {
        let (old, layout) = (*self.layout.geometry(), self.check_resize(to)?);
        let label = self.label_of(&layout);
        let phase = match to {
            Resize::Logical { blocks, discard } if blocks < old.logical_blocks => {
                Phase::Clear { at: blocks, discard }
            }
            Resize::Backing { blocks } if blocks < old.backing_blocks => {
                self.leave(&layout);
                Phase::Evacuate
            }
            _ => Phase::Checkpoint { number: 0 },
        };
        self.resizing = Resizing { work: Some(Work { phase, layout, label }), outcome: None };
        Ok(())
    }

    /// The layout with a new size, if that can be had.
    ///
    /// # Errors
    /// As for [`Volume::resize`].
    pub fn check_resize(&self, to: Resize) -> Result<Layout, ResizeError> {
        if self.frozen.is_some() || self.checkpoint.is_closing() {
            return Err(ResizeError::ReadOnly);
        }
        if self.resizing.work.is_some() {
            return Err(ResizeError::Busy);
        }
        if self.layout.is_zoned() && matches!(to, Resize::Backing { .. }) {
            return Err(ResizeError::Zoned);
        }
        if matches!(to, Resize::Logical { .. }) && !self.family.stays_alone() {
            return Err(ResizeError::Members);
        }
        let old = *self.layout.geometry();
        let geometry = match to {
            Resize::Logical { blocks, .. } => Geometry { logical_blocks: blocks, ..old },
            Resize::Backing { blocks } => Geometry { backing_blocks: blocks, ..old },
        };
        let layout = Layout::new(geometry)?.like(&self.layout);
        let layout = if self.layout.is_thin() { layout } else { layout.not_thin()? };
        if layout.roots() != self.layout.roots() {
            let (from, to) = (old.backing_blocks, geometry.backing_blocks);
            return Err(ResizeError::Moves { from, to });
        }
        let (live, room) = (self.live_blocks(), layout.room());
        if geometry.backing_blocks < old.backing_blocks && live > room {
            return Err(ResizeError::NoRoom { live, room });
        }
        Ok(layout)
    }

    /// How the resize that was begun last ended; `None` before it has.
    pub fn poll_resized(&mut self) -> Option<Result<(), ResizeError>> {
        if self.frozen.is_some() && self.resizing.work.take().is_some() {
            return Some(Err(ResizeError::ReadOnly));
        }
        self.resizing.outcome.take()
    }

    /// Whether a resize is under way.
    pub(crate) const fn is_resizing(&self) -> bool {
        self.resizing.work.is_some()
    }

    /// The first block that the host cannot use.
    pub(crate) fn logical_end(&self) -> u64 {
        let now = self.layout.geometry().logical_blocks;
        let work = self.resizing.work.as_ref();
        work.map_or(now, |work| now.min(work.layout.geometry().logical_blocks))
    }

    /// The label of a new layout.
    fn label_of(&self, layout: &Layout) -> VolumeLabel {
        let geometry = layout.geometry();
        let spare = layout.log_blocks().saturating_sub(geometry.logical_blocks);
        let mut label = self.label.clone();
        label.generation += 1;
        label.logical_blocks = geometry.logical_blocks;
        label.op_basis_points = low16(spare * 10_000 / layout.log_blocks().max(1));
        let others: u64 = label.devices.iter().skip(1).map(|device| device.blocks).sum();
        if let Some(first) = label.devices.first_mut() {
            first.blocks = geometry.backing_blocks - others;
        }
        label
    }

    pub(crate) fn step_resize(&mut self) {
        while self.frozen.is_none() {
            let Some(work) = self.resizing.work.take() else { return };
            let before = work.phase;
            match self.advance_resize(work) {
                Ok(Some(work)) => {
                    let waits = work.phase == before;
                    self.resizing.work = Some(work);
                    if waits {
                        return;
                    }
                }
                Ok(None) => self.resizing.outcome = Some(Ok(())),
                Err(error) => {
                    self.segments.stay();
                    self.resizing.outcome = Some(Err(error));
                }
            }
        }
    }

    /// Does the next thing, if it need not wait. `None` when the new size counts.
    fn advance_resize(&mut self, mut work: Work) -> Result<Option<Work>, ResizeError> {
        work.phase = match work.phase {
            Phase::Clear { at, discard } => self.clear_tail(at, discard)?,
            Phase::Forget => self.forget_tail(&work.layout),
            Phase::Evacuate => self.evacuate()?,
            Phase::Checkpoint { number } if self.checkpoint.committed() >= number => {
                self.hold_zones();
                Phase::Room
            }
            // `crate::scrub`, invariant 4.
            Phase::Room if self.has_spare_zone() && !self.scrub.holds_copies() => {
                self.write_label(&work, 0)
            }
            Phase::Apply if !self.checkpoint.is_running() && !self.is_loading_behind(&work) => {
                self.apply(work);
                return Ok(None);
            }
            waits => waits,
        };
        Ok(Some(work))
    }

    fn is_loading_behind(&self, work: &Work) -> bool {
        let mut pages = work.layout.map_pages()..self.map.pages_each();
        pages.any(|page| self.map.ready(page) == Ready::Loading)
    }

    /// Takes the new sizes over.
    fn apply(&mut self, work: Work) {
        let pages = work.layout.map_pages();
        if pages != self.map.pages_each() {
            let behind = self.checkpoint.runs().list.last().map_or(0, |run| run.number + 1);
            self.map.resize(pages, behind);
            self.heat.resize(pages);
            self.checkpoint.resize();
            for at in self.family.resize(pages.div_ceil(DIRECTORY_ENTRIES)) {
                self.lose(at);
            }
        }
        self.layout = work.layout;
        self.label = work.label;
        self.segments.resize(self.layout.segments(), self.layout.fixed());
        self.want_checkpoint();
    }
}
