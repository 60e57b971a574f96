//! A namespace after a power cut.
//!
//! NVRAM says which set each zone has (invariant 4 of the module). How far a zone was written is found there:
//!
//! 1. Pages count up to the first that is not whole. Up to the mark of the last FLUSH their spare areas are enough, and what
//!    is damaged there is an error of its reads; behind it checksums are verified, because a program may have been cut.
//! 2. Behind the last whole page count the blocks staged in NVRAM, or those that a cut program left whole, if they are more.
//! 3. A page that was cut cannot be programmed again, so a zone that goes on moves to another set first.
//! 4. Open zones are closed, or empty if nothing of them is left.

use onefold_format::{
    BlockSetRecord, BlockSetState, NvramRecord, SlotKind, SpareRecord, SpareState,
    ZONE_RECORD_BYTES, ZoneCondition, ZoneRecord, checksum,
};
use onefold_ftl::RecoveryReport;
use onefold_nand::{ERASED_SPARE, Media, MediaError, SPARE_BYTES, Spare};
use onefold_units::convert::{index, u32_from};
use onefold_units::{Nanos, ZoneId};

use super::config::BLOCK;
use super::device::{Zns, host_work};
use super::{ZnsConfig, ZnsConfigError, ZnsError, ZnsLayout, ZnsMedia, ZoneState};
use crate::{BuildError, Ssd};

/// What recovery found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZnsRecovery {
    /// What was found behind conventional zones.
    pub conventional: Option<RecoveryReport>,
    /// Zones that were open or closed, and are closed now.
    pub closed: u32,
    /// Zones whose last program was cut and that moved to other blocks.
    pub moved: u32,
    /// Zones that can only be read now, because there were no blocks to move them to.
    pub read_only: u32,
    /// Sets of blocks whose erase was cut or had not begun.
    pub erased: u32,
}

/// Why a namespace cannot be recovered.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ZnsRecoverError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ZnsConfigError),
    /// The medium stores no bytes.
    #[error("a medium that stores no bytes cannot be recovered")]
    NoBytes,
    /// A record in NVRAM is not one of this device.
    #[error(
        "the record of {what} {number} in NVRAM is damaged or belongs to another device: open it with the configuration it was \
         made with"
    )]
    Record {
        /// "zone" or "set".
        what: &'static str,
        /// Which one.
        number: u32,
    },
    /// Two zones cannot have one set.
    #[error("NVRAM gives set {set} to two zones, or to a zone that does not exist")]
    SharedSet {
        /// The set.
        set: u32,
    },
    /// The conventional zones cannot be recovered.
    #[error("the conventional zones: {0}")]
    Conventional(BuildError),
    /// The medium failed.
    #[error("the medium failed: {0}")]
    Zone(#[from] ZnsError),
}

impl From<MediaError> for ZnsRecoverError {
    fn from(error: MediaError) -> Self {
        Self::Zone(ZnsError::Media(error))
    }
}

/// How far a zone was written.
#[derive(Default)]
struct Extent {
    /// Flash pages that were programmed.
    pages: u32,
    /// Blocks, those in NVRAM included.
    written: u32,
    /// What is not on flash.
    staged: Vec<u8>,
    /// Something behind the pages is programmed.
    is_cut: bool,
}

impl<M: Media> Zns<M> {
    /// The namespace on a medium that was used before. It takes no virtual time.
    ///
    /// # Errors
    /// The configuration does not fit the medium, or the medium failed.
    pub fn recover(
        config: ZnsConfig,
        media: ZnsMedia<M>,
    ) -> Result<(Self, ZnsRecovery), ZnsRecoverError> {
        if !M::STORES {
            return Err(ZnsRecoverError::NoBytes);
        }
        let ZnsMedia { sequential, conventional } = media;
        ZnsLayout::new(&config)?;
        let recover = |device| {
            let Some(media) = conventional else { panic!("conventional zones without a medium") };
            Ssd::recover(device, media).map_err(ZnsRecoverError::Conventional)
        };
        let recovered = config.conventional.map(recover).transpose()?;
        let (device, mapped) = recovered.map(|(device, report)| (Box::new(device), report)).unzip();
        let mut zns = Self::assemble(&config, sequential, device)?;
        zns.nand.set_timed(false);
        let mut report = ZnsRecovery { conventional: mapped, ..ZnsRecovery::default() };
        zns.load_sets()?;
        for zone in zns.table.ids() {
            zns.load_zone(zone)?;
        }
        zns.erase_unused(&mut report)?;
        for zone in zns.table.ids() {
            zns.recover_zone(zone, &mut report)?;
        }
        zns.nand.set_timed(true);
        Ok((zns, report))
    }

