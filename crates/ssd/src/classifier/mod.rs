//! Stream classifiers: which write stream of the FTL a unit goes to. One file, one type, one name
//! each, and their table.

mod host;
mod hot_cold;
mod table;

pub use host::INFO as HOST;
use onefold_units::Lpn;
pub use table::{BuildClassifier, ClassifierInfo, ClassifierPolicies, ClassifierSpec};

use onefold_units::convert::{index, narrow};
use onefold_units::policy::{Kind, Parameters};

/// In the order of tables.
impl Kind for BuildClassifier {
    const NOUN: &'static str = "stream classifier";
    const BUILTIN: &'static [&'static ClassifierInfo] = &[&host::INFO, &hot_cold::INFO];
}

/// What a classifier is built from.
#[derive(Clone, Copy, Debug)]
pub struct ClassifierSetup {
    /// Parameters of the configured classifier.
    pub parameters: Parameters,
    /// Mapping units of the device.
    pub units: u64,
    /// Write streams of the FTL, at least 1.
    pub streams: u32,
}

/// One unit on its way to flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitWrite {
    /// The unit.
    pub lpn: Lpn,
    /// Units that come with it: those of the request, or those of the program that the buffer makes.
    pub units: u32,
    /// Stream that the request asks for; the last one if the buffer says it is append-only data
    /// (`buffer.separate_streams`).
    pub stream: u32,
    /// Units written to flash since this one was; `None` if it was not since power-on.
    pub age: Option<u64>,
}

/// Chooses the write stream of each unit. Data that dies together belongs together.
///
/// A classifier reads no clock, so one trace gives the same streams on every machine. It starts anew
/// at power-on.
pub trait Classifier: Send + 'static {
    /// The classifier of a device that was just switched on.
    fn new(setup: &ClassifierSetup) -> Self;

    /// The stream of a unit, from 0; those beyond the last are the last.
    fn stream(&mut self, write: &UnitWrite) -> u32;
}

/// What [`Classifier`] is as an object.
trait Classify: Send {
    fn stream_of(&mut self, write: &UnitWrite) -> u32;
}

impl<C: Classifier> Classify for C {
    fn stream_of(&mut self, write: &UnitWrite) -> u32 {
        self.stream(write)
    }
}

impl Classify for fn(&UnitWrite) -> u32 {
    fn stream_of(&mut self, write: &UnitWrite) -> u32 {
        self(write)
    }
}

/// A classifier and what it is told of the past: 8 B for each unit.
pub(crate) struct Classified {
    policy: Box<dyn Classify>,
    /// Number of the last write of each unit, from 1; 0 = none.
    last: Vec<u64>,
    written: u64,
}

impl Classified {
    /// The configured classifier; `None` if requests say it all.
    pub(crate) fn new(spec: &ClassifierSpec, units: u32, streams: u32) -> Option<Self> {
        let setup = ClassifierSetup { parameters: spec.parameters(), units: units.into(), streams };
        let policy = spec.info().build.build(&setup)?;
        Some(Self { policy, last: vec![0; index(units)], written: 0 })
    }

    /// The stream of a unit that comes with `units` and for which `stream` was asked.
    pub(crate) fn stream(&mut self, lpn: Lpn, units: u64, stream: u32) -> u32 {
        self.written += 1;
        let Some(last) = self.last.get_mut(index(lpn.raw())) else { return stream };
        let before = std::mem::replace(last, self.written);
        let age = (before > 0).then(|| self.written - before);
        let units = narrow(units);
        self.policy.stream_of(&UnitWrite { lpn, units, stream, age })
    }
}

#[cfg(test)]
mod tests;
