//! What a look-alike imitates, how, and how well.

use super::super::math::ln;
use super::figures::Figures;

/// Counts of a volume, from the tables of the sources; see [`super::presets`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Volume {
    pub(super) requests: f64,
    pub(super) seconds: f64,
    /// 4 KiB blocks, with multiplicity.
    pub(super) write_blocks: f64,
    pub(super) read_blocks: f64,
    /// Share of writes among the requests.
    pub(super) write_share: f64,
    pub(super) mean_bytes: f64,
    /// Distinct blocks.
    pub(super) touched: f64,
    pub(super) written: f64,
    /// Blocks from the lowest to the highest address.
    pub(super) span: f64,
    pub(super) unaligned_share: f64,
    pub(super) multi_share: f64,
    /// Share of block writes on the most written 1 % of the blocks.
    pub(super) top1_share: f64,
    /// Time between two writes of a block.
    pub(super) gap_p50_s: f64,
    pub(super) gap_p90_s: f64,
}

/// Parameters of the model, found by `examples/lookalikes.rs`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Knobs {
    /// Share of the write requests that belong to ticks.
    pub hot: f64,
    /// Share of a tick's requests that rewrite the same objects at every tick.
    pub core: f64,
    /// Objects of the body, in objects written.
    pub body: f64,
    /// Zipf exponent of the body.
    pub theta: f64,
    /// Share of the body's writes that repeat a recent one.
    pub reuse: f64,
    /// How far back these reach, in writes of the body.
    pub distance: f64,
    /// The least they reach back, as a share of it.
    pub near: f64,
    /// Objects written once, as a share of the objects written.
    pub cold: f64,
}

/// Where the counts of a volume come from, and so what is demanded of its look-alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// Counted in the trace of the volume.
    Counted,
    /// Only requests, share of writes and mean size were published; the rest is assumed.
    Published,
}

/// A volume, how its look-alike imitates it, and how well.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Preset {
    /// The word of the specification language.
    pub(super) name: &'static str,
    pub(super) source: Source,
    pub(super) volume: Volume,
    pub(super) knobs: Knobs,
    /// Reached with a million requests and seed 0.
    pub(super) reached: Figures,
}

impl Preset {
    /// Of the volume itself.
    pub(super) fn wanted(&self) -> Figures {
        let volume = &self.volume;
        Figures {
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

    /// Distance of what was reached by what is demanded, in tolerances: at most 1 is near enough.
    pub(super) fn misses(&self, reached: &Figures) -> Vec<(&'static str, f64)> {
        let wanted = self.wanted();
        let apart = |a: f64, b: f64, tolerance: f64| (a - b).abs() / tolerance;
        let percent = |a: f64, b: f64| apart(a, b, 0.05 * b);
        let mean = ("mean request", percent(reached.mean_bytes, wanted.mean_bytes));
        if self.source == Source::Published {
            let writes = apart(reached.write_requests, wanted.write_requests, 0.02);
            return vec![("writes", writes), mean];
        }
        let gap = ln(reached.gap_p50_s.max(1e-9) / wanted.gap_p50_s) / ln(1.5);
        vec![
            ("blocks written", apart(reached.write_blocks, wanted.write_blocks, 0.02)),
            mean,
            ("rewrite share", apart(reached.rewrite_share, wanted.rewrite_share, 0.02)),
            ("top 1 %", apart(reached.top1_share, wanted.top1_share, 0.05)),
            ("median rewrite gap", gap.abs()),
            ("unaligned", apart(reached.unaligned_share, wanted.unaligned_share, 0.03)),
            ("multi-page", apart(reached.multi_share, wanted.multi_share, 0.03)),
        ]
    }
}

impl Volume {
    const fn row(columns: [f64; 14]) -> Self {
        let [
            requests,
            seconds,
            write_blocks,
            read_blocks,
            write_share,
            mean_bytes,
            touched,
            written,
            span,
            unaligned_share,
            multi_share,
            top1_share,
            gap_p50_s,
            gap_p90_s,
        ] = columns;
        Self {
            requests,
            seconds,
            write_blocks,
            read_blocks,
            write_share,
            mean_bytes,
            touched,
            written,
            span,
            unaligned_share,
            multi_share,
            top1_share,
            gap_p50_s,
            gap_p90_s,
        }
    }
}

impl Preset {
    /// From a row of the table; the columns are in the order of the structs.
    pub(super) const fn row(
        name: &'static str,
        source: Source,
        volume: [f64; 14],
        knobs: [f64; 8],
        reached: [f64; 9],
    ) -> Self {
        let [hot, core, body, theta, reuse, distance, near, cold] = knobs;
        let knobs = Knobs { hot, core, body, theta, reuse, distance, near, cold };
        Self { name, source, volume: Volume::row(volume), knobs, reached: figures(reached) }
    }
}

const fn figures(columns: [f64; 9]) -> Figures {
    let [
        write_requests,
        write_blocks,
        mean_bytes,
        rewrite_share,
        top1_share,
        gap_p50_s,
        gap_p90_s,
        unaligned_share,
        multi_share,
    ] = columns;
    Figures {
        write_requests,
        write_blocks,
        mean_bytes,
        rewrite_share,
        top1_share,
        gap_p50_s,
        gap_p90_s,
        unaligned_share,
        multi_share,
    }
}
