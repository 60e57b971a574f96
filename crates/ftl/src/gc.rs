//! Garbage collection: choosing a victim, draining it, erasing it, and how much of that a host write
//! pays for (ssd.md 1.2).
//!
//! Background collection runs while a pool has fewer than `start` free superblocks. It is paced: a
//! victim with v valid of c slots frees c - v slots, so each slot written to the pool owes
//! v / (c - v) copies, and the next superblock is free just when it is needed. At `stop` a host
//! write waits for a whole victim.

use onefold_nand::{At, Media, MediaError};
use onefold_units::convert::{index, u32_from};
use onefold_units::{Cause, Nanos, SuperblockId};

use crate::FtlError;
use crate::ftl::{Ftl, background};
use crate::layout::{ERASING_BIT, NO_OWNER, RETIRED_BIT};
use crate::pool::Collection;
use crate::relocate::Moving;
use crate::staging::Resume;
use crate::superblock::State;
use crate::victim::Candidate;

/// Victims in a row that may free nothing before the emptiest is taken instead. Random policies
/// draw full superblocks now and then; only a streak means that nothing else is left.
const BARREN_MAX: u32 = 8;

/// Valid slots whose map entries are loaded at once: their cache misses wait side by side, and their lines
/// still fit the first cache when they are used.
const AHEAD: usize = 16;

impl<M: Media> Ftl<M> {
    /// Notes whether a pool needs collection.
    pub(crate) fn judge_hunger(&mut self, pool: u32) {
        let (start, stop) = (self.layout.start, self.layout.stop);
        let pool = &mut self.pools[index(pool)];
        let hungry = pool.collection.is_some()
            || pool.free_count() < start
            || pool.first_weak(stop).is_some();
        if hungry != pool.hungry {
            pool.hungry = hungry;
            if hungry {
                self.hungry += 1;
            } else {
                self.hungry -= 1;
            }
        }
    }

    /// The share of collection that one write to `pool` owes.
    pub(crate) fn collect_paced(&mut self, now: Nanos, pool: u32) -> Result<(), FtlError> {
        unless_unreadable(self.collect_share(now, pool))
    }

    fn collect_share(&mut self, now: Nanos, pool: u32) -> Result<(), FtlError> {
        if !self.pools[index(pool)].hungry {
            return Ok(());
        }
        if !self.config.gc_pacing {
            // Bounded, because filling up flash pages may eat what a victim gains.
            for _ in 0..self.nand.geometry().superblocks_per_pool() {
                if !self.pools[index(pool)].hungry || !self.collect_one(now, pool)? {
                    break;
                }
            }
            return Ok(());
        }
        // A full victim frees nothing: the next one is due at once.
        for _ in 0..=BARREN_MAX {
            if self.pools[index(pool)].collection.is_none() && !self.begin(now, pool)? {
                return Ok(());
            }
            let Some(copies) = self.copies_owed(pool) else {
                self.drain(now, pool, u32::MAX)?;
                continue;
            };
            return self.drain(now, pool, copies);
        }
        Ok(())
    }

    /// Copies that one write owes to the running victim; `None` if the victim frees nothing. A pool
    /// that fell behind pays double until it has caught up.
    fn copies_owed(&mut self, pool: u32) -> Option<u32> {
        let start = self.layout.start;
        let pool = &mut self.pools[index(pool)];
        let behind = pool.free_count() + 1 < start;
        let running = pool.collection.as_mut()?;
        running.credit += running.valid << u32::from(behind);
        let copies = running.credit.checked_div(running.gain)?;
        running.credit -= copies * running.gain;
        Some(copies)
    }

    /// Waits until a pool has more than `stop` free superblocks.
    pub(crate) fn collect_until_above_stop(
        &mut self,
        now: Nanos,
        pool: u32,
    ) -> Result<(), FtlError> {
        // Each round erases a victim; victims that free nothing are bounded by BARREN_MAX.
        let rounds = 2 * self.nand.geometry().superblocks_per_pool() * (BARREN_MAX + 1);
        for _ in 0..rounds {
            if self.pools[index(pool)].free_count() > self.layout.stop {
                return Ok(());
            }
            if !self.collect_one(now, pool)? {
                return Err(FtlError::NoSpace);
            }
        }
        Err(FtlError::NoSpace)
    }

