//! How much of the log checkpoints take (`crate::checkpoint`).

use onefold_format::volume::{BODY_PAYLOAD_BYTES, RUN_BLOCK_RECORDS, SegmentEntry};
use onefold_units::convert::{index64, narrow, u64_from};

use crate::checkpoint::RUNS_IN_A_HURRY;
use crate::checkpoint::room::{BODY, RUN_MIN, blocks_of_sweep};
use crate::log::Stream;
use crate::volume::Volume;

impl Volume {
    pub(crate) fn member_count(&self) -> u64 {
        u64_from(self.family.slots().count())
    }

    /// Most log segments that a checkpoint of so many members takes which sweeps over one page of all: they may be in another one that is not full
    /// when it begins.
    pub(crate) fn checkpoint_segments(&self, members: u64) -> u32 {
        let sweep = blocks_of_sweep(index64(members), index64(members));
        let blocks = members * RUN_MIN + sweep + BODY;
        narrow(blocks.div_ceil(self.layout.full_blocks().into())) + 1
    }

    /// Blocks that the runs of so many members take if the sweep comes round often.
    pub(crate) const fn runs_when_swept_often(members: u64) -> u64 {
        RUNS_IN_A_HURRY * RUN_MIN * members
    }

    /// Blocks of a body that describe log segments.
    fn body_of_segments(&self) -> u64 {
        let bytes = u64::from(self.layout.segments()) * u64_from(SegmentEntry::BYTES);
        bytes / u64_from(BODY_PAYLOAD_BYTES)
    }

    /// Log segments that the bodies of checkpoints are left in until a sweep in a hurry has come round twice. Beside the reserve that is nothing
    /// but where log segments are many and short: 78 blocks describe 20,000, and with every checkpoint they come once more.
    pub(crate) fn kept_for_bodies(&self) -> u32 {
        let blocks = 2 * RUNS_IN_A_HURRY * self.body_of_segments();
        narrow(blocks / u64::from(self.layout.full_blocks()))
    }

    /// Blocks that the checkpoint that begins now may take for its sweep.
    pub(super) fn room_for_sweep(&self) -> u64 {
        let records = self.map.dirty_entries() / u64_from(RUN_BLOCK_RECORDS);
        let body = u64_from(self.checkpoint.body_len()) + BODY;
        self.room_of(Stream::Meta)
            .saturating_sub(self.member_count() * RUN_MIN + 2 * records + body)
    }
}
