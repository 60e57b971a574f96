//! What collection does about shared slots: finding who maps to them, and taking them along
//! (remap.md section 6).

use onefold_format::RemapEntry;
use onefold_nand::Media;
use onefold_units::convert::{index, u32_from, u64_from};
use onefold_units::{Cause, Lpn, Nanos, Ppn, Seq, SuperblockId};

use super::referrers::Referrer;
use super::room::For;
use super::{Remap, RemapScheme};
use crate::FtlError;
use crate::ftl::Ftl;
use crate::layout::NO_OWNER;

/// The unit a slot is written for when it moves, and the sequence number of its mapping; `None`: the
/// one in the spare area.
pub(crate) type Primary = (u32, Option<u64>);

impl<M: Media> Ftl<M> {
    /// Finds out who maps to the slots of a victim; returns when the controller knows. Local logs are
    /// read for this superblock only, global ones as a whole (remap.md section 4).
    pub(crate) fn look_up_referrers(
        &mut self,
        now: Nanos,
        pool: u32,
        victim: SuperblockId,
    ) -> Nanos {
        if self.remap.is_none() {
            return now;
        }
        let known = self.charge_lookup(now, victim);
        let slots = self.nand.geometry().slots();
        let first_ppn = self.nand.geometry().ppn(victim, 0).raw();
        let Some(remap) = &mut self.remap else { return now };
        remap.stats.lookup_ns += known.saturating_sub(now).get();
        let referrers = &mut remap.referrers[index(pool)];
        let group = &remap.groups[victim.index()];
        if group.is_empty() {
            referrers.clear();
            return known;
        }
        referrers.reset(slots);
        for (entry, in_flash) in group.entries() {
            for (lpn, slot) in entry.units() {
                let mapped = self.map.l2p.find(index(lpn)) == Some(first_ppn + slot);
                // After a power cut a stale duplicate may be in the other store.
                if mapped && remap.units.has(lpn) && remap.units.is_in_flash(lpn) == in_flash {
                    referrers.add(slot, Referrer { lpn, seq: entry.seq.raw() });
                }
            }
        }
        known
    }

    fn charge_lookup(&mut self, now: Nanos, victim: SuperblockId) -> Nanos {
        let Some(remap) = &mut self.remap else { return now };
        let group = &remap.groups[victim.index()];
        let entry_bytes = u64::from(remap.config.entry_bytes());
        let bytes = match remap.config.scheme {
            RemapScheme::None | RemapScheme::Opt | RemapScheme::Gf => 0,
            RemapScheme::Gn => remap.global_entries * entry_bytes,
            RemapScheme::Ln | RemapScheme::Lh => {
                u64_from(group.segments.len()) * u64::from(remap.config.segment_bytes)
            }
        };
        let mut known = remap.port.read(now, bytes);
        if remap.config.scheme == RemapScheme::Gf {
            return self.read_global_log(now);
        }
        let pages = std::mem::take(&mut remap.groups[victim.index()].pages);
        for page in &pages {
            known = known.max(self.charge_log_read(now, page, Cause::Rmm));
        }
        if let Some(remap) = &mut self.remap {
            remap.groups[victim.index()].pages = pages;
        }
        known
    }

    /// Whom a valid slot of a victim is written for when it moves: the unit that wrote it, if it still
    /// maps there; else one that the log maps there, which needs no entry from then on
    /// (*absorption*; remap.md, H7). `None`: its successor is staged.
    #[inline]
    pub(crate) fn primary(&self, pool: u32, slot: u32, ppn: Ppn, pass: u32) -> Option<Primary> {
        let owner = self.map.p2l.get(ppn.index());
        let is_mapped = owner != NO_OWNER && self.map.stored(owner) == Some(ppn);
        let Some(remap) = &self.remap else { return is_mapped.then_some((owner, None)) };
        self.primary_of_remap(remap, (owner, is_mapped), (pool, slot, ppn), pass)
    }

