//! How much of the log checkpoints take (`crate::checkpoint`).

use onefold_format::volume::RUN_BLOCK_RECORDS;
use onefold_units::convert::u64_from;

use crate::checkpoint::RUNS_IN_A_HURRY;
use crate::checkpoint::room::{BODY, RUN_MIN};
use crate::log::Stream;
use crate::volume::Volume;

impl Volume {
    pub(crate) fn member_count(&self) -> u64 {
        u64_from(self.members.slots().count())
    }

    /// Blocks that the runs of so many members take if the sweep comes round often.
    pub(crate) const fn runs_when_swept_often(members: u64) -> u64 {
        RUNS_IN_A_HURRY * RUN_MIN * members
    }

    /// Blocks that the checkpoint that begins now may take for its sweep.
    pub(super) fn room_for_sweep(&self) -> u64 {
        let records = self.map.dirty_entries() / u64_from(RUN_BLOCK_RECORDS);
        let body = u64_from(self.checkpoint.body_len()) + BODY;
        self.room_of(Stream::Meta)
            .saturating_sub(self.member_count() * RUN_MIN + 2 * records + body)
    }
}
