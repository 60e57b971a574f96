//! Changing a size step by step (`crate::resize`).

mod labels;
mod shrink;

use onefold_format::volume::VolumeLabel;
use onefold_units::convert::low16;

use crate::config::Geometry;
use crate::layout::Layout;
use crate::map::Ready;
use crate::resize::{Phase, Resize, ResizeError, Work};
use crate::snapshots::pages_of;
use crate::volume::Volume;

impl Volume {
    /// Begins to change a size. [`Volume::poll_resized`] says how that ended. From now on the host cannot use what is
    /// behind a smaller end.
    ///
    /// # Errors
    /// Nothing was changed then.
    pub fn resize(&mut self, to: Resize) -> Result<(), ResizeError> {
        let (slot, layout) = (self.slot_to_resize(to)?, self.check_resize(to)?);
        let old = self.members.of(slot).blocks;
        let (blocks, phase) = match to {
            Resize::Logical { blocks, discard, .. } if blocks < old => {
                (blocks, Phase::Clear { at: blocks, discard })
            }
            Resize::Logical { blocks, .. } if slot != 0 => (blocks, Phase::Apply),
            Resize::Logical { blocks, .. } => (blocks, Phase::Checkpoint { number: 0 }),
            Resize::Backing { blocks } if blocks < self.layout.geometry().backing_blocks => {
                self.leave(&layout);
                (old, Phase::Evacuate)
            }
            Resize::Backing { .. } => (old, Phase::Checkpoint { number: 0 }),
        };
        let usable = old.min(blocks);
        let (layout, label) = if slot == 0 {
            let label = self.label_of(&layout);
            (layout, label)
        } else {
            (self.layout.clone(), self.label.clone())
        };
        let work = Work { phase, slot, blocks, usable, layout, label, failing: None };
        self.resizing.begin(work);
        Ok(())
    }

    /// The place of the member whose size changes, or that of the device.
    fn slot_to_resize(&self, to: Resize) -> Result<usize, ResizeError> {
        let Resize::Logical { member, .. } = to else { return Ok(0) };
        let slot = self.members.slot_of(member).ok_or(ResizeError::Missing)?;
        if self.members.of(slot).read_only { Err(ResizeError::Snapshot) } else { Ok(slot) }
    }

    /// The layout with a new size of the device or of the backing, if that can be had.
    ///
    /// # Errors
    /// As for [`Volume::resize`].
    pub fn check_resize(&self, to: Resize) -> Result<Layout, ResizeError> {
        if self.frozen.is_some() || self.checkpoint.is_closing() {
            return Err(ResizeError::ReadOnly);
        }
        if self.resizing.is_under_way() {
            return Err(ResizeError::Busy);
        }
        if self.layout.is_zoned() && matches!(to, Resize::Backing { .. }) {
            return Err(ResizeError::Zoned);
        }
        if matches!(to, Resize::Logical { .. }) && self.members.awaits_member() {
            return Err(ResizeError::Members);
        }
        let old = *self.layout.geometry();
        let geometry = match to {
            Resize::Logical { blocks, .. } => Geometry { logical_blocks: blocks, ..old },
            Resize::Backing { blocks } => Geometry { backing_blocks: blocks, ..old },
        };
        let layout = Layout::new(geometry)?.like(&self.layout);
        let layout = if self.layout.is_thin() { layout } else { layout.not_thin()? };
        // As large as it is with any backing.
        Layout::new(Geometry { logical_blocks: self.members.largest(), ..geometry })?;
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
        if self.frozen.is_some() && self.resizing.take().is_some() {
            return Some(Err(ResizeError::ReadOnly));
        }
        self.resizing.take_outcome()
    }

    /// Whether a resize waits for room for one more active zone.
    pub(crate) fn is_making_room(&self) -> bool {
        self.resizing.phase() == Some(Phase::Room)
    }

    /// Whether a resize is under way.
    pub(crate) const fn is_resizing(&self) -> bool {
        self.resizing.is_under_way()
    }

    /// The first block of a member that the host cannot use.
    pub(crate) fn end_of(&self, slot: usize) -> u64 {
        self.resizing.usable(slot).unwrap_or_else(|| self.members.of(slot).blocks)
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
            let Some(work) = self.resizing.take() else { return };
            let before = work.phase;
            match self.advance_resize(work) {
                Ok(Some(work)) => {
                    let waits = work.phase == before;
                    self.resizing.put(work);
                    if waits {
                        return;
                    }
                }
                Ok(None) => self.resizing.end(Ok(())),
                Err(error) => {
                    self.segments.stay();
                    self.resizing.end(Err(error));
                }
            }
        }
    }

    /// Does the next thing, if it need not wait. `None` when the new size counts.
    fn advance_resize(&mut self, mut work: Work) -> Result<Option<Work>, ResizeError> {
        work.phase = match work.phase {
            Phase::Clear { at, discard } => self.unmap_behind(work.slot, at, discard)?,
            Phase::Forget => self.forget_behind(work.slot, work.blocks)?,
            Phase::Evacuate => self.evacuate()?,
            Phase::Checkpoint { number } if self.checkpoint.committed() >= number => Phase::Room,
            // `crate::scrub`, invariant 5.
            Phase::Room if self.makes_room() && !self.scrub.holds_copies() => {
                self.write_label(&work, 0)
            }
            Phase::Apply if !self.checkpoint.is_running() && !self.is_loading_behind(&work) => {
                let slot = work.slot;
                self.apply(&work);
                if slot == 0 {
                    return Ok(None);
                }
                Phase::Record { number: self.checkpoint.next_number() }
            }
            Phase::Record { number } if self.checkpoint.committed() >= number => return Ok(None),
            waits => waits,
        };
        Ok(Some(work))
    }

    /// Whether a label may be written. Where no stream has a zone to leave there is room at once, and nothing else would come that lets the
    /// resize go on.
    fn makes_room(&mut self) -> bool {
        if !self.holds_zones() {
            self.hold_zones();
            self.step_finishes();
        }
        self.holds_zones() && self.has_spare_zone()
    }

    fn is_loading_behind(&self, work: &Work) -> bool {
        let mut keys = self.map.keys_of(work.slot).skip(pages_of(work.blocks));
        keys.any(|key| self.map.ready(key) == Ready::Loading)
    }

    /// Takes the new sizes over.
    fn apply(&mut self, work: &Work) {
        let gone = self.members.of_mut(work.slot).resize(work.blocks);
        let first = self.members.of(work.slot).directory.len();
        for (at, place) in (first..).zip(gone) {
            if !self.members.has_directory(at, place) {
                self.lose(place.location);
            }
        }
        let behind = self.checkpoint.runs().list.last().map_or(0, |run| run.number + 1);
        self.map.resize(work.slot, pages_of(work.blocks), behind);
        self.fit_pages();
        self.layout = work.layout.clone();
        self.label = work.label.clone();
        self.segments.resize(self.layout.segments(), self.layout.fixed());
        self.want_checkpoint();
    }

    /// The largest member may have another number of pages; no checkpoint is under way.
    pub(crate) fn fit_pages(&mut self) {
        let pages = self.map.pages();
        if pages != self.heat.pages() {
            self.heat.resize(pages);
            self.checkpoint.resize();
        }
    }
}
