//! Making and opening volumes.
//!
//! 1. A backing whose labels cannot be read is no volume: they are written last when one is made.
//! 2. Opening ends with a checkpoint of a new incarnation. Before that counts, an opening that is cut is begun again with the same result.
//! 3. Batches that recovery leaves out are erased before that checkpoint counts: their numbers are given out again, so nothing
//!    else would tell them from those that count once no root says where to look (`crate::volume::recovery::rebuild`).
//! 4. After an opening all copies of the label are the same, but for those that cannot be written: the next change of a size may lose
//!    any one of them, and then none from before this one may be believed.
//! 5. Recovery reads no map page: what it found is a run, and pages are read when they are needed (`crate::map::runs`, invariant 2).

pub(crate) mod rebuild;
mod restore;

use onefold_format::volume::{BlockError, Body, BodyBlock, Root, VolumeLabel, VolumeMode};
use onefold_units::convert::narrow;
use onefold_units::{Location, Nanos};

use crate::answers::Answers;
use crate::backing::{Backing, damaged, fetch_each, locations, read_block, settle};
use crate::checkpoint::roots::{RootCursor, newest_root};
use crate::checkpoint::{Checkpoint, Restored};
use crate::cleaner::Cleaner;
use crate::config::{Geometry, Options};
use crate::error::MountError;
use crate::frozen::Frozen;
use crate::io::IoFailed;
use crate::layout::Layout;
use crate::limits::BLOCK;
use crate::log::Log;
use crate::log::flush::Flushes;
use crate::log::heat::Heat;
use crate::log::journal::JournalSet;
use crate::map::Map;
use crate::map::counting::Counting;
use crate::map::loads::Loads;
use crate::map::runs::Runs;
use crate::pending::Pending;
use crate::recovery::Recovery;
use crate::recovery::replay::{Identity, LeftOut, find};
use crate::resize::Resizing;
use crate::retries::Retries;
use crate::scrub::Scrub;
use crate::segments::Segments;
use crate::segments::trims::Trims;
use crate::snapshots::{MemberState, Members};
use crate::stall::Stall;
use crate::stats::Stats;
use crate::volume::Volume;
use crate::volume::recovery::restore::candidates;
use crate::zones::{Finishes, ZoneReport, format_zones, laid_out, layout_on, of_zone, write_label};

/// Makes an empty volume of mode `log`. What the backing held is lost.
///
/// # Errors
/// The geometry cannot work, the mode is another one, or the backing failed.
pub fn format(backing: &mut dyn Backing, label: &VolumeLabel) -> Result<(), MountError> {
    let (layout, report) = layout_on(backing, layout_of(label)?)?;
    if let Some(report) = &report {
        format_zones(backing, &layout, report)?;
    }
    let failed = |_: IoFailed| MountError::Backing("its old labels and roots were cleared");
    for at in layout.labels().iter().chain(layout.roots()) {
        if !layout.is_sequential(layout.segment_of(Location::new(narrow(*at)))) {
            backing.write(*at, &[0; BLOCK]).map_err(failed)?;
        }
    }
    backing.flush().map_err(failed)?;
    let mut volume = Volume::blank(layout, Options::default(), label.clone());
    if let Some(report) = report {
        volume.meet_zones(&report)?;
    }
    volume.close();
    if !settle(&mut volume, backing, Nanos::ZERO) {
        return Err(MountError::Backing("the first checkpoint was written"));
    }
    let failed = |_: IoFailed| MountError::Backing("the labels were written");
    let layout = volume.layout();
    layout.labels().iter().try_for_each(|at| write_label(backing, label, *at).map_err(failed))
}

/// The geometry that a label describes.
pub(crate) fn layout_of(label: &VolumeLabel) -> Result<Layout, MountError> {
    if label.mode != VolumeMode::Log {
        return Err(MountError::Mode(label.mode));
    }
    Ok(Layout::new(Geometry::of(label))?)
}

/// Reads the newest label of a backing with so many blocks.
///
/// # Errors
/// What is wrong with the copy that says most.
pub fn read_label(backing: &mut dyn Backing, blocks: u64) -> Result<VolumeLabel, MountError> {
    read_labels(backing, blocks).map(|(label, _)| label)
}

