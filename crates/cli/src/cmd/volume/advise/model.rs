//! What write amplification to expect, by formula. Nothing here is measured.
//!
//! Both a page-mapped drive and the log of a volume collect the emptiest of many segments. Under
//! uniformly random writes that copies as much as the analysis of Desnoyers says (Analytic modeling
//! of SSD write performance, SYSTOR 2012, section 3.2): with a = space / data and z the solution in
//! (0, 1) of z e^-z = a e^-a, a / (a - z). Against the table of docs/volume-numbers.md that is
//! within 8 % up to nine tenths in use. Skew makes both worse than that.

/// What the volume keeps free for itself: 10 of 512 log segments (docs/volume-numbers.md).
const LOG_KEPT: f64 = 10.0 / 512.0;

/// Blocks of a full batch without its header.
const BATCH_BLOCKS: f64 = 255.0;

/// Map, runs and roots of the volume per block that it sends (docs/volume-numbers.md: 4 % with the
/// headers of smaller batches).
const MAP_SHARE: f64 = 0.02;

/// A device whose superblocks are not those of the log copies too: nothing where they agree, a
/// fifth where they are four times as large (docs/volume-numbers.md, a log on a log). Half of that
/// is expected where they are not known.
const UNKNOWN_SUPERBLOCK: f64 = 1.1;

/// What a device does with random writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Device {
    /// Bytes of its indirection unit.
    pub(super) unit: f64,
    /// (Physical - logical) / logical.
    pub(super) op: f64,
    /// Whether the log segments agree with its superblocks.
    pub(super) superblock_known: bool,
}

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Load {
    /// Share of the space that holds data.
    pub(super) utilisation: f64,
    /// Mean size of a write in bytes.
    pub(super) write_bytes: f64,
    /// Flushes per write.
    pub(super) flushes: f64,
}

/// Bytes programmed / bytes written by the host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Prediction {
    pub(super) without: f64,
    /// Bytes sent to the device / bytes written by the host.
    pub(super) waf_host: f64,
    pub(super) with: f64,
}

/// Write amplification of uniformly random writes where `used` of the space holds data.
fn cleaning(used: f64) -> f64 {
    let a = 1.0 / used.clamp(0.01, 0.99);
    let target = a * (-a).exp();
    // z e^-z grows from 0 to 1/e on (0, 1).
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    for _ in 0..60 {
        let z = f64::midpoint(low, high);
        if z * (-z).exp() < target { low = z } else { high = z }
    }
    a / (a - f64::midpoint(low, high))
}

/// Bytes sent for a batch / bytes of its data: header, and padding to the unit of the device.
fn batch_overhead(device: &Device, load: &Load) -> f64 {
    let blocks_per_flush = load.write_bytes / 4096.0 / load.flushes.max(1e-9);
    let blocks = blocks_per_flush.clamp(1.0, BATCH_BLOCKS);
    let unit_blocks = (device.unit / 4096.0).max(1.0);
    let padded = ((blocks + 1.0) / unit_blocks).ceil() * unit_blocks;
    // A full batch is cut so that it needs no padding.
    if blocks < BATCH_BLOCKS { padded / blocks } else { 1.0 + 1.0 / BATCH_BLOCKS }
}

/// What random writes cost without the volume and with it.
pub(super) fn predict(device: &Device, load: &Load) -> Prediction {
    // A write below the indirection unit rewrites all of the unit.
    let rewrite = (device.unit / load.write_bytes).max(1.0);
    let without = rewrite * cleaning(load.utilisation / (1.0 + device.op));
    let log = cleaning(load.utilisation / (1.0 - LOG_KEPT));
    let waf_host = log * (batch_overhead(device, load) + MAP_SHARE);
    let below = if device.superblock_known { 1.0 } else { UNKNOWN_SUPERBLOCK };
    Prediction { without, waf_host, with: waf_host * below }
}

#[cfg(test)]
mod tests {
    use super::{Device, Load, cleaning, predict};

    fn near(found: f64, expected: f64, share: f64) -> bool {
        (found - expected).abs() <= share * expected
    }

    /// volume.md, section 12: `WAF_host` of the greedy log, uniform.
    #[test]
    fn the_formula_agrees_with_the_simulated_log() {
        for (used, waf) in
            [(0.10, 1.00), (0.35, 1.08), (0.5, 1.26), (0.65, 1.66), (0.8, 2.76), (0.9, 5.49)]
        {
            assert!(near(cleaning(used), waf, 0.06), "{used}: {} not {waf}", cleaning(used));
        }
    }

    /// docs/volume-numbers.md, a log on a log: without a layer, and the log, data only.
    #[test]
    fn predictions_agree_with_the_simulated_stack() {
        for (unit, utilisation, without, with) in [
            (4096.0, 0.5, 1.20, 1.27),
            (4096.0, 0.8, 2.20, 2.91),
            (4096.0, 0.9, 3.39, 6.27),
            (16384.0, 0.5, 4.81, 1.28),
            (16384.0, 0.8, 8.76, 2.93),
            (16384.0, 0.9, 13.4, 6.35),
            (65536.0, 0.8, 34.3, 2.93),
        ] {
            let device = Device { unit, op: 0.07, superblock_known: true };
            let load = Load { utilisation, write_bytes: 4096.0, flushes: 0.0 };
            let found = predict(&device, &load);
            assert!(near(found.without, without, 0.08), "{unit} {utilisation}: {found:?}");
            assert!(near(found.with, with, 0.08), "{unit} {utilisation}: {found:?}");
        }
    }

    #[test]
    fn a_write_that_is_flushed_alone_costs_two_blocks_and_padding() {
        let load = Load { utilisation: 0.1, write_bytes: 4096.0, flushes: 1.0 };
        let of = |unit| predict(&Device { unit, op: 0.07, superblock_known: true }, &load).waf_host;
        assert!(near(of(4096.0), 2.02, 0.01) && near(of(16384.0), 4.02, 0.01), "{}", of(4096.0));
    }
}
