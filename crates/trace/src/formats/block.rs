//! What blkparse, blktrace and tracefs share: events of the Linux block layer become requests.

use onefold_units::SECTOR_BYTES;

use crate::cursor::{Cursor, Expected};
use crate::formats::rwbs::Rwbs;
use crate::lines::Facts;
use crate::lines::request;
use crate::pairing::Pairing;
use crate::{Record, TraceOp};

/// Sector of a request that has none (a flush), as tracefs prints it.
const NO_SECTOR: u64 = u64::MAX;

/// What names a request in flight: device, sector, sectors.
pub(crate) type Key = (u16, u64, u64);

/// One request of the block layer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockRequest {
    pub(crate) t_ns: u64,
    pub(crate) dev: u16,
    pub(crate) sector: u64,
    pub(crate) sectors: u64,
    pub(crate) rwbs: Rwbs,
}

/// The key of a request; a flush has no sector, however it is printed.
pub(crate) const fn key(dev: u16, sector: u64, sectors: u64) -> Key {
    if sector == NO_SECTOR || sectors == 0 { (dev, 0, 0) } else { (dev, sector, sectors) }
}

/// Requests in flight.
#[derive(Debug, Default)]
pub(crate) struct Block {
    pairing: Pairing<Key>,
}

impl Block {
    /// A request was seen at the chosen event. `cursor` is where errors point.
    pub(crate) fn issue(
        &mut self,
        cursor: &Cursor<'_>,
        asked: &BlockRequest,
        out: &mut Vec<Record>,
    ) -> Result<bool, Expected> {
        let BlockRequest { t_ns, dev, sector, sectors, rwbs } = *asked;
        // An empty request that flushes is a flush, whatever else its letters say.
        let op = if sectors == 0 && rwbs.preflush { TraceOp::Flush } else { rwbs.op };
        if sectors == 0 && op != TraceOp::Flush {
            // A command without data (`N`) is no request to the medium.
            return if op.is_data() {
                Err(cursor.expected("a count of sectors above 0"))
            } else {
                Ok(false)
            };
        }
        let offset = if sectors == 0 { Some(0) } else { sector.checked_mul(SECTOR_BYTES) };
        let mut record = request(cursor, t_ns, op, offset, sectors.checked_mul(SECTOR_BYTES))?;
        record.dev = dev;
        record.flags = rwbs.flags;
        if rwbs.preflush && sectors > 0 {
            let mut flush = Record::new(t_ns, TraceOp::Flush, 0, 0);
            flush.dev = dev;
            self.pairing.pass(flush, out);
        }
        self.pairing.issue(key(dev, sector, sectors), record, out);
        Ok(true)
    }

    pub(crate) fn complete(&mut self, key: Key, t_ns: u64, out: &mut Vec<Record>) {
        self.pairing.complete(&key, t_ns, out);
    }

    pub(crate) fn requeue(&mut self, key: Key) {
        self.pairing.requeue(&key);
    }

    pub(crate) fn finish(&mut self, facts: &mut Facts, out: &mut Vec<Record>) {
        self.pairing.finish(out);
        facts.orphans = self.pairing.orphans;
        facts.requeued = self.pairing.requeued;
    }
}
