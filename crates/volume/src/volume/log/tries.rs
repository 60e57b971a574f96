//! How often a request of a volume of mode `log` is sent before its failure counts (`crate::retries`).

use crate::io::{Io, IoFailed, IoId, IoKind};
use crate::pending::Purpose;
use crate::retries::{Failing, TRIES_FEW, TRIES_FINISH, TRIES_SOME};
use crate::volume::Volume;

impl Volume {
    /// Whether a request that failed is sent again before that counts.
    pub(crate) fn is_sent_again(&mut self, id: IoId, why: IoFailed) -> bool {
        let Io { kind, .. } = self.pending.io(id);
        let purpose = self.pending.purpose(id);
        let refused = self.retries.is_refused(id);
        let tries = match (kind, purpose) {
            _ if self.frozen.is_some() => 1,
            // Of the last two, the write that they are about fails.
            (IoKind::Flush | IoKind::Trim | IoKind::Remap, _)
            | (_, Purpose::Pointer(_) | Purpose::Compare(_)) => 1,
            // Room may come back, and no other place has more of it.
            (IoKind::Write, _) if why == IoFailed::NoSpace => u32::MAX,
            (_, Purpose::Batch(batch)) => self.tries_of(batch, refused),
            _ if refused => 1,
            (_, Purpose::FinishAgain(_)) => 1,
            (IoKind::Finish, _) => TRIES_FINISH,
            (_, Purpose::Label | Purpose::LabelReset) => TRIES_SOME,
            _ => TRIES_FEW,
        };
        let spell = self.retries.spell_goes_on(self.now);
        let mut since = None;
        if let Purpose::Batch(batch) = purpose {
            self.log.give_up_write(batch);
            let batch = self.log.batch_mut(batch);
            // It may have waited for others that failed.
            let failing = Failing { since: spell.max(batch.sent_at), why };
            let failing = batch.failing.get_or_insert(failing);
            failing.why = why;
            since = Some(failing.since);
        }
        self.stats.failed_requests += 1;
        self.stall.note_failure(self.now, why);
        self.retries.again((id, kind == IoKind::Write), tries, (self.now, why), since)
    }
}
