//! A policy with a table and two streams, and what it is told and costs.

use onefold_buffer::{
    Access, Actions, Area, Cache, Entries, FtlView, ListId, NodeId, PolicySpec, Replacement, Req,
    Setup, Sizes,
};
use onefold_nand::NullMedia;
use onefold_units::convert::narrow;
use onefold_units::{Lpn, Nanos, Op, Rng};

use super::View;
use crate::buffered::Buffered;
use crate::unit_set::UnitSet;
use crate::{Command, Payload, Ssd, SsdConfig, example_config};

const PAGE: u64 = 4096;

/// Units from 64 on are append-only data; every request looks up its table three times.
#[derive(Clone)]
struct Halves;

impl Replacement for Halves {
    const AREAS: &'static [Area] = &[Area::new("small"), Area::append_only("appended")];

    fn new(_: &Setup) -> Self {
        Self
    }

    fn begin(&mut self, _: &Req, _: &dyn FtlView, _: &Entries, out: &mut Actions) {
        (0..3).for_each(|_| out.look_up());
    }

    fn hit(&mut self, _: &mut Entries, _: NodeId, _: Access, _: &mut Actions) {}

    fn admit(
        &mut self,
        e: &mut Entries,
        key: u32,
        _: Option<NodeId>,
        _: Access,
        out: &mut Actions,
    ) -> Option<NodeId> {
        let list = ListId(u8::from(key >= 64));
        if e.is_full() && e.evict(list, out) == 0 {
            e.evict(ListId(1 - list.0), out);
        }
        Some(e.insert(list, key))
    }
}

fn device(streams: u32, separate_streams: bool) -> Ssd<NullMedia> {
    let mut config = SsdConfig { separate_streams, ..example_config() };
    config.ftl.streams = streams;
    config.buffer.bytes = 8 * PAGE;
    let mut ssd = Ssd::new(config, NullMedia).unwrap();
    let sizes = Sizes::of_one_die(4096, ssd.capacity());
    let policy = Box::new(Cache::<Halves>::new(&config.buffer, &sizes).unwrap());
    let mut buffer = Buffered::new::<NullMedia>(policy, &config, ssd.ftl().host_units());
    // A simulator notes dirty units only for policies that ask.
    buffer.dirty = UnitSet::new(ssd.ftl().host_units());
    ssd.buffer = Some(buffer);
    ssd
}

fn submit(ssd: &mut Ssd<NullMedia>, op: Op, first: u64, n: u64) -> u64 {
    let command = Command::new(op, first * PAGE, n * PAGE);
    ssd.submit(Nanos::ZERO, &command, Payload::None).unwrap().at.get()
}

#[test]
fn each_look_up_costs_a_dram_access() {
    let mut ssd = device(1, true);
    assert_eq!(submit(&mut ssd, Op::Write, 0, 1), 300 + 1000);
    assert_eq!(submit(&mut ssd, Op::Read, 0, 1), 300 + 1000);
    assert_eq!(submit(&mut ssd, Op::Trim, 0, 1), 300);
    assert_eq!(ssd.buffer_stats().unwrap().lookups, 9);
}

/// Superblocks of what the buffer wrote: small data, then append-only data.
fn places(streams: u32, separate_streams: bool) -> [usize; 2] {
    let mut ssd = device(streams, separate_streams);
    submit(&mut ssd, Op::Write, 0, 4);
    submit(&mut ssd, Op::Write, 64, 4);
    submit(&mut ssd, Op::Flush, 0, 0);
    let ftl = ssd.ftl();
    [0, 64].map(|lpn| {
        let ppn = ftl.slot(Lpn::new(lpn)).expect("it was flushed");
        ftl.nand().geometry().split(ppn).0.index()
    })
}

#[test]
fn append_only_data_has_superblocks_of_its_own() {
    let [small, appended] = places(2, true);
    assert_ne!(small, appended);
    for [small, appended] in [places(1, true), places(2, false)] {
        assert_eq!(small, appended);
    }
}

/// A unit holds data from its first write on, wherever it is, until it is trimmed.
#[test]
fn policies_see_what_was_written_and_not_trimmed() {
    let mut ssd = device(1, true);
    let mut rng = Rng::new(3);
    let mut written = [false; 160];
    for _ in 0..2000 {
        let first = rng.below(150);
        let n = 1 + rng.below(10);
        let (op, first, n) = match rng.below(16) {
            0..9 => (Op::Write, first, n),
            9..14 => (Op::Trim, first, n),
            _ => (Op::Flush, 0, 0),
        };
        submit(&mut ssd, op, first, n);
        for unit in first..first + n {
            written[usize::try_from(unit).unwrap()] = op == Op::Write;
        }
        let buffer = ssd.buffer.as_ref().unwrap();
        let view = View { ftl: &ssd.ftl, dirty: &buffer.dirty, holes: &buffer.holes };
        let units = || (0..160_u32).map(Lpn::new);
        assert!(units().zip(written).all(|(lpn, written)| view.mapped(lpn) == written));
        let (at, n) = (rng.below(160), rng.below(160));
        let (begin, end) = (usize::try_from(at).unwrap(), usize::try_from(at + n).unwrap());
        let expected = written[begin..end.min(160)].iter().filter(|written| **written).count();
        let counted = view.mapped_count(Lpn::new(narrow(at)), narrow(n));
        assert_eq!(usize::try_from(counted).unwrap(), expected, "{n} from {at}");
    }
}

/// Where nobody asks, a simulator keeps no set of dirty units: it would follow the device's size.
#[test]
fn dirty_units_are_noted_only_for_those_who_ask() {
    let noted = |text: &str| {
        let mut config = example_config();
        config.buffer.policy = PolicySpec::parse(text).unwrap();
        let policy = device(1, true).buffer.unwrap().policy;
        let mut buffer = Buffered::new::<NullMedia>(policy, &config, 100);
        buffer.dirty.insert(Lpn::new(5));
        buffer.dirty.contains(Lpn::new(5))
    };
    assert!(!noted("lru") && !noted("aoi:reaccess=cursor"));
    assert!(noted("aoi"));
}