    fn load_sets(&mut self) -> Result<(), ZnsRecoverError> {
        for set in self.sets.ids() {
            let mut bytes = [0; ZONE_RECORD_BYTES];
            self.nand.media_mut().nvram_read(ZnsLayout::set_record_at(set), &mut bytes)?;
            match BlockSetRecord::decode(&bytes, set, self.layout.id()) {
                // What is bad from the factory needs no record.
                NvramRecord::Blank => {}
                NvramRecord::Is(record) => self.sets.restore(record),
                NvramRecord::Damaged => {
                    return Err(ZnsRecoverError::Record { what: "set", number: set });
                }
            }
        }
        Ok(())
    }

    fn load_zone(&mut self, zone: ZoneId) -> Result<(), ZnsRecoverError> {
        let mut bytes = [0; ZONE_RECORD_BYTES];
        let at = self.layout.zone_record_at(zone);
        self.nand.media_mut().nvram_read(at, &mut bytes)?;
        let record = match ZoneRecord::decode(&bytes, zone, self.layout.id()) {
            NvramRecord::Blank => return Ok(()),
            NvramRecord::Is(record) => record,
            NvramRecord::Damaged => {
                return Err(ZnsRecoverError::Record { what: "zone", number: zone.raw() });
            }
        };
        if let Some(set) = record.set {
            let shared = self.data.iter().any(|data| data.set == Some(set));
            if shared || set >= self.layout.sets() {
                return Err(ZnsRecoverError::SharedSet { set });
            }
        }
        let data = &mut self.data[zone.index()];
        data.set = record.set;
        data.resets = record.resets;
        data.condition = record.condition;
        data.whole = record.whole.min(self.config.capacity_blocks);
        Ok(())
    }

    /// Erases sets that were given back, or never got to their zone.
    fn erase_unused(&mut self, report: &mut ZnsRecovery) -> Result<(), ZnsRecoverError> {
        for set in self.sets.ids() {
            let held = self.data.iter().any(|data| data.set == Some(set));
            let state = self.sets.state(set);
            // Of a medium in a file, what is programmed may have survived and the record that the set is used may not.
            let is_used = state == BlockSetState::Used
                || state == BlockSetState::Erased
                    && !held
                    && self.spares_of(set)?.is_programmed_from(0);
            if !held && is_used {
                self.erase_set(host_work(Nanos::ZERO, Nanos::ZERO), set)?;
                report.erased += 1;
            } else if held && state == BlockSetState::Erased {
                // The record of the set did not survive, that of the zone did.
                self.put_set(set, BlockSetState::Used, false)?;
            }
        }
        Ok(())
    }

    fn recover_zone(
        &mut self,
        zone: ZoneId,
        report: &mut ZnsRecovery,
    ) -> Result<(), ZnsRecoverError> {
        let condition = self.data[zone.index()].condition;
        let Some(set) = self.data[zone.index()].set else {
            let state = match condition {
                ZoneCondition::Writable if self.table.is_conventional(zone) => {
                    ZoneState::NotWritePointer
                }
                ZoneCondition::Writable => ZoneState::Empty,
                other => state_of(other),
            };
            self.table.restore(zone, state, 0);
            return Ok(());
        };
        let extent = self.find_extent(zone, set)?;
        let written = extent.written;
        for (superblock, programs) in self.layout.programs(set, extent.pages) {
            self.nand.resume(superblock, programs);
        }
        let is_writable = condition == ZoneCondition::Writable;
        if is_writable && written == 0 {
            return self.give_back(zone, set);
        }
        let data = &mut self.data[zone.index()];
        (data.staged, data.bytes) = (blocks_of(&extent.staged), extent.staged);
        let state = match condition {
            ZoneCondition::Writable if written == self.config.capacity_blocks => ZoneState::Full,
            ZoneCondition::Writable => ZoneState::Closed,
            other => state_of(other),
        };
        self.table.restore(zone, state, written);
        self.save_staged(zone)?;
        if !is_writable {
            return Ok(());
        }
        self.unflushed.insert(zone);
        report.closed += u32::from(state == ZoneState::Closed);
        if extent.is_cut && state == ZoneState::Closed {
            self.move_cut(zone, set, extent.pages, report)?;
        }
        Ok(())
    }

    /// Moves a zone whose last program was cut.
    fn move_cut(
        &mut self,
        zone: ZoneId,
        set: u32,
        pages: u32,
        report: &mut ZnsRecovery,
    ) -> Result<(), ZnsRecoverError> {
        let at = host_work(Nanos::ZERO, Nanos::ZERO);
        if self.move_zone(at, zone, pages)? {
            self.erase_set(at, set)?;
            report.moved += 1;
        } else {
            self.give_up(zone, ZoneCondition::ReadOnly)?;
            report.closed -= 1;
            report.read_only += 1;
        }
        Ok(())
    }

    /// Nothing of a zone was written.
    fn give_back(&mut self, zone: ZoneId, set: u32) -> Result<(), ZnsRecoverError> {
        self.data[zone.index()].set = None;
        self.data[zone.index()].whole = 0;
        self.record_zone(zone)?;
        self.erase_set(host_work(Nanos::ZERO, Nanos::ZERO), set)?;
        Ok(())
    }

