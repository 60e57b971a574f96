//! Reading units, the demand-paged map, flush.

use onefold_format::{SlotKind, SpareState, SyncMark, SyncedLog, checksum};
use onefold_nand::{At, Delay, ERASED_SPARE, Grant, Media, MediaError, Work, zero};
use onefold_units::convert::{index, low32};
use onefold_units::{Cause, Lpn, Nanos, Ppn, Seq};

use crate::FtlError;
use crate::frontier::Entry;
use crate::ftl::Ftl;
use crate::layout::{LOST, UNMAPPED};
use crate::map_cache::Access;
use crate::superblock::State;
use crate::unit::Unit;

impl<M: Media> Ftl<M> {
    /// Reads one unit into `data` (a whole unit, or empty where no bytes are wanted) and moves
    /// `bytes` of it to the controller. Unmapped units read as zeroes and cost no flash read.
    ///
    /// # Errors
    /// [`FtlError::Unreadable`] if the content is lost or fails its checksum.
    #[inline(never)]
    pub fn read(
        &mut self,
        at: At,
        lpn: Lpn,
        bytes: u32,
        cause: Cause,
        data: &mut [u8],
    ) -> Result<Grant, FtlError> {
        self.read_here(at, lpn, bytes, cause, data)
    }

    /// The same, compiled into its caller: for the place that most reads come from.
    ///
    /// # Errors
    /// As [`Ftl::read`].
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "many arguments for little work")]
    pub fn read_here(
        &mut self,
        at: At,
        lpn: Lpn,
        bytes: u32,
        cause: Cause,
        data: &mut [u8],
    ) -> Result<Grant, FtlError> {
        let lpn = lpn.raw();
        let at = At { ready: self.translate(at, lpn, false)?, ..at };
        let ppn = self.map.l2p.get(index(lpn));
        if ppn >= LOST {
            zero(data);
            return if ppn == UNMAPPED {
                Ok(Grant { done: at.ready, delay: Delay::None })
            } else {
                Err(FtlError::Unreadable { lpn })
            };
        }
        let ppn = Ppn::new(ppn);
        if let Some((frontier, place)) = self.find_staged(ppn) {
            return self.read_staged(at, frontier, place, data);
        }
        self.count_read(cause, u64::from(bytes.div_ceil(4096)));
        let mut spare = ERASED_SPARE;
        let read = match self.nand.read(at, ppn, bytes, data, &mut spare) {
            Ok(grant) => {
                if M::STORES && !is_intact(&spare, data, self.epoch_of(ppn)) {
                    self.stats.media_failures += 1;
                    Err(FtlError::Unreadable { lpn })
                } else {
                    Ok(grant)
                }
            }
            Err(MediaError::Unreadable) => {
                self.stats.media_failures += 1;
                Err(FtlError::Unreadable { lpn })
            }
            Err(error) => Err(error.into()),
        };
        if self.config.relocate {
            self.judge_read(ppn, &read);
        }
        read
    }

    pub(crate) fn epoch_of(&self, ppn: Ppn) -> u64 {
        let (superblock, _) = self.nand.geometry().split(ppn);
        self.superblocks[superblock.index()].epoch
    }

    #[inline(never)]
    fn read_staged(
        &self,
        at: At,
        frontier: usize,
        place: usize,
        data: &mut [u8],
    ) -> Result<Grant, FtlError> {
        let open = &self.frontiers[frontier];
        let staged = &open.staged[place];
        if staged.entry.kind == SlotKind::Lost {
            return Err(FtlError::Unreadable { lpn: staged.lpn });
        }
        let unit = index(self.nand.geometry().unit_bytes());
        match open.staged_data.get(place * unit..(place + 1) * unit) {
            Some(bytes) if !data.is_empty() => data.copy_from_slice(bytes),
            _ => zero(data),
        }
        Ok(Grant { done: at.ready, delay: Delay::None })
    }

    /// Makes every completed write and trim durable: staged pages are programmed, the medium is
    /// synchronised, and the mark says up to which epoch data is known to be whole.
    ///
    /// # Errors
    /// What the medium reported; nothing may be assumed durable then.
    pub fn flush(&mut self, at: At) -> Result<Nanos, FtlError> {
        let done = self.settle(at)?;
        if !self.moving.is_empty() {
            self.unmap_moved(at)?;
        }
        Ok(done)
    }

    /// A flush as far as the medium is concerned: what a write with FUA or a remap needs. The sources
    /// of moves on flush wait for a flush of the host.
    ///
    /// # Errors
    /// As [`Ftl::flush`].
    pub fn settle(&mut self, at: At) -> Result<Nanos, FtlError> {
        self.program_all_staged(at)?;
        if M::STORES {
            self.sync()?;
            let mark = SyncMark { epoch: self.oldest_unverified(), log: self.synced_log() };
            self.nand.media_mut().nvram_write(self.layout.nvram.mark, &mark.encode())?;
        }
        Ok(self.programmed_at.max(at.ready))
    }

    pub(crate) fn sync(&mut self) -> Result<(), FtlError> {
        self.nand.media_mut().sync()?;
        for pool in &mut self.pools {
            pool.unsynced = 0;
        }
        if let Some(remap) = &mut self.remap {
            remap.segments.synced();
        }
        Ok(())
    }

    /// How far log pages are known to have reached the medium whole, all of them.
    fn synced_log(&self) -> SyncedLog {
        let log = self.remap.as_ref().map(|remap| &remap.superblocks);
        let torn = log.iter().flat_map(|log| &log.torn).map(|(_, synced)| *synced);
        if let Some(before) = torn.min_by_key(|synced| synced.seq) {
            return before;
        }
        let seq = Seq::new(self.seq);
        let Some((superblock, program)) = log.and_then(|log| log.open) else {
            return SyncedLog { seq, ..SyncedLog::default() };
        };
        let open_epoch = low32(self.superblocks[superblock.index()].epoch);
        SyncedLog {
            seq,
            open_epoch,
            open_slots: program * self.nand.geometry().slots_per_program(),
        }
    }

    /// Lowest epoch of a superblock whose data may not have reached the medium whole.
    fn oldest_unverified(&self) -> u64 {
        let open = self.superblocks.iter().filter(|block| {
            block.unverified || matches!(block.state, State::Open | State::Checkpoint)
        });
        open.map(|block| block.epoch).min().unwrap_or(self.alloc)
    }

    /// Looks up the translation page of a unit. Returns when its map entry is there and work goes on. Differs from DFTL
    /// (Gupta 2009): pages that collection moves dirty a translation page only if it is cached;
    /// otherwise the new place is taken from the reverse map, as in recovery.
    #[inline]
    pub(crate) fn translate(&mut self, at: At, lpn: u32, dirty: bool) -> Result<Nanos, FtlError> {
        if self.map_cache.is_none() {
            return Ok(at.ready);
        }
        self.translate_cached(at, lpn, dirty)
    }

    #[inline(never)]
    fn translate_cached(&mut self, at: At, lpn: u32, dirty: bool) -> Result<Nanos, FtlError> {
        let page = lpn / self.layout.entries_per_unit;
        let Some(cache) = &mut self.map_cache else { return Ok(at.ready) };
        let Access { hit, evicted } = cache.access(page, dirty);
        if hit {
            self.stats.map_hits += 1;
            return Ok(at.ready);
        }
        self.stats.map_misses += 1;
        if let Some(page) = evicted {
            self.write_translation_page(at, page)?;
        }
        let Some(ppn) = self.map.stored(self.layout.data_units + page) else {
            return Ok(at.ready);
        };
        if self.find_staged(ppn).is_some() {
            return Ok(at.ready);
        }
        self.count_read(Cause::Metadata, self.nand.geometry().pages_per_unit());
        // The map in memory is the truth; the page on flash costs its time and can be lost.
        Ok(self.charge_read(at, ppn))
    }

    /// Reads a unit for its time alone: what it says is known. Returns when it is there, or would have been.
    pub(crate) fn charge_read(&mut self, at: At, ppn: Ppn) -> Nanos {
        let unit_bytes = self.nand.geometry().unit_bytes();
        let read = self.nand.read(at, ppn, unit_bytes, &mut [], &mut { ERASED_SPARE });
        self.stats.media_failures += u64::from(read.is_err());
        read.map_or(at.ready, |grant| grant.done)
    }

    /// Writes a dirty translation page back, to the collection frontier of the pool whose turn it is:
    /// it is colder than host data.
    fn write_translation_page(&mut self, at: At, page: u32) -> Result<(), FtlError> {
        let pool = self.turn;
        self.collect_until_above_stop(at.now, pool)?;
        let frontier = pool * self.layout.frontiers + self.layout.gc_frontier;
        let entries = self.layout.entries_per_unit;
        let data = self.map_page(page, entries);
        self.seq += 1;
        let pages = self.nand.geometry().pages_per_unit();
        let entry = Entry { kind: SlotKind::Data, cause: Cause::Metadata, pages };
        let lpn = self.layout.data_units + page;
        let at = At { work: Work::Background, ..at };
        self.append(
            at,
            pool,
            frontier,
            Unit { lpn, seq: self.seq, entry, data: &data, moves_from: None },
        )?;
        if self.hungry > 0 {
            self.collect_paced(at.now, pool)?;
        }
        Ok(())
    }

    /// The bytes of one page of the map; empty where no bytes are stored.
    pub(crate) fn map_page(&self, page: u32, entries: u32) -> Vec<u8> {
        if !M::STORES {
            return Vec::new();
        }
        let first = index(page) * index(entries);
        let end = self.map.l2p.len().min(first + index(entries));
        let slice = (first..end).map(|lpn| self.map.l2p.get(lpn));
        let mut bytes: Vec<u8> = slice.flat_map(u32::to_le_bytes).collect();
        bytes.resize(index(entries) * 4, 0xFF);
        bytes
    }
}

/// Whether the spare area says that the slot holds what was read, since its superblock was allocated in `epoch`: a host
/// whose file failed may show what was there before.
pub(crate) fn is_intact(spare: &onefold_nand::Spare, data: &[u8], epoch: u64) -> bool {
    match SpareState::decode(spare) {
        SpareState::Programmed(record) => {
            let readable = record.kind != SlotKind::Lost && record.epoch_low == low32(epoch);
            let carries = !data.is_empty() && record.data_crc != 0;
            readable && (!carries || record.data_crc == checksum(data))
        }
        SpareState::Erased | SpareState::Damaged => false,
    }
}
