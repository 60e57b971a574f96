//! Stream classifiers: which write stream of the FTL a unit goes to. One file, one type, one name
//! each, and their table.

mod auto;
mod host;
mod hot_cold;
mod ranges;
mod table;

pub use host::INFO as HOST;
pub use table::{BuildClassifier, ClassifierInfo, ClassifierPolicies, ClassifierSpec};

use onefold_buffer::Req;
use onefold_units::convert::{index, narrow};
use onefold_units::policy::{Kind, Parameters};
use onefold_units::{Keep, Keeper, Lpn};

/// In the order of tables.
impl Kind for BuildClassifier {
    const NOUN: &'static str = "stream classifier";
    const BUILTIN: &'static [&'static ClassifierInfo] =
        &[&host::INFO, &hot_cold::INFO, &auto::INFO, &ranges::INFO];
}

/// What a classifier is built from.
#[derive(Clone, Copy, Debug)]
pub struct ClassifierSetup {
    /// Parameters of the configured classifier.
    pub parameters: Parameters,
    /// Mapping units of the device.
    pub units: u64,
    /// Bytes of one.
    pub unit_bytes: u32,
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
    /// Units written to flash since this one was; `None` if it was not since power-on, or if
    /// [`Classifier::ASKS_AGES`] is false.
    pub age: Option<u64>,
}

/// Chooses the write stream of each unit. Data that dies together belongs together.
///
/// A classifier reads no clock, so one trace gives the same streams on every machine. It starts anew
/// at power-on.
pub trait Classifier: Send + 'static {
    /// Whether the device keeps the age of each unit, which takes 8 B for one.
    const ASKS_AGES: bool = true;

    /// The classifier of a device that was just switched on.
    fn new(setup: &ClassifierSetup) -> Self;

    /// Sees a write or a trim of the host, in mapping units, when it comes: before its units go to the buffer or to flash.
    fn request(&mut self, request: &Req) {
        let _ = request;
    }

    /// The stream of a unit, from 0; those beyond the last are the last.
    fn stream(&mut self, write: &UnitWrite) -> u32;

    /// Writes the state of the classifier, or takes it in place: all that [`Classifier::new`] does not know. Without
    /// this one with fields cannot be stopped and continued; [`onefold_units::keep_fields!`] makes it.
    fn keep(&mut self, keeper: &mut Keeper<'_>)
    where
        Self: Sized,
    {
        keeper.stateless(self);
    }
}

/// What [`Classifier`] is as an object.
trait Classify: Send {
    fn asks_ages(&self) -> bool {
        true
    }

    fn see(&mut self, request: &Req) {
        let _ = request;
    }

    fn stream_of(&mut self, write: &UnitWrite) -> u32;

    fn keep(&mut self, keeper: &mut Keeper<'_>) {
        let _ = keeper;
    }
}

impl<C: Classifier> Classify for C {
    fn asks_ages(&self) -> bool {
        C::ASKS_AGES
    }

    fn see(&mut self, request: &Req) {
        self.request(request);
    }

    fn stream_of(&mut self, write: &UnitWrite) -> u32 {
        self.stream(write)
    }

    fn keep(&mut self, keeper: &mut Keeper<'_>) {
        Classifier::keep(self, keeper);
    }
}

impl Classify for fn(&UnitWrite) -> u32 {
    fn stream_of(&mut self, write: &UnitWrite) -> u32 {
        self(write)
    }
}

/// A classifier and what it is told of the past.
pub(crate) struct Classified {
    policy: Box<dyn Classify>,
    units: u32,
    /// Number of the last write of each unit, from 1; 0 = none. Empty where nobody asks.
    last: Vec<u64>,
    written: u64,
}

impl Classified {
    /// The configured classifier of a device of `units` mapping units; `None` if requests say it all.
    pub(crate) fn new(
        spec: &ClassifierSpec,
        units: u32,
        unit_bytes: u32,
        streams: u32,
    ) -> Option<Self> {
        let parameters = spec.parameters();
        let setup = ClassifierSetup { parameters, units: units.into(), unit_bytes, streams };
        let policy = spec.info().build.build(&setup)?;
        let last = vec![0; if policy.asks_ages() { index(units) } else { 0 }];
        Some(Self { policy, units, last, written: 0 })
    }

    /// A write or a trim of the host has come.
    pub(crate) fn request(&mut self, request: &Req) {
        self.policy.see(request);
    }

    /// The stream of a unit that comes with `units` and for which `stream` was asked.
    pub(crate) fn stream(&mut self, lpn: Lpn, units: u64, stream: u32) -> u32 {
        if lpn.raw() >= self.units {
            return stream;
        }
        self.written += 1;
        let last = self.last.get_mut(index(lpn.raw()));
        let before = last.map_or(0, |last| std::mem::replace(last, self.written));
        let age = (before > 0).then(|| self.written - before);
        let units = narrow(units);
        self.policy.stream_of(&UnitWrite { lpn, units, stream, age })
    }
}

impl Keep for Classified {
    fn keep(&mut self, keeper: &mut Keeper<'_>) {
        let Self { policy, units: _, last, written } = self;
        policy.keep(keeper);
        last.keep(keeper);
        written.keep(keeper);
    }
}

#[cfg(test)]
mod tests;
