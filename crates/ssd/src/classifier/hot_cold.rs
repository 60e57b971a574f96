//! Hot and cold units apart, by the time since their last write.

use onefold_units::convert::{float, floor_u64};
use onefold_units::policy::{Limits, Parameter, Ratio, Value};

use super::{BuildClassifier, Classifier, ClassifierInfo, ClassifierSetup, UnitWrite};

/// Name, source and parameters.
pub(super) static INFO: ClassifierInfo = ClassifierInfo {
    name: "hot-cold",
    about: "Units written again soon go to the last stream, others to that of their request.",
    source: "Wang et al. 2022 (SepBIT), with a fixed threshold",
    parameters: &[Parameter {
        name: "within",
        default: Value::Ratio(Ratio::new(1, 4)),
        limits: Limits::Ratio,
        about: "What is soon: so much of the logical capacity was written since.",
    }],
    build: BuildClassifier::of::<HotCold>(),
};

/// Units that are written again soon go to the last stream: they will die soon again.
///
/// Differs from Wang 2022, sec. 4.2: the threshold is a share of the capacity, where `SepBIT` takes the
/// mean life of collected segments.
#[derive(Clone, Copy, Debug)]
struct HotCold {
    within: u64,
    hot: u32,
}

impl Classifier for HotCold {
    fn new(setup: &ClassifierSetup) -> Self {
        let within = setup.parameters.value("within").ratio().real();
        Self { within: floor_u64(within * float(setup.units)), hot: setup.streams - 1 }
    }

    fn stream(&mut self, write: &UnitWrite) -> u32 {
        if write.age.is_some_and(|age| age <= self.within) { self.hot } else { write.stream }
    }

    onefold_units::keep_fields!({} but { within, hot });
}