/// The newest label, and where copies of it are.
fn read_labels(
    backing: &mut dyn Backing,
    blocks: u64,
) -> Result<(VolumeLabel, Vec<u64>), MountError> {
    let zones = backing.zones().map_err(|_| MountError::Backing("its zones were reported"))?;
    let places = match zones {
        None => onefold_format::volume::label_addresses(blocks),
        Some(report) => Layout::label_places(report.zone_blocks),
    };
    let mut newest: Result<VolumeLabel, BlockError> = Err(BlockError::NotOurs);
    let mut copies = Vec::new();
    for at in places {
        let Ok(block) = read_block(backing, at) else { continue };
        let label = VolumeLabel::decode(&block[..], at);
        copies.extend(label.as_ref().ok().map(|label| (label.generation, at)));
        newest = match (newest, label) {
            (Ok(old), Ok(new)) if new.generation > old.generation => Ok(new),
            (Ok(old), _) => Ok(old),
            (Err(_), Ok(new)) => Ok(new),
            (Err(BlockError::NotOurs), Err(new)) => Err(new),
            (Err(old), Err(_)) => Err(old),
        };
    }
    let label = newest.map_err(MountError::Label)?;
    copies.retain(|(generation, _)| *generation == label.generation);
    Ok((label, copies.into_iter().map(|(_, at)| at).collect()))
}

/// Opens a volume of mode `log` on a backing with so many blocks.
///
/// # Errors
/// It is none, of another mode, or damaged. Nothing was changed then, unless the backing failed.
pub fn mount(
    backing: &mut dyn Backing,
    blocks: u64,
    options: Options,
) -> Result<(Volume, Recovery), MountError> {
    // What is read now may lie in a volatile cache, if who wrote it was killed.
    backing.flush().map_err(|_| MountError::Backing("it was flushed"))?;
    let (_, labels) = read_labels(backing, blocks)?;
    let State { mut volume, recovery, durable, left_out, zones } =
        find_state(backing, blocks, options)?;
    if recovery.seq < durable {
        return Err(MountError::Lost { missing: recovery.seq + 1, last: recovery.seq });
    }
    if let Some(report) = &zones {
        volume.do_without_lost(backing, report, recovery.seq - recovery.batches)?;
        volume.tidy_zones(backing, report);
    }
    for at in volume.layout.labels().iter().filter(|at| !labels.contains(at)) {
        // Invariant 4.
        let _ = write_label(backing, &volume.label, *at);
    }
    // Invariant 3.
    left_out.erase(backing, &volume.layout)?;
    volume.incarnation += 1;
    volume.want_checkpoint();
    if !settle(&mut volume, backing, Nanos::ZERO) {
        return Err(MountError::Backing("the checkpoint of the opening was written"));
    }
    volume.rewrite_lost(backing)?;
    volume.stats = Stats::default();
    volume.begin_preload();
    Ok((volume, recovery))
}

/// Opens a volume for reading only: nothing is written. What is missing although it had been durable, and everything after it, is
/// left out; the number of the last batch that was durable says whether there is any.
///
/// # Errors
/// It is none, or damaged.
pub fn mount_read_only(
    backing: &mut dyn Backing,
    blocks: u64,
    options: Options,
) -> Result<(Volume, Recovery, u64), MountError> {
    let State { mut volume, recovery, durable, .. } = find_state(backing, blocks, options)?;
    volume.freeze(Frozen::ReadOnly);
    Ok((volume, recovery, durable))
}

/// The state of a volume on its backing.
pub(crate) struct State {
    pub(crate) volume: Volume,
    pub(crate) recovery: Recovery,
    /// Number of the last batch that was durable.
    pub(crate) durable: u64,
    left_out: LeftOut,
    /// The zones before anything was changed.
    zones: Option<ZoneReport>,
}

