//! The walk over a log segment that may have batches behind the root: the chain of its headers (`crate::recovery::replay`, invariant 1).

use onefold_format::volume::{BatchHeader, DecodedBatch};
use onefold_units::convert::{index, narrow};

use super::{Candidate, Found, Identity};
use crate::backing::{Backing, Window};
use crate::config::BATCH_BLOCKS_MAX;
use crate::error::MountError;

/// Blocks of a batch that is short.
const SHORT_BLOCKS: u32 = 8;

/// Blocks that are read with the header of the next short batch: 256 KiB.
const AHEAD_BLOCKS: u32 = 64;

/// Headers that are read at once where batches are long: the next ones, if they are as long as the last one.
const HEADERS_AHEAD: u32 = 16;

/// The batches of a log segment.
#[derive(Debug, Default)]
pub(super) struct Chain {
    pub(super) batches: Vec<Found>,
    /// The highest number that was known to be durable by a header behind the end of the chain. What is missing there may
    /// be rotten, and not lost in a power cut.
    pub(super) durable_behind: u64,
}

/// What is read with a header, as it may be needed next.
#[derive(Clone, Copy, Debug)]
enum Ahead {
    /// So many blocks from it on, as batches are short.
    Blocks(u32),
    /// The headers behind it, if they lie so many blocks apart.
    Headers(u32),
}

/// The chain of the log segment that begins at `first` (invariant 1). `window` has its first block. With `look` it may have been begun although
/// that is no header.
pub(super) fn walk(
    backing: &mut dyn Backing,
    (first, look): (u32, bool),
    identity: &Identity,
    (candidate, mut window): (&Candidate, Window),
    headers: &mut u64,
) -> Result<Chain, MountError> {
    let mut chain = Chain::default();
    let blocks = candidate.end;
    let mut here = *candidate;
    let mut at = candidate.from;
    let mut read = |here: &Candidate, at: u32, ahead: Ahead| {
        let place = |at: u32| u64::from(first + at);
        let blocks_ahead = match ahead {
            Ahead::Blocks(ahead) => ahead.min(blocks - at),
            Ahead::Headers(apart) => {
                let next = (at..blocks).step_by(index(apart)).take(index(HEADERS_AHEAD));
                window.read_single(backing, &next.map(place).collect::<Vec<_>>());
                1
            }
        };
        let at = place(at);
        let unread = |_| MountError::Read { what: "batch header", at };
        let block = window.block(backing, at, blocks_ahead).map_err(unread)?;
        Ok::<_, MountError>(header_of(block, identity, here, narrow(at)))
    };
    let mut ahead = Ahead::Blocks(1);
    while at < blocks {
        *headers += 1;
        let Some(batch) = read(&here, at, ahead)? else { break };
        let length = batch.blocks();
        if length > blocks - at {
            break;
        }
        (here.epoch_min, here.epoch_max) = (batch.header.epoch, batch.header.epoch);
        chain.batches.push(Found { batch, start: first + at });
        at += length;
        let is_short = length <= SHORT_BLOCKS;
        ahead = if is_short { Ahead::Blocks(AHEAD_BLOCKS) } else { Ahead::Headers(length) };
    }
    // As far as the batch of a header that is none can reach, and from there on again where another one is found. Where
    // nothing was ever found, what cannot be read is no reason to stop.
    let begun = at > 0;
    let mut end = if begun || look { blocks.min(at.saturating_add(BATCH_BLOCKS_MAX)) } else { at };
    at += 1;
    while at < end {
        match read(&here, at, Ahead::Blocks(end - at)) {
            Ok(Some(batch)) => {
                let durable = batch.header.durable_seq.raw();
                chain.durable_behind = chain.durable_behind.max(durable);
                at += batch.blocks();
                end = blocks.min(at.saturating_add(BATCH_BLOCKS_MAX));
            }
            Err(error) if begun => return Err(error),
            Ok(None) | Err(_) => at += 1,
        }
    }
    Ok(chain)
}

/// The header that a block is, if it counts.
fn header_of(
    block: &[u8],
    identity: &Identity,
    candidate: &Candidate,
    at: u32,
) -> Option<DecodedBatch> {
    let batch = BatchHeader::decode(block, &identity.uuid, at.into()).ok();
    batch.filter(|batch| {
        let header = &batch.header;
        header.segment == candidate.segment
            && header.incarnation == identity.incarnation
            && (candidate.epoch_min..=candidate.epoch_max).contains(&header.epoch)
    })
}
