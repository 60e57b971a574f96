//! A first look at a whole trace, in file order and constant memory.

use onefold_units::PAGE_BYTES;
use onefold_units::convert::{float, index, index64};

use crate::{Flags, Record, RegionSet, TraceOp};

/// Offsets of one residue modulo 4 KiB must cover more than this share for a shift.
const SHIFT_SHARE: f64 = 0.7;

const SECTOR: u64 = 512;

/// What must be known before a trace is sorted, laid out and run.
#[derive(Clone, Debug, Default)]
pub struct Scan {
    /// Records.
    pub requests: u64,
    /// Reads and writes.
    pub data_requests: u64,
    /// Bytes of reads and writes.
    pub data_bytes: u64,
    /// Records behind an earlier record's time.
    pub out_of_order: u64,
    /// Records that tell how long they took.
    pub with_latencies: u64,
    /// Flushes and durable writes: what follows one has waited for it.
    pub barriers: u64,
    /// Remaps.
    pub remaps: u64,
    /// Records with digests.
    pub with_digests: u64,
    /// Earliest time.
    pub first_ns: u64,
    /// Latest time.
    pub last_ns: u64,
    /// One past the highest byte, by device number.
    pub end_bytes: Vec<u64>,
    /// Regions that reads, writes and remaps touch, by device number.
    pub regions: Vec<RegionSet>,
    /// Reads and writes by `offset % 4096 / 512`; offsets off the sector grid are in none.
    residues: [u64; 8],
    tick_ns: u64,
}

impl Scan {
    /// Nothing seen yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Looks at the next record of the file.
    pub fn add(&mut self, record: &Record) {
        if self.requests == 0 {
            self.first_ns = record.t_ns;
            self.last_ns = record.t_ns;
        }
        self.requests += 1;
        self.out_of_order += u64::from(record.t_ns < self.last_ns);
        self.tick_ns = common_tick(self.tick_ns, record.t_ns.abs_diff(self.last_ns));
        self.first_ns = self.first_ns.min(record.t_ns);
        self.last_ns = self.last_ns.max(record.t_ns);
        self.with_latencies += u64::from(record.lat_ns.is_some());
        let durable = record.op == TraceOp::Flush || record.flags.has(Flags::FUA);
        self.barriers += u64::from(durable);
        self.remaps += u64::from(record.op == TraceOp::Remap);
        self.with_digests += u64::from(record.digests.is_some());
        let dev = index(u32::from(record.dev));
        if self.end_bytes.len() <= dev {
            self.end_bytes.resize(dev + 1, 0);
            self.regions.resize_with(dev + 1, RegionSet::default);
        }
        if let Some(end) = self.end_bytes.get_mut(dev) {
            let source = record.source().map_or(0, |source| source.saturating_add(record.len));
            *end = (*end).max(record.end()).max(source);
        }
        if let (Some(source), Some(regions)) = (record.source(), self.regions.get_mut(dev)) {
            regions.touch(record.offset, record.len);
            regions.touch(source, record.len);
        }
        if record.op.is_data() {
            self.data_requests += 1;
            self.data_bytes = self.data_bytes.saturating_add(record.len);
            if let Some(regions) = self.regions.get_mut(dev) {
                regions.touch(record.offset, record.len);
            }
            let residue = record.offset % PAGE_BYTES;
            if residue.is_multiple_of(SECTOR)
                && let Some(count) = self.residues.get_mut(index64(residue / SECTOR))
            {
                *count += 1;
            }
        }
    }

    /// The largest unit all times are multiples of, counted from the first; 0 if all are equal.
    #[must_use]
    pub const fn time_resolution_ns(&self) -> u64 {
        self.tick_ns
    }

    /// The bytes to subtract from every offset so that most requests start on a 4 KiB page; `None`
    /// if most do already or no residue covers more than 70 %.
    #[must_use]
    pub fn shift_proposal(&self) -> Option<u64> {
        let (residue, count) = (0..).zip(self.residues).max_by_key(|(_, count)| *count)?;
        let covers = float(count) > SHIFT_SHARE * float(self.data_requests);
        (covers && residue > 0).then_some(residue * SECTOR)
    }

    /// Bytes of the regions touched, all devices.
    #[must_use]
    pub fn touched_bytes(&self) -> u64 {
        self.regions.iter().fold(0, |sum, set| sum.saturating_add(set.bytes()))
    }
}

/// The greatest common divisor, cheap where `tick` already divides `step`.
pub(crate) const fn common_tick(tick: u64, step: u64) -> u64 {
    let (mut a, mut b) = (tick, step);
    while b != 0 {
        (a, b) = (b, a % b);
        // Nothing divides finer than one nanosecond.
        if a == 1 {
            return 1;
        }
    }
    a
}

#[cfg(test)]
mod tests {
    use super::Scan;
    use crate::{Record, TraceOp};

    #[test]
    fn a_common_residue_is_proposed() {
        let mut scan = Scan::new();
        for n in 0..10 {
            let residue = if n < 8 { 7 * 512 } else { 0 };
            scan.add(&Record::new(n * 3000, TraceOp::Write, n * 8192 + residue, 4096));
        }
        assert_eq!(scan.shift_proposal(), Some(3584));
        assert_eq!(scan.time_resolution_ns(), 3000);
        for n in 0..2 {
            scan.add(&Record::new(n, TraceOp::Read, 0, 4096));
        }
        assert_eq!(scan.shift_proposal(), None);
        assert_eq!(scan.out_of_order, 2);
    }
}
