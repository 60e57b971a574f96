//! What lies on a backing before a volume does.

use std::iter::once;
use std::ops::Range;

use onefold_units::PAGE_BYTES;
use onefold_volume::IoFailed;

use super::backing::VolumeBacking;
use crate::contents::{self, Contents, Target};

impl Target for VolumeBacking {
    fn parts(&self) -> Vec<Range<u64>> {
        // Zones that are written in their order say themselves whether they hold something.
        if let Ok(Some(report)) = self.zones() {
            let conventional = report.zones.iter().take_while(|zone| zone.conventional).count();
            let blocks =
                u64::from(report.zone_blocks) * onefold_units::convert::u64_from(conventional);
            // Without conventional zones there is nothing to be read.
            return once(0..blocks * PAGE_BYTES).filter(|part| !part.is_empty()).collect();
        }
        match self.as_file() {
            Some(file) if file.is_regular() => file.data(),
            _ => once(0..self.bytes()).collect(),
        }
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), IoFailed> {
        match self.as_file() {
            Some(file) => file.read(offset, bytes),
            None => Self::read(self, offset / PAGE_BYTES, bytes),
        }
    }
}

impl VolumeBacking {
    /// What it holds, `None` if nothing is found; all of it is read, or samples of what is large. `written` is what is going to be
    /// overwritten, in bytes.
    #[must_use]
    pub fn contents(&self, written: &[Range<u64>]) -> Option<Contents> {
        let in_use = |zones: onefold_volume::ZoneReport| zones.in_use() > 0;
        self.looks().map(Contents::Known).or_else(|| contents::contents(self, written)).or_else(
            || self.zones().ok()?.is_some_and(in_use).then_some(Contents::Known("data in zones")),
        )
    }

    /// What it seems to hold by its beginning alone: a file system, a partition table, a volume or the like.
    #[must_use]
    pub fn looks(&self) -> Option<&'static str> {
        let volume = onefold_volume::read_label(&mut self.clone(), self.blocks()).is_ok();
        volume.then_some("a volume").or_else(|| contents::looks(self))
    }
}
