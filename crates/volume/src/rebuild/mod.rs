//! Making a root anew, for a volume that has none, or whose root leads nowhere (volume.md, section 7).
//!
//! What a root says beyond its generation lies in the log: the newest body of a checkpoint is found by the headers of
//! batches. If that can be used, a root that names it is written, and the volume is what it was, with its snapshots. Else the map
//! is made from the headers alone.
//!
//! 1. Nothing is written before the state is known as a whole; then only where no batch lies that this state was made from.
//!    The last write is the root, so whoever is interrupted begins again and finds the same.
//! 2. A body is used if all that led to it and follows from it is there: it may be that of a checkpoint that never counted, or
//!    not the last one that did (`whole`).
//! 3. Headers alone tell the newest version of a block by its number: a version is written, or moved, under a higher number
//!    than all before it. A copy that was dead before its batch was sent says so (`Volume::unlink`).
//! 4. What headers cannot tell is counted, and never guessed: a block that was trimmed comes back if the batch with the trim
//!    is gone, so all that is older than a missing batch is *uncertain*; where two versions may be the newest, the block is
//!    *lost*, and an error to read.

mod headers;
mod survey;
mod whole;

use onefold_format::volume::{Root, VolumeMode};
use onefold_units::Lba;

use crate::backing::{Backing, read_block};
use crate::config::Options;
use crate::error::MountError;
use crate::host::Range;
use crate::layout::Layout;
use crate::log::BLOCK;
use crate::mount::{mount_read_only, read_label, whole_label};
use crate::roots::slot_of;
use survey::{NUMBERS_MAX, Survey, survey};

/// More than any checkpoint that was ever committed is ahead of the batches that can be found: each one takes a batch.
const GENERATIONS: u64 = 1 << 32;

/// Most ranges that are listed.
const RANGES_MAX: usize = 1000;

/// From what a volume was made anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The last checkpoint and the batches behind it: the volume is what it was.
    Checkpoint,
    /// Headers of batches. Snapshots and clones are gone.
    Headers,
}

/// What became of a volume that was made anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rebuilt {
    /// From what.
    pub found: Found,
    /// Batches that were found.
    pub batches: u64,
    /// Batches that were not, although later ones were. Most of them were given back in good order.
    pub missing: u64,
    /// Batches that were found and left out: they came last, and were not durable.
    pub left_out: u64,
    /// Blocks of the device that are mapped now.
    pub mapped: u64,
    /// Those of them that may have been trimmed since, or overwritten if a header is damaged.
    pub uncertain: u64,
    /// The first of these.
    pub uncertain_ranges: Vec<Range>,
    /// Blocks that are an error to read from now on, since two versions may be the newest.
    pub lost: u64,
    /// Blocks behind headers that are damaged, at most.
    pub hidden: u64,
    /// Blocks that only snapshots or clones had.
    pub of_others: u64,
}

impl Rebuilt {
    fn of(found: Found, survey: &Survey) -> Self {
        Self {
            found,
            batches: onefold_units::convert::u64_from(survey.batches.len()),
            missing: 0,
            left_out: 0,
            mapped: 0,
            uncertain: 0,
            uncertain_ranges: Vec::new(),
            lost: 0,
            hidden: survey.hidden,
            of_others: 0,
        }
    }

    fn note_uncertain(&mut self, lba: Lba) {
        self.uncertain += 1;
        let ranges = &mut self.uncertain_ranges;
        let full = ranges.len() == RANGES_MAX;
        match ranges.last_mut() {
            Some(last) if last.lba.raw() + last.blocks == lba.raw() => last.blocks += 1,
            _ if full => {}
            _ => ranges.push(Range { lba, blocks: 1 }),
        }
    }

    /// Whether nothing that was durable is lost or in doubt.
    #[must_use]
    pub const fn is_exact(&self) -> bool {
        matches!(self.found, Found::Checkpoint) && self.left_out == 0 && self.hidden == 0
    }
}

