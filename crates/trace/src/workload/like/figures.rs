//! What a look-alike is measured by.

use onefold_units::convert::float;

use crate::{Info, TraceOp};

/// What `trace info` says about requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Share of writes among requests.
    pub write_requests: f64,
    /// Share of writes among 4 KiB blocks read and written.
    pub write_blocks: f64,
    /// Bytes per request.
    pub mean_bytes: f64,
    /// 1 - distinct written blocks / written blocks.
    pub rewrite_share: f64,
    /// Share of block writes on the most written 1 % of the blocks.
    pub top1_share: f64,
    /// Median time between two writes of a block, in seconds.
    pub gap_p50_s: f64,
    /// 90th percentile of it.
    pub gap_p90_s: f64,
    /// Requests with an offset or length that is no multiple of 4 KiB.
    pub unaligned_share: f64,
    /// Requests that touch several blocks.
    pub multi_share: f64,
}

const SECOND_NS: f64 = 1e9;

impl Figures {
    /// Of requests that were counted.
    #[must_use]
    pub fn of(info: &Info) -> Self {
        let (reads, writes) = (info.of(TraceOp::Read), info.of(TraceOp::Write));
        let requests = float(info.data_requests()).max(1.0);
        let blocks = float(info.write_pages() + info.read_pages()).max(1.0);
        let gap = |quantile| info.rewrite_gap_ns(quantile).map_or(0.0, float) / SECOND_NS;
        Self {
            write_requests: float(writes.requests) / requests,
            write_blocks: float(info.write_pages()) / blocks,
            mean_bytes: float(reads.bytes + writes.bytes) / requests,
            rewrite_share: info.rewrite_share(),
            top1_share: info.top_write_share(100),
            gap_p50_s: gap(0.5),
            gap_p90_s: gap(0.9),
            unaligned_share: float(info.unaligned()) / requests,
            multi_share: float(info.multi_page()) / requests,
        }
    }
}
