//! What a trace holds, counted in one pass over records in time order.
//!
//! Memory grows with the pages touched (1 bit each, 12 bytes where written) and the distinct
//! digests, not with the length of the trace.

mod gaps;
mod pages;

use std::collections::{BTreeMap, BTreeSet};

use onefold_units::PAGE_BYTES;
use onefold_units::convert::{float, index};

use crate::scan::common_tick;
use crate::{Flags, Record, TraceOp};
use gaps::Gaps;
use pages::PageTable;

const SECOND_NS: u64 = 1_000_000_000;

/// Request sizes listed in [`Info::top_sizes`].
const TOP_SIZES: usize = 10;

/// Distinct request sizes that are counted; further ones are not listed.
const SIZES_MAX: usize = 1 << 16;

/// Counts of one operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpCount {
    /// Requests.
    pub requests: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Counts a trace. Add records in time order, then ask.
#[derive(Clone, Debug, Default)]
pub struct Info {
    by_op: [OpCount; 8],
    devices: Vec<Device>,
    /// Of reads and of writes: how many requests have a size.
    sizes: [BTreeMap<u64, u64>; 2],
    first_ns: u64,
    last_ns: u64,
    tick_ns: u64,
    ties: u64,
    second: u64,
    in_second: u64,
    peak_second: u64,
    sequential: u64,
    unaligned: u64,
    multi_page: u64,
    read_pages: u64,
    write_pages: u64,
    fua: u64,
    gaps: Gaps,
    latency_sum_ns: u128,
    with_latency: u64,
    digests: Digests,
}

#[derive(Clone, Debug, Default)]
struct Device {
    pages: PageTable,
    end_bytes: u64,
    /// End of the previous read or write.
    next: Option<u64>,
}

#[derive(Clone, Debug, Default)]
struct Digests {
    seen: BTreeSet<u128>,
    current: BTreeMap<(u16, u64), u128>,
    pages: u64,
    duplicates: u64,
    same_place: u64,
}

impl Info {
    /// Nothing counted yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts the next record in time.
    pub fn add(&mut self, record: &Record) {
        self.add_time(record.t_ns);
        if let Some(count) = self.by_op.get_mut(usize::from(record.op.code())) {
            count.requests += 1;
            count.bytes = count.bytes.saturating_add(record.len);
        }
        if let Some(latency) = record.lat_ns {
            self.latency_sum_ns += u128::from(latency);
            self.with_latency += 1;
        }
        let dev = index(u32::from(record.dev));
        if self.devices.len() <= dev {
            self.devices.resize_with(dev + 1, Device::default);
        }
        if let Some(device) = self.devices.get_mut(dev) {
            device.end_bytes = device.end_bytes.max(record.end());
        }
        if record.op.is_data() {
            self.add_data(record, dev);
        }
    }

    fn add_time(&mut self, t_ns: u64) {
        if self.requests() == 0 {
            (self.first_ns, self.last_ns) = (t_ns, t_ns);
        } else {
            self.ties += u64::from(t_ns == self.last_ns);
        }
        self.tick_ns = common_tick(self.tick_ns, t_ns.abs_diff(self.last_ns));
        self.last_ns = self.last_ns.max(t_ns);
        let second = t_ns.saturating_sub(self.first_ns) / SECOND_NS;
        if second != self.second {
            (self.second, self.in_second) = (second, 0);
        }
        self.in_second += 1;
        self.peak_second = self.peak_second.max(self.in_second);
    }

    fn add_data(&mut self, record: &Record, dev: usize) {
        let sizes = &mut self.sizes[usize::from(record.op != TraceOp::Read)];
        if sizes.len() < SIZES_MAX || sizes.contains_key(&record.len) {
            *sizes.entry(record.len).or_default() += 1;
        }
        let (first, count) = record.pages();
        let aligned =
            record.offset.is_multiple_of(PAGE_BYTES) && record.len.is_multiple_of(PAGE_BYTES);
        self.unaligned += u64::from(!aligned);
        self.multi_page += u64::from(count > 1);
        let Some(device) = self.devices.get_mut(dev) else { return };
        self.sequential += u64::from(device.next == Some(record.offset));
        device.next = Some(record.end());
        if record.op == TraceOp::Read {
            self.read_pages += count;
            device.pages.read(first, count);
            return;
        }
        self.write_pages += count;
        self.fua += u64::from(record.flags.has(Flags::FUA));
        device.pages.write(first, count, record.t_ns, &mut self.gaps);
        if record.digests.is_some() {
            self.digests.add(record);
        }
    }

    /// Requests and bytes of one operation.
    #[must_use]
    pub fn of(&self, op: TraceOp) -> OpCount {
        self.by_op.get(usize::from(op.code())).copied().unwrap_or_default()
    }

