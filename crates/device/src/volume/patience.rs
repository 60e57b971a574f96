//! A backing while a volume is made, opened or checked: what failed is sent again, as a volume at work does.

use std::thread;
use std::time::Duration;

use onefold_units::ZoneId;
use onefold_volume::{Backing, Buffer, IoFailed, Piece, Relocation, ZoneReport};

use super::backing::VolumeBacking;

/// Pauses after which an opening sends a request again that failed, as a volume does at work.
const PAUSES: [Duration; 4] = [
    Duration::from_millis(1),
    Duration::from_millis(4),
    Duration::from_millis(16),
    Duration::from_millis(64),
];

impl VolumeBacking {
    /// Does again what failed and comes to the same when it is done twice.
    fn patiently<T>(
        &mut self,
        mut what: impl FnMut(&Self) -> Result<T, IoFailed>,
    ) -> Result<T, IoFailed> {
        for pause in PAUSES {
            match what(self) {
                Err(IoFailed::Error) if pause <= self.patience => {
                    self.patience -= pause;
                    thread::sleep(pause);
                }
                result => return result,
            }
        }
        what(self)
    }
}

impl Backing for VolumeBacking {
    fn read(&mut self, at: u64, bytes: &mut [u8]) -> Result<(), IoFailed> {
        self.patiently(|backing| Self::read(backing, at, bytes))
    }

    fn read_all(&mut self, pieces: &[Piece]) -> Vec<Result<Buffer, IoFailed>> {
        let mut all = Self::read_all(self, pieces);
        for (read, piece) in all.iter_mut().zip(pieces).filter(|(read, _)| read.is_err()) {
            let again = |backing: &Self| {
                Self::read_all(backing, std::slice::from_ref(piece)).swap_remove(0)
            };
            *read = self.patiently(again);
        }
        all
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), IoFailed> {
        self.patiently(|backing| Self::write(backing, at, bytes))
    }

    /// Once: after one that failed nobody knows what the caches below still have.
    fn flush(&mut self) -> Result<(), IoFailed> {
        Self::flush(self)
    }

    fn trim(&mut self, at: u64, blocks: u64) -> Result<(), IoFailed> {
        self.patiently(|backing| Self::trim(backing, at, blocks))
    }

    fn remap(&mut self, list: &[Relocation]) -> Result<(), IoFailed> {
        Self::remap(self, list)
    }

    fn zones(&mut self) -> Result<Option<ZoneReport>, IoFailed> {
        self.patiently(Self::zones)
    }

    fn reset(&mut self, zone: ZoneId) -> Result<(), IoFailed> {
        self.patiently(|backing| Self::reset(backing, zone))
    }

    fn finish(&mut self, zone: ZoneId) -> Result<(), IoFailed> {
        self.patiently(|backing| Self::finish(backing, zone))
    }
}