fn find_state(
    backing: &mut dyn Backing,
    blocks: u64,
    options: Options,
) -> Result<State, MountError> {
    let (label, layout) = whole_label(backing, blocks)?;
    options.check(layout.geometry().unit_blocks)?;
    let (layout, zones) = layout_on(backing, layout)?;
    let options = zones.as_ref().map_or(Ok(options), |report| report.adapt(options))?;
    let found = newest_root(backing, &layout, zones.as_ref(), &label.uuid).and_then(|newest| {
        let (root, cursor) = newest;
        let mut state = state_from(backing, &root, label, options, zones)?;
        state.volume.checkpoint.set_roots(cursor);
        Ok(state)
    });
    found.map_err(|error| of_zone(backing, &layout, error))
}

/// The newest label and what it describes, if the backing has all of it.
pub(crate) fn whole_label(
    backing: &mut dyn Backing,
    blocks: u64,
) -> Result<(VolumeLabel, Layout), MountError> {
    let label = read_label(backing, blocks)?;
    let layout = layout_of(&label)?;
    let expected = layout.geometry().backing_blocks;
    if blocks < expected {
        return Err(MountError::Shrunk { found: blocks, expected });
    }
    Ok((label, layout))
}

/// What a root comes to, with the batches behind it.
pub(crate) fn state_from(
    backing: &mut dyn Backing,
    root: &Root,
    label: VolumeLabel,
    options: Options,
    zones: Option<ZoneReport>,
) -> Result<State, MountError> {
    let layout = laid_out(layout_of(&label)?, zones.as_ref())?;
    let (body, body_blocks) = read_body(backing, root, &label.uuid)?;
    let identity = Identity::behind(root, label.uuid, options.bytes);
    let mut places = candidates(&body, &layout);
    if let Some(report) = &zones {
        places = report.bound(places, root.clean, options.give_up_zones)?;
    }
    let replay = find(backing, &layout, &identity, &places)?;
    let mut volume = Volume::blank(layout, options, label);
    volume.incarnation = root.incarnation;
    volume.restore(backing, &body, body_blocks, root.generation)?;
    let recovery = volume.replayed(&body, &replay, root.clean)?;
    if let Some(report) = &zones {
        volume.meet_zones(report)?;
    }
    Ok(State { volume, recovery, durable: replay.durable, left_out: replay.left_out, zones })
}

pub(crate) fn read_body(
    backing: &mut dyn Backing,
    root: &Root,
    uuid: &[u8; 16],
) -> Result<(Body, Vec<Location>), MountError> {
    let mut bytes = Vec::new();
    let blocks = locations(&root.body.extents);
    fetch_each(backing, "body", &blocks, |n, block| {
        let at = blocks[n];
        let part = BodyBlock::decode(block, uuid, at.raw().into()).map_err(damaged("body", at))?;
        bytes.extend_from_slice(part.payload);
        Ok(())
    })?;
    let first = blocks.first().copied().unwrap_or(Location::new(0));
    root.body.verify(&bytes).map_err(damaged("body", first))?;
    let body = Body::decode(&bytes).map_err(damaged("body", first))?;
    Ok((body, blocks))
}

impl Volume {
    /// A volume in which nothing was ever written.
    pub(crate) fn blank(layout: Layout, options: Options, label: VolumeLabel) -> Self {
        let device = MemberState::device(layout.geometry().logical_blocks);
        let pages = device.pages();
        let runs = Runs { list: Vec::new(), next_number: 1 };
        Self {
            map: Map::new(pages, options.map_pages),
            members: Members::new(vec![device], 1),
            counting: Counting::default(),
            segments: Segments::new(layout.segments(), layout.fixed()),
            log: Log::new(&options, layout.geometry().unit_blocks, 0),
            heat: Heat::new(pages),
            journal: JournalSet::new(options.journal),
            answers: Answers::default(),
            pending: Pending::default(),
            flushes: Flushes::new(0),
            loads: Loads::default(),
            checkpoint: Checkpoint::new(
                Restored { generation: 0, runs, body: Vec::new() },
                1,
                RootCursor::first(&layout),
            ),
            cleaner: Cleaner::default(),
            trims: Trims::default(),
            finishes: Finishes::default(),
            resizing: Resizing::default(),
            scrub: Scrub::default(),
            stats: Stats::default(),
            frozen: None,
            retries: Retries::default(),
            stall: Stall::default(),
            incarnation: 1,
            now: Nanos::ZERO,
            layout,
            options,
            label,
        }
    }
}
