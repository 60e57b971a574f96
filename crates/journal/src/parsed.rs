//! What a parser found.

use crate::class::{Class, Confidence, System};
use crate::jbd2;
use crate::ring::{Extent, Ring};

/// A journal with a log whose tail can be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Journal {
    /// Whose it is, and the byte where that begins.
    pub(crate) owner: (System, u64),
    pub(crate) log: Ring,
    pub(crate) tail: Tail,
}

impl Journal {
    /// Where the log lies, in its order.
    #[must_use]
    pub fn log(&self) -> &[Extent] {
        self.log.pieces()
    }
}

/// Where the tail of a log is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tail {
    /// In the journal header at byte `at`.
    Jbd2 { header: jbd2::Header, at: u64 },
    /// In every record of the log, so that it is not known before one is written.
    Xfs,
}

/// What a parser found in a place.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) system: System,
    pub(crate) confidence: Confidence,
    pub(crate) parts: Vec<(Class, Extent, &'static str)>,
    pub(crate) journal: Option<Journal>,
    pub(crate) remark: Option<&'static str>,
}

impl Parsed {
    pub(crate) const fn new(system: System) -> Self {
        let confidence = Confidence::High;
        Self { system, confidence, parts: Vec::new(), journal: None, remark: None }
    }

    pub(crate) const fn remark(system: System, remark: &'static str) -> Self {
        let mut parsed = Self::new(system);
        parsed.remark = Some(remark);
        parsed
    }

    pub(crate) fn add(&mut self, class: Class, pieces: &[Extent], why: &'static str) {
        self.parts.extend(pieces.iter().map(|piece| (class, *piece, why)));
    }
}
