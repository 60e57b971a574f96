//! Log segments in the body. Of each one, 16 B: state 1 | stream 1 | 0 2 | live 4 | epoch 8. Of each open
//! one, 9 B: stream 1 | log segment 4 | next 4.

use onefold_units::LogSegmentId;

use super::BlockError;
use super::coded::coded;
use super::fields::Fields;

coded! {
    /// State of a log segment (volume.md, section 5.6).
    SegmentState {
        /// May be filled.
        Free = 0,
        /// Being filled.
        Open = 1,
        /// Filled.
        Closed = 2,
        /// Emptied; free after the next checkpoint.
        Prefree = 3,
        /// Writing to it failed.
        Suspect = 4,
        /// Holds labels or roots: never filled.
        Fixed = 5,
    }
}

/// What a checkpoint knows of a log segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentEntry {
    /// Its state.
    pub state: SegmentState,
    /// The stream that filled it.
    pub stream: u8,
    /// Blocks that a map leads to; an upper bound while runs are not counted.
    pub live: u32,
    /// Number of its last allocation.
    pub epoch: u64,
    /// More may count as live than is: a map could not be read when a block died.
    pub doubtful: bool,
}

/// Where a stream writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenSegment {
    /// The stream.
    pub stream: u8,
    /// Its log segment.
    pub segment: LogSegmentId,
    /// Block of that log segment where the next batch goes.
    pub next: u32,
}

impl SegmentEntry {
    /// Length in the body, in bytes.
    pub const BYTES: usize = 16;

    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend([self.state.code(), self.stream, self.doubtful.into(), 0]);
        bytes.extend(self.live.to_le_bytes());
        bytes.extend(self.epoch.to_le_bytes());
    }

    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Self, BlockError> {
        let (state, stream) = (SegmentState::from_code(fields.u8()?), fields.u8()?);
        let doubtful = fields.u8()? & 1 == 1;
        fields.skip(1)?;
        let state = state.ok_or(BlockError::Malformed("a log segment is in an unknown state"))?;
        Ok(Self { state, stream, live: fields.u32()?, epoch: fields.u64()?, doubtful })
    }
}

impl OpenSegment {
    pub(super) const BYTES: usize = 9;

    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        bytes.push(self.stream);
        bytes.extend(self.segment.raw().to_le_bytes());
        bytes.extend(self.next.to_le_bytes());
    }

    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Self, BlockError> {
        let (stream, segment) = (fields.u8()?, LogSegmentId::new(fields.u32()?));
        Ok(Self { stream, segment, next: fields.u32()? })
    }
}
