use onefold_buffer::{Appends, Req};
use onefold_units::{Lpn, Op, Rng};

use super::{Auto, Chunk, Class, log};
use crate::ClassifierSpec;
use crate::classifier::{Classifier, ClassifierSetup, UnitWrite};

/// A device of 64 MiB, in units of 16 KiB: 64 units in each of 64 chunks.
const UNITS: u32 = 4096;

struct Rig(Auto);

impl Rig {
    fn new(unit_bytes: u32, streams: u32) -> Self {
        let units = u64::from(UNITS) * 16_384 / u64::from(unit_bytes);
        let parameters = ClassifierSpec::parse("auto").unwrap().parameters();
        let mut rig = Self(Auto::new(&ClassifierSetup { parameters, units, unit_bytes, streams }));
        for unit in 0..u32::try_from(units).unwrap() {
            rig.0.stream(&write(unit));
        }
        rig
    }

    /// A request, and the stream of its first unit.
    fn request(&mut self, first: u32, units: u32) -> u32 {
        self.0.request(&Req::new(Op::Write, Lpn::new(first), units));
        let mut streams = (first..first + units).map(|unit| self.0.stream(&write(unit)));
        let stream = streams.next().unwrap();
        streams.for_each(drop);
        stream
    }
}

fn write(unit: u32) -> UnitWrite {
    UnitWrite { lpn: Lpn::new(unit), units: 1, stream: 3, age: None }
}

#[test]
fn a_class_for_each_kind_of_write() {
    let mut rig = Rig::new(16_384, 8);
    let mut rng = Rng::new(4);
    let mut seen = [[0_u32; 8]; 6];
    let below = |rng: &mut Rng, n| u32::try_from(rng.below(n)).unwrap();
    let mut note = |round: u32, kind: usize, stream: u32| {
        seen[kind][usize::try_from(stream).unwrap()] += u32::from(round >= 4000);
    };
    for round in 0..8000_u32 {
        // A ring of 1 MiB, in order.
        note(round, 0, rig.request(64 * 2 + round * 4 % 64, 4));
        // Two hot units that lie 32 MiB apart, each in a chunk that is hardly written.
        note(round, 1, rig.request(2048 + round % 2 * 640, 1));
        // 8 MiB at random: a life of 512 writes of 1 in 8.
        let random = 1024 + below(&mut rng, 512);
        note(round, 2, rig.request(random, 1));
        // 24 MiB at random, once in a while.
        if round % 4 == 0 {
            let random = 2560 + below(&mut rng, 1536);
            rig.request(random, 1);
        }
        // A file that is written once, in order.
        if round % 32 == 0 {
            note(round, 3, rig.request(192 + round / 32 * 3, 3));
        }
    }
    let most = |kind: usize| (0..8).max_by_key(|stream| seen[kind][*stream]).unwrap();
    assert_eq!(most(0), 7, "a ring: {seen:?}");
    assert!(most(1) >= 5, "hot: {seen:?}");
    assert!((2..=3).contains(&most(2)), "a life of a drive write or less: {seen:?}");
    assert_eq!(most(3), 1, "append-only: {seen:?}");
    assert_eq!(rig.request(4000, 1), 0, "cold");
}

/// One of four units of 4 KiB is measured, so that a file in order is no hot one.
#[test]
fn small_units_are_measured_alike() {
    for unit in [4096, 16_384, 65_536] {
        let mut rig = Rig::new(unit, 8);
        let per_mib = (1 << 20) / unit;
        let (chunks, mut streams) = (16, Vec::new());
        for _ in 0..6 {
            for first in (0..per_mib * chunks).step_by(8) {
                streams.push(rig.request(first, 8));
            }
        }
        // A ring of a quarter of the device, alone: a life of a quarter.
        let tail = &streams[streams.len() * 2 / 3..];
        let rings = tail.iter().filter(|stream| **stream == 3 || **stream == 4).count();
        assert!(rings * 10 > tail.len() * 9, "{unit}: {tail:?}");
    }
}

#[test]
fn fewer_streams_are_shared_by_neighbours() {
    let classes = [
        Class::Cold,
        Class::Append,
        Class::Half,
        Class::Quarter,
        Class::Eighth,
        Class::Short,
        Class::Metadata,
        Class::Journal,
    ];
    for streams in 1..=9 {
        let of = classes.map(|class| class.stream(streams));
        assert!(of.is_sorted_by(|a, b| a <= b && b - a <= 1), "{streams}: {of:?}");
        assert_eq!((of[0], of[7]), (0, streams.min(8) - 1), "{streams}: {of:?}");
    }
}

#[test]
fn memory_is_below_24_bytes_a_mib() {
    let mib = 1_u64 << 14;
    let chunks = u64::try_from(size_of::<Chunk>()).unwrap() * mib;
    // Two bits of appends for each MiB, and two tables of ends that do not grow with the device.
    let appends = mib / 4;
    assert!(chunks + appends <= 24 * mib, "{chunks} {appends}");
    assert!(Appends::new(mib * 64, 16_384).is_some());
    let device = Rig::new(16_384, 8).0;
    assert_eq!(device.chunks.len(), 64);
}

#[test]
fn logarithms_have_eight_steps() {
    assert_eq!([0, 1, 2, 3, 4, 6, 8, 12, 16].map(log), [1, 1, 8, 12, 16, 20, 24, 28, 32]);
    assert_eq!(log(u32::MAX), 255);
    assert!((1..100_000).is_sorted_by_key(log));
}

/// A count that wraps in the middle of a lap makes no lap longer.
#[test]
fn counts_of_writes_wrap() {
    let mut chunk = Chunk::default();
    let now = |n: u32| (u32::MAX - 150).wrapping_add(n);
    for n in 0..256 {
        chunk.count(now(n), n % 64, 64);
    }
    assert_eq!(chunk.lap, log(64));
    assert_eq!(chunk.lives(now(256), 0).0, Some(48));
    // Nobody writes for long: the lap is as long as it is already.
    assert_eq!(chunk.lives(now(255 + (1 << 16)), 0).0, Some(128));
}
