//! Log pages that cannot be read: whether anything is lost with them, and what is given up for them.

use onefold_format::SuperblockKind;
use onefold_nand::Media;
use onefold_units::{Lpn, Seq, SuperblockId};

use crate::layout::LOST;
use crate::recovery::Recovery;
use crate::{LogDamage, OnLogDamage};

impl<M: Media> Recovery<M> {
    /// A log page cannot be read, and was programmed before the number `by`. If power failed before it
    /// was synchronised, NVRAM still has what it said; if it was programmed before the checkpoint, the
    /// map has. Otherwise nobody knows which units it was about, and going on would serve older
    /// contents of them.
    pub(super) fn judge_damage(&mut self, log: SuperblockId, slot: u32, by: Option<Seq>) {
        self.report.damaged_log_pages += 1;
        let lost = |seq: &Seq| *seq <= self.mark.seq && *seq > self.ftl.checkpoints.label.seq;
        if let Some(before) = by.filter(lost) {
            let superblock = log.raw();
            let first = LogDamage { superblock, slot, pages: 0, before };
            let damage = self.report.log_damage.get_or_insert(first);
            damage.pages += 1;
            damage.before = damage.before.max(before);
        }
        let synced = self.mark.seq.raw();
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
        let units = self.ftl.map.l2p.iter_mut().zip(&self.best);
        for (lpn, (entry, newest)) in (0..self.ftl.layout.data_units).zip(units) {
            let may_be_older = *newest < damage.before.raw() && but != Some(Lpn::new(lpn));
            if may_be_older && *entry != LOST {
                *entry = LOST;
                self.report.given_up_units += 1;
            }
        }
    }
}
