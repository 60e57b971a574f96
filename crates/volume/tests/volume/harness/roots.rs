//! Where each root looks for the batches behind it: whatever is sent lies there (crates/volume/src/segments/mod.rs, invariant 2).
//!
//! A power cut shows a batch that lies elsewhere only if the log has come that far and the batch had been promised; this is
//! told when it is sent.

use std::collections::BTreeMap;

use onefold_format::volume::{BatchHeader, Body, BodyBlock, Root};
use onefold_units::LogSegmentId;
use onefold_volume::Volume;

use super::disk::Disk;
use super::image::Image;
use super::setup::UUID;
use super::stamp::BLOCK;

/// Where a batch lies: log segment, and number of its use.
type Place = (LogSegmentId, u64);

/// Where a recovery from a root looks.
#[derive(Debug)]
struct Reach {
    /// The write of the root; `None`: it was durable when the volume was opened.
    change: Option<u64>,
    generation: u64,
    seq: u64,
    next_epoch: u64,
    open: Vec<Place>,
    reserve: Vec<LogSegmentId>,
}

/// What a root names.
fn body_of(root: &Root, image: &Image) -> Body {
    let mut bytes = Vec::new();
    for extent in &root.body.extents {
        let first = u64::from(extent.location.raw());
        for at in first..first + u64::from(extent.blocks) {
            let part = BodyBlock::decode(&image.get(at)[..], &UUID, at).expect("a whole body");
            bytes.extend_from_slice(part.payload);
        }
    }
    Body::decode(&bytes).expect("a body")
}

/// What the newest of some roots names.
pub(crate) fn newest_body(image: &Image, places: &[u64]) -> Body {
    let roots = places.iter().filter_map(|at| Root::decode(&image.get(*at)[..], &UUID, *at).ok());
    body_of(&roots.max_by_key(|root| root.generation).expect("a root"), image)
}

impl Reach {
    fn of(root: &Root, change: Option<u64>, disk: &Disk) -> Self {
        let body = body_of(root, disk.view());
        let open = body.open.iter().map(|one| {
            let epoch = body.segments[one.segment.index()].epoch;
            (one.segment, epoch)
        });
        Self {
            change,
            generation: root.generation,
            seq: root.seq.raw(),
            next_epoch: body.next_epoch,
            open: open.collect(),
            reserve: body.reserve.clone(),
        }
    }

    fn assert_finds(&self, seq: u64, place: Place) {
        let (segment, epoch) = place;
        let listed = epoch >= self.next_epoch && self.reserve.contains(&segment);
        assert!(
            seq <= self.seq || self.open.contains(&place) || listed,
            "batch {seq} lies in {place:?}, where root {} does not look",
            self.generation
        );
    }
}

/// The roots that a recovery may take now, and the batches behind them.
#[derive(Debug, Default)]
pub(crate) struct Roots {
    live: Vec<Reach>,
    /// By number: where the last attempt lies.
    sent: BTreeMap<u64, Place>,
}

impl Roots {
    /// Those of a volume that was just opened.
    pub(crate) fn of(volume: &Volume, disk: &Disk) -> Self {
        // A slot has one root, a zone many.
        let blocks = volume.layout().geometry().zone_blocks.max(1);
        let root = |at: u64| Root::decode(&disk.get(at)[..], &UUID, at).ok();
        let places = volume.layout().roots().iter().flat_map(|at| *at..*at + u64::from(blocks));
        let roots = places.filter_map(root);
        let newest = roots.max_by_key(|root| root.generation).expect("it has one");
        Self { live: vec![Reach::of(&newest, None, disk)], sent: BTreeMap::new() }
    }

    /// The volume sends bytes to its backing.
    pub(crate) fn sent(&mut self, at: u64, bytes: &[u8], change: u64, disk: &Disk) {
        // The first root of a zone comes with a label before it.
        let root = (at..).zip(bytes.chunks(BLOCK).take(2));
        let mut root = root.filter_map(|(at, block)| Root::decode(block, &UUID, at).ok());
        if let Some(root) = root.next() {
            let reach = Reach::of(&root, Some(change), disk);
            self.sent.iter().for_each(|(seq, place)| reach.assert_finds(*seq, *place));
            self.live.push(reach);
        } else if let Ok(batch) = BatchHeader::decode(&bytes[..BLOCK], &UUID, at) {
            let (seq, place) = (batch.header.seq.raw(), (batch.header.segment, batch.header.epoch));
            self.live.iter().for_each(|reach| reach.assert_finds(seq, place));
            self.sent.insert(seq, place);
        }
    }

    /// A flush is over: no recovery takes a root before the newest one that it covered.
    pub(crate) fn flushed(&mut self, covered: &[u64]) {
        let is_covered = |reach: &Reach| reach.change.is_some_and(|one| covered.contains(&one));
        if let Some(newest) = self.live.iter().rposition(is_covered) {
            self.live.drain(..newest);
            self.live[0].change = None;
            self.sent = self.sent.split_off(&(self.live[0].seq + 1));
        }
    }
}
