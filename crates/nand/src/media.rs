//! Where the bytes of the flash array and of the controller's NVRAM live.
//!
//! The core decides what is programmed, read and erased; a `Media` only keeps bytes. Simulations
//! run on [`NullMedia`] and keep none: the same code path, minus the bytes.

use std::sync::Arc;

use onefold_units::convert::{index, index64, u64_from};
use onefold_units::{Ppn, SuperblockId};

use crate::Geometry;

/// Bytes of the spare area of one slot.
pub const SPARE_BYTES: usize = 24;

/// Bytes of the header of a superblock, kept in the spare area of its first page.
pub const HEAD_BYTES: usize = 64;

/// The spare area of one slot. All ones where nothing was programmed.
pub type Spare = [u8; SPARE_BYTES];

/// The header of a superblock. All ones where nothing was programmed.
pub type Head = [u8; HEAD_BYTES];

/// A spare area after an erase.
pub const ERASED_SPARE: Spare = [0xFF; SPARE_BYTES];

/// A header after an erase.
pub const ERASED_HEAD: Head = [0xFF; HEAD_BYTES];

/// Why a medium did not do what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Default)]
#[non_exhaustive]
pub enum MediaError {
    /// The program failed; the slots are unusable until the next erase.
    #[error("program failed")]
    ProgramFailed,
    /// The erase failed; the superblock is worn out.
    #[error("erase failed")]
    EraseFailed,
    /// The data cannot be read back.
    #[error("the data is uncorrectable")]
    #[default]
    Unreadable,
    /// A whole die has failed. The drive has no parity over its dies, so it programs and erases nothing any more.
    #[error("die {die} failed, and the drive can only be read")]
    DieFailed {
        /// Which.
        die: u32,
    },
    /// Power is gone; nothing works until the device is opened again.
    #[error("the power is off")]
    PowerLost,
    /// The backing store refused the access. The data may still be there: the same access may succeed later.
    #[error("the backing store refused the access: {}", refusal(*errno))]
    Backing {
        /// Error number of the operating system; 0 if unknown.
        errno: i32,
    },
}

onefold_units::keep_enum!(MediaError { ProgramFailed, EraseFailed, Unreadable, DieFailed { die }, PowerLost, Backing { errno } });

/// What a backing store says with an error number of Linux.
fn refusal(errno: i32) -> String {
    match errno {
        0 => "it did not say why".into(),
        5 => "input/output error".into(),
        9 => "it was opened for reading only".into(),
        28 => "no space is left".into(),
        30 => "it can only be read".into(),
        122 => "the quota is used up".into(),
        other => format!("error {other} of the operating system"),
    }
}

/// Keeps the bytes of a flash array and of a small NVRAM.
///
/// The caller keeps flash rules: superblocks are erased before they are programmed, and programmed
/// in ascending order. NVRAM writes of up to 64 aligned bytes are atomic.
///
/// Durability: what [`Media::sync`] returned from survives a power cut of the host, too. Everything
/// else survives a power cut of the modelled device, unless it was the operation that was cut.
pub trait Media {
    /// Whether bytes are kept. Without, reads return zeroes and nothing can be recovered.
    const STORES: bool;

    /// Programs consecutive slots from `first`, one spare area each. `data` holds the units one
    /// after the other; empty where the caller carries no data.
    fn program(&mut self, first: Ppn, spares: &[Spare], data: &[u8]) -> Result<(), MediaError>;

    /// Reads one unit into `data` (all of it, or nothing where `data` is empty) and returns the
    /// spare area.
    fn read(&mut self, ppn: Ppn, data: &mut [u8]) -> Result<Spare, MediaError>;

    /// Reads the spare areas of all slots of a superblock.
    fn read_spares(&mut self, superblock: SuperblockId) -> Result<Vec<Spare>, MediaError>;

    /// Programs the header of an erased superblock.
    fn program_head(&mut self, superblock: SuperblockId, head: &Head) -> Result<(), MediaError>;

    /// Reads the header of a superblock.
    fn read_head(&mut self, superblock: SuperblockId) -> Result<Head, MediaError>;

    /// Erases a superblock: header and spare areas read as all ones.
    fn erase(&mut self, superblock: SuperblockId) -> Result<(), MediaError>;

    /// Stores bytes in NVRAM.
    fn nvram_write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), MediaError>;

    /// Loads bytes from NVRAM.
    fn nvram_read(&mut self, offset: u64, bytes: &mut [u8]) -> Result<(), MediaError>;

    /// Makes everything durable against a power cut of the host.
    fn sync(&mut self) -> Result<(), MediaError>;

    /// Whether the backing store refuses what was programmed, so that it waits in memory. Work that nobody waits for had
    /// better wait as well.
    fn is_held_up(&self) -> bool {
        false
    }
}

/// Fills with zeroes. The test is for speed: filling the empty slice of a simulation without bytes
/// costs a hundred nanoseconds on processors with masked stores, which fault on its address.
#[inline]
pub fn zero(data: &mut [u8]) {
    if !data.is_empty() {
        data.fill(0);
    }
}

/// Keeps nothing: for simulations.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullMedia;

impl Media for NullMedia {
    const STORES: bool = false;

    #[inline]
    fn program(&mut self, _: Ppn, _: &[Spare], _: &[u8]) -> Result<(), MediaError> {
        Ok(())
    }

