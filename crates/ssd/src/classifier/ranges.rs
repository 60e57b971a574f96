//! Streams given by hand, by address.

use onefold_units::policy::{Limits, Parameter, Value};

use super::{BuildClassifier, Classifier, ClassifierInfo, ClassifierSetup, UnitWrite};

/// Ranges that can be given.
const RANGES: usize = 7;

const fn from(name: &'static str) -> Parameter {
    Parameter {
        name,
        default: Value::Bytes(0),
        limits: Limits::Bytes { least: 0, most: 1 << 60 },
        about: "Address from which on units go to the stream of this number, up to a later one. 0: none do.",
    }
}

/// Name and parameters.
pub(super) static INFO: ClassifierInfo = ClassifierInfo {
    name: "ranges",
    about: "By address, as given: stream n from parameter n on, and stream 0 before all.",
    source: "streams by hand: what others are compared with",
    parameters: &[from("1"), from("2"), from("3"), from("4"), from("5"), from("6"), from("7")],
    build: BuildClassifier::of::<Ranges>(),
};

/// Where each stream begins.
#[derive(Clone, Debug)]
struct Ranges {
    begins: [u64; RANGES],
    unit_bytes: u64,
}

impl Classifier for Ranges {
    const ASKS_AGES: bool = false;

    fn new(setup: &ClassifierSetup) -> Self {
        let begins = ["1", "2", "3", "4", "5", "6", "7"];
        Self {
            begins: begins.map(|name| setup.parameters.value(name).bytes()),
            unit_bytes: setup.unit_bytes.into(),
        }
    }

    fn stream(&mut self, write: &UnitWrite) -> u32 {
        let at = u64::from(write.lpn.raw()) * self.unit_bytes;
        let holds = |(_, begin): &(u32, u64)| (1..=at).contains(begin);
        let begins = (1..).zip(self.begins).filter(holds);
        begins.max_by_key(|(_, begin)| *begin).map_or(0, |(stream, _)| stream)
    }

    onefold_units::keep_fields!({} but { begins, unit_bytes });
}

#[cfg(test)]
mod tests {
    use onefold_units::Lpn;

    use super::Ranges;
    use crate::ClassifierSpec;
    use crate::classifier::{Classifier, ClassifierSetup, UnitWrite};

    #[test]
    fn streams_begin_where_it_is_said() {
        let spec = ClassifierSpec::parse("ranges:1=16KiB,3=8KiB,2=1MiB").unwrap();
        let (parameters, unit_bytes) = (spec.parameters(), 4096);
        let setup = ClassifierSetup { parameters, units: 1024, unit_bytes, streams: 4 };
        let mut ranges = Ranges::new(&setup);
        let mut stream = |lpn| {
            let lpn = Lpn::new(lpn);
            ranges.stream(&UnitWrite { lpn, units: 1, stream: 9, age: None })
        };
        assert_eq!([0, 1, 2, 3, 4, 255, 256, 1023].map(&mut stream), [0, 0, 3, 3, 1, 1, 2, 2]);
    }
}
