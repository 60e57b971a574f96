//! What a look-alike is measured by.

use onefold_units::convert::float;

use super::super::math::ln;
use super::preset::{Preset, Source};
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

    /// Of the volume itself.
    pub(super) fn wanted(preset: &Preset) -> Self {
        let volume = &preset.volume;
        Self {
            write_requests: volume.write_share,
            write_blocks: volume.write_blocks / (volume.write_blocks + volume.read_blocks),
            mean_bytes: volume.mean_bytes,
            rewrite_share: 1.0 - volume.written / volume.write_blocks,
            top1_share: volume.top1_share,
            gap_p50_s: volume.gap_p50_s,
            gap_p90_s: volume.gap_p90_s,
            unaligned_share: volume.unaligned_share,
            multi_share: volume.multi_share,
        }
    }

    /// Distance from `wanted` by what is demanded, in tolerances: at most 1 is near enough.
    pub(super) fn misses(&self, wanted: &Self, source: Source) -> Vec<(&'static str, f64)> {
        let apart = |a: f64, b: f64, tolerance: f64| (a - b).abs() / tolerance;
        let percent = |a: f64, b: f64| apart(a, b, 0.05 * b);
        let mean = ("mean request", percent(self.mean_bytes, wanted.mean_bytes));
        if source == Source::Published {
            let writes = apart(self.write_requests, wanted.write_requests, 0.02);
            return vec![("writes", writes), mean];
        }
        let gap = ln(self.gap_p50_s.max(1e-9) / wanted.gap_p50_s) / ln(1.5);
        vec![
            ("blocks written", apart(self.write_blocks, wanted.write_blocks, 0.02)),
            mean,
            ("rewrite share", apart(self.rewrite_share, wanted.rewrite_share, 0.02)),
            ("top 1 %", apart(self.top1_share, wanted.top1_share, 0.05)),
            ("median rewrite gap", gap.abs()),
            ("unaligned", apart(self.unaligned_share, wanted.unaligned_share, 0.03)),
            ("multi-page", apart(self.multi_share, wanted.multi_share, 0.03)),
        ]
    }
}
