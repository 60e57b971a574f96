//! What survives a power cut: staged blocks in NVRAM, and the medium synchronised.
//!
//! A cut of the device's own power leaves every completed operation of the medium. A medium in a file, after a crash of its
//! host, has what was synchronised, and of the rest anything; so nothing that was promised is overwritten before what
//! replaces it is synchronised.

use onefold_nand::{Delay, Media};
use onefold_units::{Nanos, Op, ZoneId};

use super::ZnsError;
use super::device::{Zns, block_bytes};
use crate::Completion;

/// A FLUSH whose synchronisation of the medium is under way.
#[derive(Debug)]
pub struct Flushing {
    /// Zones that it covers: in which life, and how many blocks are on flash.
    ends: Vec<(ZoneId, u32, u32)>,
    /// When conventional zones are durable.
    mapped: Nanos,
}

impl<M: Media> Zns<M> {
    /// Makes every completed write durable.
    ///
    /// # Errors
    /// What the medium reported; nothing may be assumed durable then.
    pub fn flush(&mut self, now: Nanos) -> Result<Completion, ZnsError> {
        let ready = self.nand.timelines_mut().command(now, 0);
        let flushing = self.begin_flush(now)?;
        if M::STORES {
            let synced = self.sync();
            if synced.is_err() {
                self.abandon_flush(&flushing);
            }
            synced?;
            self.end_flush(&flushing)?;
        }
        let volatile = self.cache.is_some() && self.config.cache_volatile;
        let at = if volatile { ready.max(self.programmed_at) } else { ready };
        Ok(Completion { at: at.max(flushing.mapped), delay: Delay::None })
    }

    /// First half of a FLUSH, for who synchronises the medium by himself, and lets other commands run meanwhile: he does
    /// that now, and then calls [`Zns::end_flush`]. There is one at a time. Conventional zones are durable when it returns, unless
    /// their medium leaves that to its owner.
    ///
    /// # Errors
    /// As [`Zns::flush`].
    pub fn begin_flush(&mut self, now: Nanos) -> Result<Flushing, ZnsError> {
        self.host.count(Op::Flush, 0);
        let mapped = self.flush_mapped(now)?;
        let mut flushing = Flushing { ends: Vec::new(), mapped };
        if !M::STORES {
            return Ok(flushing);
        }
        let zones = std::mem::take(&mut self.unflushed);
        for zone in &zones {
            if let Err(error) = self.save_staged(*zone) {
                self.unflushed = zones;
                return Err(error);
            }
        }
        for zone in zones {
            let data = &self.data[zone.index()];
            flushing.ends.push((zone, data.resets, self.table.written(zone) - data.staged));
        }
        self.given_back.begin();
        self.left_staged.begin();
        Ok(flushing)
    }

    /// Instead of the second half: the medium could not be synchronised. The next FLUSH covers the same again.
    pub fn abandon_flush(&mut self, flushing: &Flushing) {
        self.unflushed.extend(flushing.ends.iter().map(|(zone, ..)| *zone));
    }

    /// Second half: the medium was synchronised.
    ///
    /// # Errors
    /// As [`Zns::flush`].
    pub fn end_flush(&mut self, flushing: &Flushing) -> Result<(), ZnsError> {
        self.given_back.end();
        self.left_staged.end();
        for (zone, resets, on_flash) in &flushing.ends {
            let data = &mut self.data[zone.index()];
            if data.resets == *resets && data.whole != *on_flash {
                data.whole = *on_flash;
                self.record_zone(*zone)?;
            }
        }
        Ok(())
    }

    /// Makes everything durable and leaves recovery little to do.
    ///
    /// # Errors
    /// As [`Zns::flush`].
    pub fn shut_down(&mut self, now: Nanos) -> Result<(), ZnsError> {
        self.checkpoint_mapped(now)?;
        self.flush(now).map(drop)
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
        self.given_back.begin();
        self.left_staged.begin();
        self.nand.media_mut().sync().map_err(ZnsError::Media)?;
        self.given_back.end();
        self.left_staged.end();
        Ok(())
    }
}