    /// Before host data may get into a superblock: a power cut of the host may undo erases and lose the
    /// copies made before them, so those that were not synchronised do not count as reserve.
    pub(crate) fn secure_reserve(&mut self, pool: u32) -> Result<(), FtlError> {
        let state = &self.pools[index(pool)];
        if M::STORES
            && state.unsynced > 0
            && state.free_count().saturating_sub(state.unsynced) <= self.layout.stop
        {
            self.sync()?;
        }
        Ok(())
    }

    /// Collects in the time the device would be idle before `until`: up to `start` free superblocks.
    pub fn collect_while_idle(&mut self, until: Nanos) -> Result<(), FtlError> {
        unless_unreadable(self.collect_until(until))
    }

    fn collect_until(&mut self, until: Nanos) -> Result<(), FtlError> {
        const COPIES_AT_ONCE: u32 = 16;
        while self.hungry > 0 && !self.nand.media().is_held_up() {
            let idle_at = self.nand.timelines().idle_at();
            let Some(pool) = self.pools.iter().position(|pool| pool.hungry) else { break };
            let pool = u32_from(pool);
            let can = self.pools[index(pool)].collection.is_some() || self.begin(idle_at, pool)?;
            if idle_at >= until || !can {
                break;
            }
            self.drain(idle_at, pool, COPIES_AT_ONCE)?;
        }
        Ok(())
    }

    /// Collects one victim to the end. `false` if there is none.
    pub(crate) fn collect_one(&mut self, now: Nanos, pool: u32) -> Result<bool, FtlError> {
        if self.pools[index(pool)].collection.is_none() && !self.begin(now, pool)? {
            return Ok(false);
        }
        self.drain(now, pool, u32::MAX)?;
        Ok(true)
    }

    /// Picks the next victim of a pool. `false` if collecting any would free nothing.
    ///
    /// # Errors
    /// The victims that are left could not be read; they are candidates again.
    fn begin(&mut self, now: Nanos, pool: u32) -> Result<bool, FtlError> {
        let Some((place, cause)) = self.choose(pool) else {
            return self.reconsider(pool).map_or(Ok(false), |why| Err(why.into()));
        };
        let superblock = self.nand.geometry().superblock_of_pool(pool, place);
        let block = &mut self.superblocks[superblock.index()];
        block.state = State::Collecting;
        let valid = block.valid;
        let mut gain = self.layout.data_slots().saturating_sub(valid);
        let pool_state = &mut self.pools[index(pool)];
        pool_state.victims.remove(place);
        if pool_state.weak.remove(&place) {
            self.stats.relocated += 1;
            // Nobody waits for its room: no more than two copies a write.
            gain = gain.max(valid / 2);
        } else {
            pool_state.barren = if gain == 0 { pool_state.barren + 1 } else { 0 };
        }
        let ready = self.look_up_referrers(now, pool, superblock);
        let cursor = self.layout.data_begin;
        self.pools[index(pool)].collection = Some(Collection {
            victim: superblock,
            cursor,
            ahead: cursor,
            cause,
            valid,
            gain,
            credit: 0,
            ready,
            pass: 0,
        });
        self.judge_hunger(pool);
        Ok(true)
    }

    fn choose(&mut self, pool: u32) -> Option<(u32, Cause)> {
        if let Some(place) = self.worn_apart(pool) {
            return Some((place, Cause::Wear));
        }
        if let Some(place) = self.pools[index(pool)].first_weak(self.layout.stop) {
            return Some((place, Cause::Gc));
        }
        let geometry = *self.nand.geometry();
        let (superblocks, seq) = (&self.superblocks, self.seq);
        let capacity = self.layout.data_slots();
        let about = |place: u32| {
            let block = &superblocks[geometry.superblock_of_pool(pool, place).index()];
            let (valid, age, erases) = (block.valid, seq - block.closed_at, block.erases);
            Candidate { place, valid, capacity, age, erases }
        };
        let state = &mut self.pools[index(pool)];
        if state.barren < BARREN_MAX {
            return state.victims.choose(about).map(|place| (place, Cause::Gc));
        }
        // Only a victim with an invalid slot makes progress now.
        let gains = |place: &u32| {
            let block = &superblocks[geometry.superblock_of_pool(pool, *place).index()];
            block.state == State::Closed && block.valid < capacity
        };
        let places = (0..geometry.superblocks_per_pool()).filter(gains);
        places.min_by_key(|place| (about(*place).valid, *place)).map(|place| (place, Cause::Gc))
    }

