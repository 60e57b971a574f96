//! What survives a power cut: staged blocks in NVRAM, and the medium synchronised.
//!
//! A cut of the device's own power leaves every completed operation of the medium. A medium in a file, after a crash of its
//! host, has what was synchronised, and of the rest anything; so nothing that was promised is overwritten before what
//! replaces it is synchronised.

use std::collections::BTreeSet;

use onefold_nand::{Delay, Media};
use onefold_units::{Nanos, Op, ZoneId};

use super::ZnsError;
use super::device::{Zns, block_bytes};
use crate::Completion;

impl<M: Media> Zns<M> {
    /// Makes every completed write durable.
    ///
    /// # Errors
    /// What the medium reported; nothing may be assumed durable then.
    pub fn flush(&mut self, now: Nanos) -> Result<Completion, ZnsError> {
        self.host.count(Op::Flush, 0);
        let ready = self.nand.timelines_mut().command(now, 0);
        if M::STORES {
            self.make_durable()?;
        }
        let volatile = self.cache.is_some() && self.config.cache_volatile;
        let at = if volatile { ready.max(self.programmed_at) } else { ready };
        Ok(Completion { at, delay: Delay::None })
    }

    fn make_durable(&mut self) -> Result<(), ZnsError> {
        let zones = std::mem::take(&mut self.unflushed);
        let result = self.flush_zones(&zones);
        if result.is_err() {
            self.unflushed = zones;
        }
        result
    }

    fn flush_zones(&mut self, zones: &BTreeSet<ZoneId>) -> Result<(), ZnsError> {
        for zone in zones {
            self.save_staged(*zone)?;
        }
        self.sync()?;
        for zone in zones {
            let on_flash = self.table.written(*zone) - self.data[zone.index()].staged;
            if self.data[zone.index()].whole != on_flash {
                self.data[zone.index()].whole = on_flash;
                self.record_zone(*zone)?;
            }
        }
        Ok(())
    }

    /// Puts the staged blocks of a zone into NVRAM.
    pub(crate) fn save_staged(&mut self, zone: ZoneId) -> Result<(), ZnsError> {
        let data = &self.data[zone.index()];
        let (saved, staged) = (data.saved, data.staged);
        if !M::STORES || saved == staged {
            return Ok(());
        }
        // In a file, what replaces the staged blocks before may not have survived yet: a flash page, or a reset.
        if self.left_staged.contains(&zone) {
            self.sync()?;
        }
        let first = self.table.written(zone) - staged;
        for place in saved..staged {
            let bytes = &self.data[zone.index()].bytes[block_bytes(place)];
            let mut stored = vec![0; 64];
            stored[..onefold_nand::SPARE_BYTES].copy_from_slice(&self.spare_of(
                zone,
                first + place,
                bytes,
            ));
            stored.extend_from_slice(bytes);
            let at = self.layout.staged_at(zone, place);
            self.nand.media_mut().nvram_write(at, &stored).map_err(ZnsError::Media)?;
        }
        self.data[zone.index()].saved = staged;
        Ok(())
    }

    pub(crate) fn sync(&mut self) -> Result<(), ZnsError> {
        self.nand.media_mut().sync().map_err(ZnsError::Media)?;
        self.given_back.clear();
        self.left_staged.clear();
        Ok(())
    }
}
