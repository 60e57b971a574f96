//! Requests to the backing that failed: sent again as in mode `log`, but always to where they were.

use super::PartitionedVolume;
use super::io::Purpose;
use onefold_volume::parts::{TRIES_FEW, TRIES_MANY};
use onefold_volume::{IoFailed, IoId, IoKind};

impl PartitionedVolume {
    /// Whether a request that failed is sent again before that counts. Writes are until they are
    /// through: where things go is what both papers fix.
    pub(super) fn is_sent_again(&mut self, id: IoId, why: IoFailed) -> bool {
        let write = self.ios.io(id).kind == IoKind::Write;
        let tries = match self.ios.purpose(id) {
            _ if self.frozen.is_some() => 1,
            _ if write => u32::MAX,
            Purpose::Flush | Purpose::HostFlush(_) | Purpose::Trim => 1,
            Purpose::Load { .. } => TRIES_MANY,
            _ => TRIES_FEW,
        };
        self.stats.failed_requests += 1;
        self.retries.again((id, write), tries, (self.now, why), None)
    }

    /// A volume stalls as in mode `log`: while a write fails for long, the host is told instead of
    /// waiting.
    pub(super) fn step_stall(&mut self) {
        if self.retries.is_empty() && self.failing.is_none() {
            return;
        }
        let failing = self.retries.writes().find(|failing| failing.stalls(self.now));
        self.failing = failing.filter(|_| self.frozen.is_none()).map(|failing| failing.why);
        let Some(why) = self.failing else { return };
        let durable = std::mem::take(&mut self.journal.waiters).into_iter().map(|(_, tag)| tag);
        let tags: Vec<u64> = durable.chain(self.requests.give_up()).collect();
        for tag in tags {
            self.report(tag, Err(why));
        }
    }
}