    /// Copies up to `copies` valid slots of the running victim, and erases it once none is left.
    fn drain(&mut self, now: Nanos, pool: u32, copies: u32) -> Result<(), FtlError> {
        let frontier = pool * self.layout.frontiers + self.layout.gc_frontier;
        let Some(running) = &self.pools[index(pool)].collection else { return Ok(()) };
        let (victim, ready, pass) = (running.victim, now.max(running.ready), running.pass);
        let cause = if pass == 0 { running.cause } else { Cause::Unshare };
        let mut next = self.valid.next(victim, running.cursor);
        for _ in 0..copies {
            let Some(slot) = next else { break };
            self.look_ahead(pool, slot);
            let at = At { ready, ..background(now) };
            let place = Moving { pool, victim, slot, pass, cause };
            if let Some(why) = self.relocate(at, frontier, place)? {
                self.set_aside(pool, why);
                return Ok(());
            }
            next = self.valid.next(victim, slot + 1);
            // Only now: a slot that could not be moved is tried again.
            if let Some(running) = &mut self.pools[index(pool)].collection {
                running.cursor = slot + 1;
            }
        }
        if next.is_none() { self.finish(now, pool) } else { Ok(()) }
    }

    /// Loads the owners of the next valid slots of the running victim, from `slot` on, and begins to load their map
    /// entries.
    #[inline]
    fn look_ahead(&mut self, pool: u32, slot: u32) {
        let Some(running) = &mut self.pools[index(pool)].collection else { return };
        if slot < running.ahead {
            return;
        }
        let mut owners = [NO_OWNER; AHEAD];
        let first = self.nand.geometry().ppn(running.victim, 0).index();
        for (owner, slot) in owners.iter_mut().zip(self.valid.from(running.victim, slot)) {
            *owner = self.map.p2l.get(first + index(slot));
            running.ahead = slot + 1;
        }
        for owner in owners {
            self.map.l2p.prefetch(index(owner));
        }
    }

    /// The victim has been read through: erase it once everything it held is programmed elsewhere.
    #[cold]
    fn finish(&mut self, now: Nanos, pool: u32) -> Result<(), FtlError> {
        let Some(running) = self.pools[index(pool)].collection else { return Ok(()) };
        let victim = running.victim;
        let at = background(now);
        if self.superblocks[victim.index()].valid > 0 {
            let frontier = pool * self.layout.frontiers + self.layout.gc_frontier;
            self.program_staged_surely(at, pool, frontier)?;
        }
        if self.superblocks[victim.index()].valid > 0 {
            // Host writes that replace its slots are staged elsewhere.
            self.program_all_staged(at)?;
        }
        if self.superblocks[victim.index()].valid > 0 {
            // Referrers that found no room in the log, or slots whose copy was staged on a superblock that failed: each gets a copy.
            let cursor = self.layout.data_begin;
            let pass = running.pass + 1;
            let again = Collection { cursor, ahead: cursor, pass, ..running };
            self.pools[index(pool)].collection = Some(again);
            return Ok(());
        }
        let durable = self.write_log(now)?;
        let pool_state = &mut self.pools[index(pool)];
        pool_state.collection = None;
        pool_state.closed -= 1;
        if let Some(remap) = &mut self.remap {
            remap.referrers[index(pool)].clear();
        }
        self.superblocks[victim.index()].state = State::Free;
        let usable = self.erase(durable, victim)?;
        self.drop_group(victim);
        if usable {
            self.release(victim);
        }
        self.shrink_log(now)?;
        self.reconsider(pool);
        self.judge_hunger(pool);
        Ok(())
    }

    /// Programs what every frontier has staged.
    pub(crate) fn program_all_staged(&mut self, at: At) -> Result<Nanos, FtlError> {
        let mut done = at.ready;
        for frontier in 0..u32_from(self.frontiers.len()) {
            let pool = frontier / self.layout.frontiers;
            done = done.max(self.program_staged_surely(at, pool, frontier)?);
        }
        Ok(done)
    }

