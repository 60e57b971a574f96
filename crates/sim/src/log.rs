//! A row for each request, for those who want the distribution itself and not its quantiles.

use std::collections::BTreeMap;

use onefold_nand::Delay;
use onefold_units::Op;

/// One measured request that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Logged<'a> {
    /// Which pass over the traces it is part of, from 1.
    pub pass: u32,
    /// Its number among all requests of the run, warm-up included, in the order in which they were issued.
    pub number: u64,
    /// Name of its tenant; `host` for a single load.
    pub tenant: &'a str,
    /// What it was; a write where it was a remap.
    pub op: Op,
    /// First byte of the source of a remap on the device.
    pub source: Option<u64>,
    /// Whether it had to be durable when it ended.
    pub fua: bool,
    /// Its first byte on the device.
    pub offset: u64,
    /// Bytes.
    pub bytes: u64,
    /// When it was issued, in nanoseconds of virtual time.
    pub issued_ns: u64,
    /// How long it took; `None` if it failed.
    pub latency_ns: Option<u64>,
    /// What it waited for.
    pub delay: Delay,
}

impl Logged<'_> {
    /// The operation in a word.
    #[must_use]
    pub const fn op_name(&self) -> &'static str {
        if self.source.is_some() { "remap" } else { self.op.name() }
    }

    /// What it waited for, as `latency_by_delay` of a result says it.
    #[must_use]
    pub const fn waited_for(&self) -> &'static str {
        match self.delay {
            Delay::None => "none",
            Delay::Host => "host",
            Delay::Background => "background",
        }
    }
}

/// Who is told of each request.
pub type OnRequest<'a> = &'a dyn Fn(&Logged<'_>);

/// What is known of a request while it is under way, if somebody wants to know of each.
#[derive(Default)]
pub(crate) struct UnderWay(BTreeMap<u64, (bool, u64, u64)>);

impl UnderWay {
    pub(crate) fn begins(&mut self, number: u64, fua: bool, (offset, bytes): (u64, u64)) {
        self.0.insert(number, (fua, offset, bytes));
    }

    pub(crate) fn ends(&mut self, number: u64) -> (bool, u64, u64) {
        self.0.remove(&number).unwrap_or_default()
    }
}
