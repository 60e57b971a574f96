//! What the buffer of a device has learnt, behind the lifetime counters of its image.
//!
//! One record, written in place at an orderly end and with each checkpoint of the map: a torn one counts as none. It
//! guides the buffer and describes no data. So nothing orders it against other writes, an old one is as good as its age,
//! and a file without it is whole.

use std::io;

use onefold_buffer::Learnt;
use onefold_format::BufferTable;
use onefold_nand::Media;
use onefold_ssd::Ssd;

use super::Image;

impl Image {
    /// Gives the buffer of a device what is kept for it. A file that ends before that, or cannot be read there, keeps nothing.
    pub(crate) fn recall<M: Media>(&self, ssd: &mut Ssd<M>) {
        let Some(table) = ssd.learnt().map(|learnt| learnt.bits.len()) else { return };
        let mut bytes = vec![0; BufferTable::bytes(table)];
        if self.backing.read_at(self.layout.bytes, &mut bytes).is_err() {
            return;
        }
        if let Some(kept) = BufferTable::decode(&bytes, &self.label.uuid) {
            ssd.learn(Learnt { chunk: kept.chunk, bits: &kept.bits });
        }
    }

    /// Keeps what the buffer of a device has learnt; what a policy that learns nothing finds there stays.
    ///
    /// # Errors
    /// The file does not take it.
    pub(crate) fn keep<M: Media>(&self, ssd: &Ssd<M>) -> io::Result<()> {
        let Some(Learnt { chunk, bits }) = ssd.learnt() else { return Ok(()) };
        let table = BufferTable { uuid: self.label.uuid, chunk, bits: bits.to_vec() };
        table.encode().map_or(Ok(()), |bytes| self.backing.write_at(self.layout.bytes, &bytes))
    }
}
