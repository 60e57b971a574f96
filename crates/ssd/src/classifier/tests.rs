use onefold_ftl::VictimSpec;
use onefold_nand::NullMedia;
use onefold_units::convert::float;
use onefold_units::{Cause, Lpn, Nanos, Op, Rng};

use super::{
    BuildClassifier, Classified, Classifier, ClassifierInfo, ClassifierSetup, ClassifierSpec,
    UnitWrite,
};
use crate::{Command, Payload, Ssd, SsdConfig, example_config};

/// Asks for a stream by everything it is told, so that a test sees all of it.
struct Tells;

static TELLS: ClassifierInfo =
    ClassifierInfo::new("tells", "Packs what it is told.", BuildClassifier::of::<Tells>());

impl Classifier for Tells {
    fn new(setup: &ClassifierSetup) -> Self {
        assert_eq!((setup.units, setup.unit_bytes, setup.streams), (100, 4096, 3));
        Self
    }

    fn stream(&mut self, write: &UnitWrite) -> u32 {
        let age = write.age.map_or(99, |age| u32::try_from(age).unwrap());
        write.lpn.raw() * 1_000_000 + write.units * 10_000 + write.stream * 100 + age
    }
}

#[test]
fn a_classifier_is_told_of_unit_company_stream_and_age() {
    let spec = ClassifierSpec::new(&TELLS);
    let mut classified = Classified::new(&spec, 100, 4096, 3).unwrap();
    let mut stream = |lpn, units, asked| classified.stream(Lpn::new(lpn), units, asked);
    assert_eq!(stream(7, 1, 0), 7_010_099);
    assert_eq!(stream(8, 5, 2), 8_050_299);
    assert_eq!(stream(7, 2, 1), 7_020_102);
    assert_eq!(stream(7, 2, 1), 7_020_101);
    // A unit that the device does not have is none of its business.
    assert_eq!(stream(100, 2, 1), 1);
}

/// WAF of a fill and six drive writes, nine of ten of which go to a tenth of the drive.
fn waf(classifier: &str, streams: u32, buffer: u64) -> f64 {
    let mut config =
        SsdConfig { classifier: ClassifierSpec::parse(classifier).unwrap(), ..example_config() };
    config.ftl.streams = streams;
    // Collection shares the first stream: with a frontier of its own it keeps cold data apart already.
    config.ftl.separate_gc = false;
    config.ftl.victim = VictimSpec::parse("cost-benefit").unwrap();
    config.buffer.bytes = buffer;
    config.buffer.volatile = false;
    let mut ssd = Ssd::new(config, NullMedia).unwrap();
    let units = ssd.capacity() / 4096;
    let mut rng = Rng::new(5);
    let write = |ssd: &mut Ssd<NullMedia>, unit: u64| {
        let command = Command::new(Op::Write, unit * 4096, 4096);
        ssd.submit(Nanos::ZERO, &command, Payload::None).unwrap();
    };
    for unit in 0..units {
        write(&mut ssd, unit);
    }
    for _ in 0..6 * units {
        let hot = rng.below(10) > 0;
        let unit = if hot { rng.below(units / 10) } else { rng.below(units) };
        write(&mut ssd, unit);
    }
    let programs = ssd.ftl().stats().programs;
    let [all, user] = [programs.total(), programs.of(Cause::User)];
    float(all) / float(user)
}

#[test]
fn separating_hot_from_cold_saves_copies() {
    for buffer in [0, 64 * 4096] {
        let [host, one, split] = [("host", 2), ("hot-cold", 1), ("hot-cold", 2)]
            .map(|(name, streams)| waf(name, streams, buffer));
        assert!((host - one).abs() < 1e-9, "one stream is no choice: {host} {one}");
        assert!(split - 1.0 < 0.8 * (host - 1.0), "{split} against {host}");
        let nothing_is_soon = waf("hot-cold:within=0", 2, buffer);
        assert!((nothing_is_soon - host).abs() < 1e-9, "{nothing_is_soon}");
    }
}

/// With collection apart, as drives have it: what streams add to that.
#[test]
fn streams_that_nobody_asked_for_save_copies() {
    let [one, auto, again] =
        [("host", 8), ("auto", 8), ("auto", 8)].map(|(name, streams)| waf(name, streams, 0));
    assert!(auto - 1.0 < 0.8 * (one - 1.0), "{auto} against {one}");
    assert!((auto - again).abs() < 1e-9, "the same each time: {auto} {again}");
}
