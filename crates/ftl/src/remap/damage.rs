//! Log pages that cannot be read: whether anything is lost with them, and what is given up for them.

use onefold_format::{HeadRecord, SuperblockKind, SyncedLog};
use onefold_nand::Media;
use onefold_units::convert::{index, low32};
use onefold_units::{Lpn, Seq, SuperblockId};

use crate::layout::LOST;
use crate::recovery::Recovery;
use crate::{LogDamage, OnLogDamage};

impl<M: Media> Recovery<M> {
    /// Of a page in a log superblock that cannot be read: a number that is larger than those it had, if it
    /// was whole once. `by` is the number of an intact page that was programmed after it, or its own;
    /// `first` that of the first intact page of the superblock.
    ///
    /// A superblock that was begun before the synchronisation, and was not open then, was complete. So
    /// was what lies before the frontier of the open one.
    pub(super) fn was_whole(
        &self,
        head: &HeadRecord,
        slot: u32,
        by: Option<Seq>,
        first: Option<Seq>,
    ) -> Option<Seq> {
        let SyncedLog { seq, open_epoch, open_slots } = self.mark.log;
        if let Some(by) = by.filter(|by| *by <= seq) {
            return Some(by);
        }
        let whole = if open_slots > 0 && low32(head.epoch) == open_epoch {
            slot < open_slots
        } else {
            first.is_some_and(|first| first <= seq)
        };
        whole.then_some(seq)
    }

    /// A log page cannot be read. If power failed before it was synchronised, NVRAM still has what it
    /// said; if it was programmed before the checkpoint, the map has. Otherwise, if it was whole and
    /// said things older than `before`, nobody knows which units it was about, and going on would
    /// serve older contents of them.
    pub(super) fn judge_damage(&mut self, log: SuperblockId, slot: u32, before: Option<Seq>) {
        self.report.damaged_log_pages += 1;
        if let Some(before) = before.filter(|seq| *seq > self.ftl.checkpoints.label.seq) {
            let superblock = log.raw();
            let first = LogDamage { superblock, slot, pages: 0, before };
            let damage = self.report.log_damage.get_or_insert(first);
            damage.pages += 1;
            damage.before = damage.before.max(before);
        }
        let synced = self.mark.log;
        if let Some(remap) = &mut self.ftl.remap {
            remap.superblocks.torn.push((log, synced));
        }
    }

    /// Whether a superblock holds data, and was opened before a number was given out. What log pages of
    /// its earlier lives said does not count, damaged or not.
    pub(super) fn is_used_since(&self, superblock: SuperblockId, seq: Seq) -> bool {
        self.head(superblock, SuperblockKind::Data).is_some_and(|head| head.seq < seq)
    }

    /// The damaged pages may say that a unit has been something else since, unless it changed after they
    /// were written. Entries of a page are older than the page.
    pub(crate) fn give_up(&mut self) {
        let OnLogDamage::GiveUp { but } = self.on_log_damage else { return };
        let Some(damage) = self.report.log_damage else { return };
        let entries = &mut self.ftl.map.l2p;
        for (lpn, newest) in (0..self.ftl.layout.data_units).zip(&self.best) {
            let may_be_older = *newest < damage.before.raw() && but != Some(Lpn::new(lpn));
            if may_be_older && entries.get(index(lpn)) != LOST {
                entries.set(index(lpn), LOST);
                self.report.given_up_units += 1;
            }
        }
    }
}