    fn find_extent(&mut self, zone: ZoneId, set: u32) -> Result<Extent, ZnsRecoverError> {
        let page_blocks = self.layout.page();
        let whole = self.data[zone.index()].whole;
        let spares = self.spares_of(set)?;
        let mut extent = Extent::default();
        let mut found = Found::default();
        while extent.pages * page_blocks < self.config.capacity_blocks {
            let first = extent.pages * page_blocks;
            let page = &spares.blocks[index(first)..index(first + page_blocks)];
            let trusted = first + page_blocks <= whole;
            found = self.look_at_page(zone, set, first, page, trusted)?;
            if trusted && found.good < page_blocks {
                // Something is gone that was durable: what is left of the page has to prove itself.
                found = self.look_at_page(zone, set, first, page, false)?;
            }
            if found.good < page_blocks {
                break;
            }
            extent.pages += 1;
        }
        let first = extent.pages * page_blocks;
        if first == self.config.capacity_blocks {
            return Ok(Extent { written: first, ..extent });
        }
        if self.data[zone.index()].condition == ZoneCondition::Finished && found.is_padded {
            return Ok(Extent { pages: extent.pages + 1, written: first + found.data, ..extent });
        }
        extent.staged = self.load_staged(zone, first)?;
        if blocks_of(&extent.staged) < found.data {
            extent.staged = self.page[..index(found.data * BLOCK)].to_vec();
        }
        extent.written = first + blocks_of(&extent.staged);
        extent.is_cut = spares.is_programmed_from(first);
        Ok(extent)
    }

    /// Judges a flash page by its spare areas and, unless it is `trusted`, by its data, which `self.page` holds then.
    fn look_at_page(
        &mut self,
        zone: ZoneId,
        set: u32,
        first: u32,
        spares: &[Spare],
        trusted: bool,
    ) -> Result<Found, ZnsRecoverError> {
        let mut bytes = std::mem::take(&mut self.page);
        let loaded = if trusted {
            Ok(())
        } else {
            let (slot, count) = (self.layout.slot(set, first), self.layout.page());
            self.nand.load_slots(slot, count, &mut bytes, &mut Vec::new())
        };
        let mut found = Found::default();
        for ((block, spare), bytes) in (first..).zip(spares).zip(bytes.chunks_exact(index(BLOCK))) {
            let record = self.record_of(zone, block, spare);
            let good = match record {
                Some(record) => {
                    trusted || record.kind != SlotKind::Data || checksum(bytes) == record.data_crc
                }
                None => trusted && *spare != ERASED_SPARE,
            };
            if !good {
                break;
            }
            found.good += 1;
            let is_filler = record.is_some_and(|record| record.kind == SlotKind::Filler);
            found.is_padded |= is_filler;
            found.data += u32::from(!is_filler);
        }
        self.page = bytes;
        loaded?;
        if found.is_padded {
            found.is_padded = found.good == self.layout.page();
            found.good = found.data;
        }
        Ok(found)
    }

    /// What a spare area says, if it belongs to a block of this life of a zone.
    fn record_of(&self, zone: ZoneId, block: u32, spare: &Spare) -> Option<SpareRecord> {
        match SpareState::decode(spare) {
            SpareState::Programmed(record)
                if record.lpn.raw() == block
                    && record.seq.raw() == u64::from(zone.raw())
                    && record.epoch_low == self.data[zone.index()].resets =>
            {
                Some(record)
            }
            _ => None,
        }
    }

    /// The staged blocks of a zone from block `first` on.
    fn load_staged(&mut self, zone: ZoneId, first: u32) -> Result<Vec<u8>, ZnsRecoverError> {
        let mut all = Vec::new();
        for place in 0..self.layout.page() {
            let mut stored = vec![0; 64 + index(BLOCK)];
            let at = self.layout.staged_at(zone, place);
            self.nand.media_mut().nvram_read(at, &mut stored)?;
            let (head, bytes) = stored.split_at(64);
            let mut spare = ERASED_SPARE;
            spare.copy_from_slice(&head[..SPARE_BYTES]);
            let record = self.record_of(zone, first + place, &spare);
            if record.is_none_or(|record| record.data_crc != checksum(bytes)) {
                break;
            }
            all.extend_from_slice(bytes);
        }
        Ok(all)
    }
}

fn blocks_of(bytes: &[u8]) -> u32 {
    u32_from(bytes.len()) / BLOCK
}

/// What lies in a flash page.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    /// Slots from its start that belong there, one after the other; of a padded page only those with data.
    good: u32,
    /// Those of them with data.
    data: u32,
    /// It was filled up, and all of it is good.
    is_padded: bool,
}

const fn state_of(condition: ZoneCondition) -> ZoneState {
    match condition {
        ZoneCondition::Writable => ZoneState::Closed,
        ZoneCondition::Finished => ZoneState::Full,
        ZoneCondition::ReadOnly => ZoneState::ReadOnly,
        ZoneCondition::Offline => ZoneState::Offline,
    }
}
