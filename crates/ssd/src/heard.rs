//! Reads that deduplication hears of (`dedup.scope`): what the host asks for, and what it got.

use onefold_nand::{Grant, Media};
use onefold_units::Lpn;
use onefold_units::convert::narrow;

use crate::Ssd;

impl<M: Media> Ssd<M> {
    /// The host asks for units, wherever they are.
    #[inline]
    pub(crate) fn note_asked(&mut self, (first, count): (u64, u64)) {
        if self.dedup.as_ref().is_some_and(|dedup| dedup.hears_reads) {
            self.ftl.note_host_read(Lpn::new(narrow(first)), narrow(count));
        }
    }

    /// The host read a whole unit from flash: `data`, or nothing where no bytes are stored. Returns
    /// when it can be answered.
    #[inline]
    pub(crate) fn note_read(&mut self, lpn: Lpn, read: Grant, data: &[u8]) -> Grant {
        let Some(dedup) = &mut self.dedup else { return read };
        if !dedup.hears_reads || !self.ftl.is_stored(lpn) {
            return read;
        }
        let done = dedup.hash_read_at(read.done, self.unit / 4096);
        if let Some(print) = dedup.fingerprint_of_read(lpn, data) {
            self.ftl.note_content(lpn, print);
        }
        Grant { done, ..read }
    }
}