    #[inline]
    fn read(&mut self, _: Ppn, data: &mut [u8]) -> Result<Spare, MediaError> {
        zero(data);
        Ok(ERASED_SPARE)
    }

    fn read_spares(&mut self, _: SuperblockId) -> Result<Vec<Spare>, MediaError> {
        Ok(Vec::new())
    }

    fn program_head(&mut self, _: SuperblockId, _: &Head) -> Result<(), MediaError> {
        Ok(())
    }

    fn read_head(&mut self, _: SuperblockId) -> Result<Head, MediaError> {
        Ok(ERASED_HEAD)
    }

    fn erase(&mut self, _: SuperblockId) -> Result<(), MediaError> {
        Ok(())
    }

    fn nvram_write(&mut self, _: u64, _: &[u8]) -> Result<(), MediaError> {
        Ok(())
    }

    fn nvram_read(&mut self, _: u64, bytes: &mut [u8]) -> Result<(), MediaError> {
        bytes.fill(0);
        Ok(())
    }

    fn sync(&mut self) -> Result<(), MediaError> {
        Ok(())
    }
}

/// Keeps everything in memory: for tests and short-lived devices.
#[derive(Clone, Debug)]
pub struct MemoryMedia {
    geometry: Geometry,
    /// Shared between clones: a test that tries every cut of a state clones it thousands of times.
    data: Vec<Option<Arc<[u8]>>>,
    spares: Vec<Spare>,
    heads: Vec<Head>,
    nvram: Vec<u8>,
}

impl MemoryMedia {
    /// An erased array with `nvram_bytes` of zeroed NVRAM.
    #[must_use]
    pub fn new(geometry: &Geometry, nvram_bytes: u64) -> Self {
        let slots = index64(geometry.total_slots());
        Self {
            geometry: *geometry,
            data: vec![None; slots],
            spares: vec![ERASED_SPARE; slots],
            heads: vec![ERASED_HEAD; index(geometry.superblocks())],
            nvram: vec![0; index64(nvram_bytes)],
        }
    }

    /// Changes the stored data of a slot, to model damage. Returns false where there is none.
    pub fn corrupt(&mut self, ppn: Ppn, byte: usize) -> bool {
        let Some(data) = self.data.get_mut(ppn.index()).and_then(Option::as_mut) else {
            return false;
        };
        let data = Arc::make_mut(data);
        let at = byte % data.len().max(1);
        data.get_mut(at).is_some_and(|byte| {
            *byte ^= 0x10;
            true
        })
    }
}

impl Media for MemoryMedia {
    const STORES: bool = true;

    fn program(&mut self, first: Ppn, spares: &[Spare], data: &[u8]) -> Result<(), MediaError> {
        let unit = index(self.geometry.unit_bytes());
        let mut units = data.chunks_exact(unit);
        for (at, spare) in (first.index()..).zip(spares) {
            assert_eq!(self.spares[at], ERASED_SPARE, "slot {at} is programmed twice");
            self.spares[at] = *spare;
            self.data[at] = units.next().map(Arc::from);
        }
        Ok(())
    }

    fn read(&mut self, ppn: Ppn, data: &mut [u8]) -> Result<Spare, MediaError> {
        match &self.data[ppn.index()] {
            Some(stored) if !data.is_empty() => data.copy_from_slice(stored),
            _ => data.fill(0),
        }
        Ok(self.spares[ppn.index()])
    }

    fn read_spares(&mut self, superblock: SuperblockId) -> Result<Vec<Spare>, MediaError> {
        let first = self.geometry.ppn(superblock, 0).index();
        Ok(self.spares[first..first + index(self.geometry.slots())].to_vec())
    }

    fn program_head(&mut self, superblock: SuperblockId, head: &Head) -> Result<(), MediaError> {
        self.heads[superblock.index()] = *head;
        Ok(())
    }

    fn read_head(&mut self, superblock: SuperblockId) -> Result<Head, MediaError> {
        Ok(self.heads[superblock.index()])
    }

    fn erase(&mut self, superblock: SuperblockId) -> Result<(), MediaError> {
        let first = self.geometry.ppn(superblock, 0).index();
        let end = first + index(self.geometry.slots());
        self.spares[first..end].fill(ERASED_SPARE);
        self.data[first..end].fill(None);
        self.heads[superblock.index()] = ERASED_HEAD;
        Ok(())
    }

    fn nvram_write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), MediaError> {
        let range = self.nvram_range(offset, bytes.len())?;
        self.nvram[range].copy_from_slice(bytes);
        Ok(())
    }

    fn nvram_read(&mut self, offset: u64, bytes: &mut [u8]) -> Result<(), MediaError> {
        let range = self.nvram_range(offset, bytes.len())?;
        bytes.copy_from_slice(&self.nvram[range]);
        Ok(())
    }

    fn sync(&mut self) -> Result<(), MediaError> {
        Ok(())
    }
}

impl MemoryMedia {
    fn nvram_range(&self, offset: u64, len: usize) -> Result<std::ops::Range<usize>, MediaError> {
        let end = offset + u64_from(len);
        if end > u64_from(self.nvram.len()) {
            return Err(MediaError::Unreadable);
        }
        Ok(index64(offset)..index64(end))
    }
}