    /// Programs what a frontier has staged, on another superblock if the program fails.
    fn program_staged_surely(
        &mut self,
        at: At,
        pool: u32,
        frontier: u32,
    ) -> Result<Nanos, FtlError> {
        loop {
            match self.program_staged(at, pool, frontier) {
                Ok(grant) => return Ok(grant.done),
                Err(FtlError::Media(MediaError::ProgramFailed)) => {
                    self.abandon(at, pool, frontier, Resume::All)?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Erases a superblock without valid slots. `false` if it is worn out and retired.
    pub(crate) fn erase(&mut self, now: Nanos, superblock: SuperblockId) -> Result<bool, FtlError> {
        let (pool, _) = self.place_in_pool(superblock);
        if self.superblocks[superblock.index()].holds_log {
            self.note_erasing(superblock)?;
        }
        let block = &mut self.superblocks[superblock.index()];
        block.erases += 1;
        self.pools[index(pool)].erases += 1;
        self.pools[index(pool)].unsynced += 1;
        let worn = self.config.endurance > 0 && block.erases >= self.config.endurance;
        let failing = block.failing;
        let result = self.nand.erase(background(now), superblock);
        if let Some(remap) = &mut self.remap {
            remap.superblocks.torn.retain(|(torn, _)| *torn != superblock);
        }
        let usable = match result {
            Ok(_) => !worn && !failing,
            Err(MediaError::EraseFailed) => false,
            Err(error) => return Err(error.into()),
        };
        let block = &mut self.superblocks[superblock.index()];
        if usable {
            block.dirty = false;
            block.holds_log = false;
            block.unverified = false;
        } else {
            block.state = State::Retired;
        }
        self.note_wear(superblock)?;
        Ok(usable)
    }

    /// Keeps the wear of a superblock in NVRAM: an erase takes the header that would tell it.
    pub(crate) fn note_wear(&mut self, superblock: SuperblockId) -> Result<(), FtlError> {
        self.superblocks[superblock.index()].erasing = false;
        if M::STORES {
            let retired = self.superblocks[superblock.index()].state == State::Retired;
            self.write_wear(superblock, if retired { RETIRED_BIT } else { 0 })?;
        }
        Ok(())
    }

    /// Keeps in NVRAM that the log pages of a superblock do not count any more: a damaged one found after
    /// a power cut comes from its erase then. What replaced their entries is durable before that.
    pub(crate) fn note_erasing(&mut self, superblock: SuperblockId) -> Result<(), FtlError> {
        self.superblocks[superblock.index()].erasing = true;
        if M::STORES {
            self.sync()?;
            self.write_wear(superblock, ERASING_BIT)?;
        }
        Ok(())
    }

    fn write_wear(&mut self, superblock: SuperblockId, bit: u32) -> Result<(), FtlError> {
        let erases = self.superblocks[superblock.index()].erases;
        let entry = (erases & !(RETIRED_BIT | ERASING_BIT)) | bit;
        let offset = self.layout.nvram.wear + u64::from(superblock.raw()) * 4;
        self.nand.media_mut().nvram_write(offset, &entry.to_le_bytes())?;
        Ok(())
    }

    /// Puts a superblock into the free list of its pool, unless it is out of use.
    pub(crate) fn release(&mut self, superblock: SuperblockId) {
        let block = &mut self.superblocks[superblock.index()];
        if block.state == State::Retired {
            return;
        }
        block.state = State::Free;
        let erases = block.erases;
        let (pool, place) = self.place_in_pool(superblock);
        self.pools[index(pool)].push_free(place, erases);
        self.judge_hunger(pool);
    }

    /// Static wear levelling: the least worn closed superblock, if it lags behind the most worn by
    /// more than the threshold. Looked at once per eighth of the pool erased.
    fn worn_apart(&mut self, pool: u32) -> Option<u32> {
        let threshold = self.config.wear_threshold;
        let per_pool = self.nand.geometry().superblocks_per_pool();
        let state = &mut self.pools[index(pool)];
        if threshold == 0 || state.erases < per_pool.div_ceil(8) {
            return None;
        }
        state.erases = 0;
        let geometry = *self.nand.geometry();
        let block =
            |place: u32| &self.superblocks[geometry.superblock_of_pool(pool, place).index()];
        let most = (0..per_pool).map(|place| block(place).erases).max()?;
        let closed = (0..per_pool).filter(|place| block(*place).state == State::Closed);
        let coldest = closed.min_by_key(|place| (block(*place).erases, *place))?;
        (most - block(coldest).erases > threshold).then_some(coldest)
    }
}

/// Collection that nobody waits for may come later, when its victims can be read: it is no failure of the request that it
/// happens beside.
fn unless_unreadable(collected: Result<(), FtlError>) -> Result<(), FtlError> {
    match collected {
        Err(FtlError::Media(MediaError::Backing { .. })) => Ok(()),
        other => other,
    }
}