/// Makes a root anew on a backing of so many blocks. The volume can be opened then.
///
/// # Errors
/// [`MountError::Opens`] if it can be opened as it is; or there is no label, no room, or the backing failed. Nothing that was
/// there is lost then.
pub fn rebuild<B: Backing>(
    backing: &mut B,
    blocks: u64,
    options: Options,
) -> Result<Rebuilt, MountError> {
    let label = read_label(backing, blocks)?;
    if label.mode != VolumeMode::Log {
        return Err(MountError::NoRebuild(label.mode));
    }
    let (label, layout) = whole_label(backing, blocks)?;
    if layout.is_zoned() {
        return Err(MountError::ZonedRebuild);
    }
    options.check(layout.geometry().unit_blocks)?;
    if let Ok((_, recovery, durable)) = mount_read_only(backing, blocks, options)
        && recovery.seq >= durable
    {
        return Err(MountError::Opens);
    }
    // All of the map is looked at, and what changes stays in memory until the root counts.
    let options = Options { map_pages: usize::MAX, ..options };
    // What was read becomes what is built upon.
    backing.flush().map_err(|_| MountError::Backing("it was flushed"))?;
    let survey = survey(backing, &layout, label.uuid);
    let generation = next_generation(backing, &layout, &label.uuid, &survey)?;
    let uuid = label.uuid;
    let rebuilt = match whole::find(backing, &label, options, &survey, generation)? {
        Some((root, rebuilt)) => {
            write_root(backing, &layout, &root, &uuid)?;
            rebuilt
        }
        None => headers::rebuild(backing, label, options, &survey, generation)?,
    };
    clear_slots(backing, &layout, &uuid)?;
    Ok(rebuilt)
}

/// Clears the slots that hold no root, so that a check does not find them again.
fn clear_slots<B: Backing>(
    backing: &mut B,
    layout: &Layout,
    uuid: &[u8; 16],
) -> Result<(), MountError> {
    let failed = |_| MountError::Backing("damaged roots were cleared; the volume can be opened");
    for at in layout.roots() {
        let block = read_block(backing, *at).ok();
        if block.is_none_or(|block| Root::decode(&block[..], uuid, *at).is_err()) {
            backing.write(*at, &[0; BLOCK]).map_err(failed)?;
        }
    }
    backing.flush().map_err(failed)
}

/// A generation above all that there were, whose slot can be read, and so can the one behind it.
fn next_generation<B: Backing>(
    backing: &mut B,
    layout: &Layout,
    uuid: &[u8; 16],
    survey: &Survey,
) -> Result<u64, MountError> {
    let slots = layout.roots();
    let mut above = survey.last;
    let mut readable = Vec::new();
    for at in slots {
        let block = read_block(backing, *at).ok();
        readable.extend(block.as_ref().map(|_| *at));
        let root = block.and_then(|block| Root::decode(&block[..], uuid, *at).ok());
        let root = root.filter(|root| root.generation < NUMBERS_MAX);
        above = above.max(root.map_or(0, |root| root.generation));
    }
    let from = above + GENERATIONS;
    let usable = |generation: &u64| {
        [*generation, *generation + 1].iter().all(|at| readable.contains(&slot_of(slots, *at)))
    };
    let all = from..from + onefold_units::convert::u64_from(slots.len());
    all.into_iter()
        .find(usable)
        .ok_or(MountError::Read { what: "root slot behind any other", at: slots[0] })
}

fn write_root<B: Backing>(
    backing: &mut B,
    layout: &Layout,
    root: &Root,
    uuid: &[u8; 16],
) -> Result<(), MountError> {
    let at = slot_of(layout.roots(), root.generation);
    let failed = |_| MountError::Backing("the root was written");
    let block: Box<[u8; BLOCK]> = root.encode(uuid, at);
    backing.write(at, &block[..]).map_err(failed)?;
    backing.flush().map_err(failed)
}
