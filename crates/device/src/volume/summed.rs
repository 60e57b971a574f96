//! What a volume lies on, under checksums of all that it holds.

use std::ops::Range;

use onefold_units::PAGE_BYTES;
use onefold_volume::IoFailed;

use super::VolumeBacking;
use crate::block::{BlockDevice, to_layer_above};
use crate::contents::Target;
use crate::sums::Store;

impl Store for VolumeBacking {
    fn blocks(&self) -> u64 {
        Self::blocks(self)
    }

    fn parts(&self) -> Vec<Range<u64>> {
        let blocks = |part: Range<u64>| part.start / PAGE_BYTES..part.end.div_ceil(PAGE_BYTES);
        Target::parts(self).into_iter().map(blocks).collect()
    }

    fn read(&self, at: u64, bytes: &mut [u8]) -> Result<(), IoFailed> {
        Self::read(self, at, bytes)
    }

    fn write(&self, at: u64, bytes: &[u8]) -> Result<(), IoFailed> {
        Self::write(self, at, bytes)
    }

    fn write_durable(&self, at: u64, bytes: &[u8]) -> Result<(), IoFailed> {
        match (self.as_file(), self.as_ssd()) {
            (Some(file), _) => file.write_durable(at * PAGE_BYTES, bytes),
            (_, Some(ssd)) => {
                ssd.write(at * PAGE_BYTES, bytes, true).map(drop).map_err(to_layer_above)
            }
            // Zones are no place for what is written anywhere.
            _ => Err(IoFailed::Error),
        }
    }

    fn flush(&self) -> Result<(), IoFailed> {
        Self::flush(self)
    }
}
