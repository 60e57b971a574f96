//! Making a root anew, for a volume that has none, or whose root leads nowhere (volume.md, section 7).
//!
//! What a root says beyond its generation lies in the log: the newest body of a checkpoint is found by the headers of
//! batches. If that can be used, a root that names it is written, and the volume is what it was, with its snapshots. Else the map
//! is made from the headers alone.
//!
//! 1. Nothing is written before the state is known as a whole; then only where no header lies (`image`), and the root last.
//!    So whoever is interrupted begins again and finds the same.
//! 2. A body is used if all that led to it and follows from it is there: it may be that of a checkpoint that never counted, or
//!    not the last one that did (`whole`).
//! 3. Headers alone tell the newest version of a block by its number: a version is written, or moved, under a higher number
//!    than all before it. A copy that was dead before its batch was sent says so (`Volume::unlink`).
//! 4. What headers cannot tell is counted, and never guessed: a block that was trimmed comes back if the batch with the trim
//!    is gone, so all that is older than a missing batch is *uncertain*, and all there is if a zone is offline; where two versions may be the newest, the block is
//!    *lost*, and an error to read.
//! 5. What no header of its own opening calls durable counts only if it is whole: what openings left out may still be there. On
//!    zones, where they cannot erase it, and where they must not, what has a gap before it may be such a thing, and what it changes is
//!    uncertain as well.

mod headers;
mod image;
mod pages;
mod roots;
mod survey;
mod whole;

use onefold_format::volume::VolumeMode;
use onefold_units::Lba;

use crate::backing::Backing;
use crate::config::Options;
use crate::error::MountError;
use crate::range::Range;
use crate::volume::recovery::{mount_read_only, read_label, whole_label};
use crate::zones::layout_on;
use image::{Homes, erase_headers};
use roots::Roots;
use survey::{Survey, survey};

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

/// Refuses a volume whose root can be used with all of its map, perhaps by one who does without some zones.
fn refuse_whole(
    backing: &mut dyn Backing,
    blocks: u64,
    options: Options,
) -> Result<(), MountError> {
    let given_up = Options { give_up_zones: true, ..options };
    match mount_read_only(backing, blocks, given_up) {
        Ok((volume, ..)) if volume.lost_map().is_none() => {}
        _ => return Ok(()),
    }
    match mount_read_only(backing, blocks, options) {
        Ok((_, recovery, durable)) if recovery.seq >= durable => Err(MountError::Opens),
        Err(MountError::Zones(error)) if error.can_be_given_up() => Err(error.into()),
        _ => Ok(()),
    }
}

/// Makes a root anew on a backing of so many blocks. The volume can be opened then.
///
/// # Errors
/// [`MountError::Opens`] if it can be opened as it is; or there is no label, no room, or the backing failed. Nothing that was
/// there is lost then.
pub fn rebuild(
    backing: &mut dyn Backing,
    blocks: u64,
    options: Options,
) -> Result<Rebuilt, MountError> {
    let label = read_label(backing, blocks)?;
    if label.mode != VolumeMode::Log {
        return Err(MountError::NoRebuild(label.mode));
    }
    let (label, layout) = whole_label(backing, blocks)?;
    options.check(layout.geometry().unit_blocks)?;
    refuse_whole(backing, blocks, options)?;
    let (layout, zones) = layout_on(backing, layout)?;
    // All of the map is looked at, and what changes stays in memory until the root counts.
    let options = Options { map_pages: usize::MAX, give_up_zones: true, ..options };
    // What was read becomes what is built upon.
    backing.flush().map_err(|_| MountError::Backing("it was flushed"))?;
    let survey = survey(backing, &layout, zones.as_ref(), label.uuid);
    let roots = Roots { layout: &layout, label: &label, zones: zones.as_ref() };
    let generation = roots.next_generation(backing, &survey)?;
    let known = (&survey, zones.as_ref());
    // A checkpoint that knows of more than zones hold may be one whose root was never written: power failed before its batches were
    // durable. So those that fit come first.
    let mut whole = |give_up_zones| {
        let options = Options { give_up_zones, ..options };
        whole::find(backing, &label, options, known, generation)
    };
    let found = whole(false)?.map_or_else(|| whole(true), |found| Ok(Some(found)))?;
    let (root, homes, rebuilt) = match found {
        Some((root, rebuilt)) => (root, Homes::default(), rebuilt),
        None => headers::rebuild(backing, label.clone(), options, known, generation)?,
    };
    roots.write(backing, &root)?;
    let failed = |_| MountError::Backing("what is left was cleared; the volume can be opened");
    erase_headers(backing, &survey, &homes).map_err(failed)?;
    roots.clear_slots(backing).map_err(failed)?;
    Ok(rebuilt)
}