    /// All requests.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.by_op.iter().map(|count| count.requests).sum()
    }

    /// Reads and writes.
    #[must_use]
    pub fn data_requests(&self) -> u64 {
        self.of(TraceOp::Read).requests + self.of(TraceOp::Write).requests
    }

    /// Last time minus first time.
    #[must_use]
    pub const fn duration_ns(&self) -> u64 {
        self.last_ns - self.first_ns
    }

    /// The largest unit all times are multiples of.
    #[must_use]
    pub const fn time_resolution_ns(&self) -> u64 {
        self.tick_ns
    }

    /// Requests per second over the whole duration; 0 without a duration.
    #[must_use]
    pub fn iops_mean(&self) -> f64 {
        ratio(self.requests(), self.duration_ns()) * float(SECOND_NS)
    }

    /// Most requests in one second; seconds count from the first request.
    #[must_use]
    pub const fn iops_peak_1s(&self) -> u64 {
        self.peak_second
    }

    /// Share of requests that have the time of the one before.
    #[must_use]
    pub fn tie_share(&self) -> f64 {
        ratio(self.ties, self.requests())
    }

    /// 4 KiB pages read, with multiplicity.
    #[must_use]
    pub const fn read_pages(&self) -> u64 {
        self.read_pages
    }

    /// 4 KiB pages written, with multiplicity.
    #[must_use]
    pub const fn write_pages(&self) -> u64 {
        self.write_pages
    }

    /// Distinct 4 KiB pages read or written, all devices.
    #[must_use]
    pub fn touched_pages(&self) -> u64 {
        self.devices.iter().map(|device| device.pages.touched()).sum()
    }

    /// Distinct 4 KiB pages written, all devices.
    #[must_use]
    pub fn written_pages(&self) -> u64 {
        self.devices.iter().map(|device| device.pages.written()).sum()
    }

    /// Highest offset + length, over all devices.
    #[must_use]
    pub fn max_end_bytes(&self) -> u64 {
        self.devices.iter().map(|device| device.end_bytes).max().unwrap_or(0)
    }

    /// 1 - distinct written pages / written pages.
    #[must_use]
    pub fn rewrite_share(&self) -> f64 {
        if self.write_pages == 0 {
            0.0
        } else {
            1.0 - ratio(self.written_pages(), self.write_pages)
        }
    }

    /// Share of page writes that went to the most written 1 / `part` of the written pages, at least
    /// one page.
    #[must_use]
    pub fn top_write_share(&self, part: u64) -> f64 {
        let mut by_count: BTreeMap<u32, u64> = BTreeMap::new();
        for device in &self.devices {
            device.pages.count_writes(&mut by_count);
        }
        let mut left = (self.written_pages() / part.max(1)).max(1);
        let mut writes = 0;
        for (count, pages) in by_count.into_iter().rev() {
            let taken = pages.min(left);
            writes += taken * u64::from(count);
            left -= taken;
            if left == 0 {
                break;
            }
        }
        ratio(writes, self.write_pages)
    }

    /// Time between two writes of one page at a quantile from 0 to 1, within 1.6 %; `None` if no
    /// page was written twice.
    #[must_use]
    pub fn rewrite_gap_ns(&self, quantile: f64) -> Option<u64> {
        self.gaps.quantile(quantile)
    }

    /// Reads and writes that start where the previous one of their device ended.
    #[must_use]
    pub const fn sequential(&self) -> u64 {
        self.sequential
    }

    /// Reads and writes whose offset or length is no multiple of 4,096.
    #[must_use]
    pub const fn unaligned(&self) -> u64 {
        self.unaligned
    }

    /// Reads and writes that touch more than one page.
    #[must_use]
    pub const fn multi_page(&self) -> u64 {
        self.multi_page
    }

    /// Share of writes with forced unit access.
    #[must_use]
    pub fn fua_share(&self) -> f64 {
        ratio(self.fua, self.of(TraceOp::Write).requests)
    }

    /// Requests in flight on average, by Little's law; `None` if no request has a latency.
    #[must_use]
    pub fn queue_depth_mean(&self) -> Option<f64> {
        if self.with_latency == 0 || self.duration_ns() == 0 {
            return None;
        }
        let sum = u64::try_from(self.latency_sum_ns).unwrap_or(u64::MAX);
        Some(ratio(sum, self.duration_ns()))
    }

    /// The commonest sizes in bytes with their requests, commonest first: of reads, of writes, or of
    /// both together (`None`). Empty for any other operation.
    #[must_use]
    pub fn top_sizes(&self, op: Option<TraceOp>) -> Vec<(u64, u64)> {
        let asked = |of: TraceOp| op.is_none_or(|op| op == of);
        let [reads, writes] = &self.sizes;
        let reads = reads.iter().filter(|_| asked(TraceOp::Read));
        let writes = writes.iter().filter(|_| asked(TraceOp::Write));
        let mut sums: BTreeMap<u64, u64> = BTreeMap::new();
        for (size, requests) in reads.chain(writes) {
            *sums.entry(*size).or_default() += requests;
        }
        let mut sizes: Vec<(u64, u64)> = sums.into_iter().collect();
        sizes.sort_by_key(|(size, requests)| (std::cmp::Reverse(*requests), *size));
        sizes.truncate(TOP_SIZES);
        sizes
    }

    /// Written pages that have a digest.
    #[must_use]
    pub const fn digest_pages(&self) -> u64 {
        self.digests.pages
    }

    /// Written pages with a digest that was seen before.
    #[must_use]
    pub const fn duplicate_pages(&self) -> u64 {
        self.digests.duplicates
    }

    /// Distinct digests.
    #[must_use]
    pub fn distinct_digests(&self) -> u64 {
        onefold_units::convert::u64_from(self.digests.seen.len())
    }

    /// Pages written again with the content they had.
    #[must_use]
    pub const fn same_lba_same_content(&self) -> u64 {
        self.digests.same_place
    }
}

impl Digests {
    fn add(&mut self, record: &Record) {
        for (page, content) in record.contents() {
            let Some(content) = content else {
                // Unknown content now stands there.
                self.current.remove(&(record.dev, page));
                continue;
            };
            self.pages += 1;
            self.duplicates += u64::from(!self.seen.insert(content));
            let before = self.current.insert((record.dev, page), content);
            self.same_place += u64::from(before == Some(content));
        }
    }
}

/// `part / whole`; 0 of nothing.
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { float(part) / float(whole) }
}
