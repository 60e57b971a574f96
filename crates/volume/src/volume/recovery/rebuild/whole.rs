//! The newest checkpoint that can be used.

use onefold_format::volume::{BodyBlock, BodyPlace, Root, VolumeLabel};
use onefold_units::convert::u64_from;
use onefold_units::{Lba, Location, Seq};

use super::survey::{BodyAt, Survey};
use super::{Found, Rebuilt};
use crate::backing::{Backing, read_block};
use crate::checkpoint::extents;
use crate::config::Options;
use crate::error::MountError;
use crate::findings::Findings;
use crate::frozen::Frozen;
use crate::limits::BLOCK;
use crate::volume::Volume;
use crate::volume::recovery::{State, layout_of, state_from};
use crate::zones::{ZoneReport, laid_out, of_zone};

/// The root of the newest checkpoint that can be used, and what opening the volume from there comes to.
pub(super) fn find(
    backing: &mut dyn Backing,
    label: &VolumeLabel,
    options: Options,
    (survey, zones): (&Survey, Option<&ZoneReport>),
    generation: u64,
) -> Result<Option<(Root, Rebuilt)>, MountError> {
    let mut last = Last::Newest;
    for body in survey.bodies.iter().rev() {
        // Whatever the host did since an opening that this checkpoint does not know of would be lost.
        let later = survey
            .batches
            .iter()
            .any(|one| one.header.incarnation > body.incarnation && !one.is_meta());
        if later {
            break;
        }
        if let Some(root) = root_of(backing, body, &label.uuid, generation)
            && let Some(rebuilt) = judge(backing, label, options, (survey, zones, &root), last)?
        {
            return Ok(Some((root, rebuilt)));
        }
        last = last.without(body, survey);
    }
    Ok(None)
}

/// Why a checkpoint may be the last one that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    /// None is newer.
    Newest,
    /// Newer ones cannot be used, and nothing says that they ever counted: power may have failed before.
    Perhaps,
    /// A newer one was durable, so it may have counted.
    Hardly,
}

impl Last {
    /// The same for older checkpoints than this one, which cannot be used.
    fn without(self, body: &BodyAt, survey: &Survey) -> Self {
        if self == Self::Hardly || body.seq <= survey.durable_in(u32::MAX) {
            Self::Hardly
        } else {
            Self::Perhaps
        }
    }
}

/// The root that names a body, if that can be read.
fn root_of(
    backing: &mut dyn Backing,
    body: &BodyAt,
    uuid: &[u8; 16],
    generation: u64,
) -> Option<Root> {
    let (mut bytes, mut seq) = (Vec::new(), Seq::new(0));
    for at in &body.blocks {
        let at = u64::from(at.raw());
        let block = read_block(backing, at).ok()?;
        let part = BodyBlock::decode(&block[..], uuid, at).ok()?;
        seq = part.seq;
        bytes.extend_from_slice(part.payload);
    }
    let extents = extents(&body.blocks);
    let fits = extents.len() <= onefold_format::volume::ROOT_EXTENTS_MAX;
    let place = BodyPlace::of(&bytes, extents);
    let incarnation = body.incarnation;
    fits.then_some(Root { generation, incarnation, seq, clean: false, body: place })
}

/// What opening a volume with this root comes to; `None` if the root may not have been the last one.
fn judge(
    backing: &mut dyn Backing,
    label: &VolumeLabel,
    options: Options,
    (survey, zones, root): (&Survey, Option<&ZoneReport>, &Root),
    last: Last,
) -> Result<Option<Rebuilt>, MountError> {
    let state = match state_from(backing, root, label.clone(), options, zones.cloned()) {
        Ok(state) => state,
        Err(error) => match of_zone(backing, &laid_out(layout_of(label)?, zones)?, error) {
            // It may be whole: other reads may have better luck.
            error @ MountError::Read { .. } => return Err(error),
            _ => return Ok(None),
        },
    };
    let State { mut volume, recovery, durable, .. } = state;
    // What its map said is gone for good; headers may tell.
    if volume.lost_map().is_some() {
        return Ok(None);
    }
    // A gap below what was durable is damage, and the next checkpoint might know better. Also where a rebuild that was cut off
    // wrote over what a header elsewhere calls durable.
    if recovery.seq < durable.max(survey.durable_in(root.incarnation)) {
        return Ok(None);
    }
    volume.freeze(Frozen::ReadOnly);
    let mut findings = Findings::default();
    volume.load_all(backing, &mut findings);
    // What a later checkpoint gave back may be gone: then there is a gap, or what this one points to is no more.
    let pages = findings.len() == 0 || last == Last::Newest;
    let newest = survey.batches.last().map_or(0, super::survey::Seen::seq);
    let end = recovery.seq >= newest || last != Last::Hardly;
    if !(pages && end && volume.is_settled_at(backing, survey)) {
        return Ok(None);
    }
    let behind = |seq: u64| seq > recovery.seq;
    let left_out = survey.batches.iter().filter(|one| behind(one.seq()) && !one.is_meta()).count();
    let mapped = volume.mapped_blocks();
    let rebuilt = Rebuilt::of(Found::Checkpoint, survey);
    Ok(Some(Rebuilt { left_out: u64_from(left_out), mapped, ..rebuilt }))
}

impl Volume {
    fn mapped_blocks(&self) -> u64 {
        let blocks = (0..self.layout.geometry().logical_blocks).map(Lba::new);
        u64_from(blocks.filter(|lba| self.map.peek(*lba).at.is_block()).count())
    }

    /// Whether all data that may not have been durable when the root was written is as it should be. A checkpoint whose root
    /// was never written may point to data that a power cut took.
    fn is_settled_at(&self, backing: &mut dyn Backing, survey: &Survey) -> bool {
        let mut durable: Vec<(u32, u32, u64)> = survey
            .batches
            .iter()
            .filter(|one| one.is_durable)
            .map(|one| (one.start, one.blocks, one.header.epoch))
            .collect();
        durable.sort_unstable();
        let is_durable = |at: Location| {
            let block = self.layout.block_of(at).raw();
            // It may be in the header.
            let behind = durable.partition_point(|(start, ..)| *start <= block);
            let batch = behind.checked_sub(1).map(|before| durable[before]);
            // What lies there may be of an earlier use of the log segment, where the power cut took that of the last one.
            let use_now = self.segments.of(self.layout.segment_of(at)).epoch;
            batch.is_some_and(|(start, blocks, epoch)| block <= start + blocks && epoch == use_now)
        };
        let mut block = [0; BLOCK];
        let blocks = (0..self.members.largest()).map(Lba::new);
        blocks.flat_map(|lba| self.members.entries_of(&self.map, lba)).all(|(at, (_, crc))| {
            let place = self.layout.block_of(at).raw();
            let read = is_durable(at) || backing.read(place.into(), &mut block).is_ok();
            read && (is_durable(at) || self.layout.is_in(at, &block, crc))
        })
    }
}
