//! Looking at a zoned volume that is not open, and putting it right.

use onefold_journal::Setting;
use onefold_units::PAGE_BYTES;
use onefold_units::convert::u32_from;
use onefold_zoned::{Inspection, JournalMode, Options, Place, inspect};

use super::devices::Looked;
use super::{DmzDevices, DmzError, DmzOptions, DmzVolume};

/// A zoned volume that was looked at, and can be read.
pub struct DmzChecked {
    /// What was found.
    pub inspection: Inspection,
    looked: Looked,
}

impl DmzDevices {
    /// Looks at the volume on these devices without changing it.
    ///
    /// # Errors
    /// There is none, or a device cannot be read. Damage is no error.
    pub fn inspect(&self) -> Result<DmzChecked, DmzError> {
        let mut looked = self.look()?;
        let geometry = looked.geometry.clone();
        let inspection = inspect(&mut looked, &geometry)?;
        Ok(DmzChecked { inspection, looked })
    }

    /// Opens the volume, giving up what its zones lost, and closes it again: both metadata sets are whole and equal then, and the
    /// copy of the root record on the zoned device is there.
    ///
    /// # Errors
    /// It is damaged beyond that, or a device failed.
    pub fn repair(&self) -> Result<(), DmzError> {
        // Nothing is asked of a journal, so that what it has in zones of its own stays there.
        let engine =
            Options { journal: JournalMode::Set, give_up_lost: true, ..Options::default() };
        let options = DmzOptions { engine, ranges: Setting::Off, ..DmzOptions::default() };
        DmzVolume::open(self.clone(), options)?.device.close()
    }
}

impl DmzChecked {
    /// Reads a block of the volume; `None` if its device cannot.
    pub fn read(&mut self, lba: u64, block: &mut [u8; 4096]) -> Option<()> {
        match self.inspection.place(lba) {
            Place::Zeroes => {
                block.fill(0);
                Some(())
            }
            Place::At { device, block: at, .. } => {
                self.looked.devices.read(u32_from(device), at, block).ok()
            }
        }
    }

    /// Reads all data. Gives how many blocks were read, and the first of those that cannot be, with how many there are.
    pub fn read_all(&mut self, listed_max: usize) -> (u64, u64, Vec<u64>) {
        let (mut read, mut failed, mut listed) = (0, 0, Vec::new());
        let mut block = [0; 4096];
        debug_assert_eq!(PAGE_BYTES, 4096, "a page is a block");
        for lba in 0..self.inspection.blocks() {
            if self.inspection.place(lba) == Place::Zeroes {
                continue;
            }
            read += 1;
            if self.read(lba, &mut block).is_none() {
                failed += 1;
                if listed.len() < listed_max {
                    listed.push(lba);
                }
            }
        }
        (read, failed, listed)
    }
}