    #[inline(never)]
    fn primary_of_remap(
        &self,
        remap: &Remap,
        (owner, is_mapped): (u32, bool),
        (pool, slot, ppn): (u32, u32, Ppn),
        pass: u32,
    ) -> Option<Primary> {
        if is_mapped && !remap.units.has(owner) {
            return Some((owner, None));
        }
        let maps = |referrer: &Referrer| {
            self.map.stored(referrer.lpn) == Some(ppn) && remap.units.has(referrer.lpn)
        };
        let newest = remap.referrers[index(pool)].of(slot).find(maps)?;
        if remap.config.paper && pass == 0 {
            // The paper writes a null owner and logs all referrers again.
            return Some((NO_OWNER, Some(0)));
        }
        Some((newest.lpn, Some(newest.seq)))
    }

    /// A slot was moved: its other referrers go along, with entries of their own. Without room in the log
    /// they stay, and each gets a copy in the next pass over the victim.
    #[inline]
    pub(crate) fn follow(&mut self, now: Nanos, old: Ppn, new: Ppn) -> Result<(), FtlError> {
        if self.remap.is_none() {
            return Ok(());
        }
        self.follow_remaps(now, old, new)
    }

    #[inline(never)]
    fn follow_remaps(&mut self, now: Nanos, old: Ppn, new: Ppn) -> Result<(), FtlError> {
        let Some(remap) = &mut self.remap else { return Ok(()) };
        remap.relocations += 1;
        if remap.refs.get(old) > 0 {
            self.move_followers(now, old, new)?;
        }
        // A slot of nobody that nobody followed to.
        if self.remap.as_ref().is_some_and(|remap| remap.refs.get(new) == 0) {
            self.vacate(new);
        }
        Ok(())
    }

    fn move_followers(&mut self, now: Nanos, old: Ppn, new: Ppn) -> Result<(), FtlError> {
        let (victim, slot) = self.nand.geometry().split(old);
        let (superblock, new_slot) = self.nand.geometry().split(new);
        let (pool, _) = self.place_in_pool(victim);
        let followers = self.followers(pool, slot, old);
        let needs = [(superblock, u32_from(followers.len()))];
        if followers.is_empty() || !self.reserve_log(now, &needs, For::Collection)? {
            return Ok(());
        }
        for Referrer { lpn, seq } in followers {
            // A unit that left and came back is there twice, newest first.
            if self.map.stored(lpn) != Some(old) {
                continue;
            }
            self.end_mapping(lpn, old);
            self.map.l2p.set(index(lpn), new.raw());
            let Some(remap) = &mut self.remap else { return Ok(()) };
            remap.refs.add(new);
            remap.units.set(lpn, false);
            remap.stats.moved_entries += 1;
            let entry = RemapEntry::single(Seq::new(seq), Lpn::new(lpn), new_slot);
            self.append_entry(superblock, entry)?;
            if let Some(cache) = &mut self.map_cache {
                cache.mark_dirty(lpn / self.layout.entries_per_unit);
            }
            self.invalidate(old);
        }
        Ok(())
    }

    /// The units that the log maps to a slot of a victim, newest first.
    pub(crate) fn followers(&self, pool: u32, slot: u32, ppn: Ppn) -> Vec<Referrer> {
        let Some(remap) = &self.remap else { return Vec::new() };
        let maps = |referrer: &Referrer| {
            self.map.stored(referrer.lpn) == Some(ppn) && remap.units.has(referrer.lpn)
        };
        remap.referrers[index(pool)].of(slot).filter(maps).collect()
    }

    /// A unit was mapped by a remap to a slot that is being collected.
    pub(crate) fn note_referrer(&mut self, lpn: u32, ppn: Ppn, seq: u64) {
        let (superblock, slot) = self.nand.geometry().split(ppn);
        let (pool, _) = self.place_in_pool(superblock);
        let running = self.pools[index(pool)].collection;
        if running.is_none_or(|running| running.victim != superblock) {
            return;
        }
        let slots = self.nand.geometry().slots();
        let Some(remap) = &mut self.remap else { return };
        let referrers = &mut remap.referrers[index(pool)];
        if referrers.is_empty() {
            referrers.reset(slots);
        }
        referrers.add(slot, Referrer { lpn, seq });
    }
}
