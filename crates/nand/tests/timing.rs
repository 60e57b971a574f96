//! Latencies and rates against the closed forms of ssd.md 1.3.

use onefold_nand::{
    At, CellTimes, ERASED_SPARE, FaultSpec, Geometry, GeometrySpec, Nand, NullMedia, Span,
    Timelines, TimingSpec, Work, channel_time,
};
use onefold_units::convert::float;
use onefold_units::{Nanos, Ppn, Rng};

const US: u64 = 1000;

fn cell(times: &[u64]) -> CellTimes {
    let times: Vec<Nanos> = times.iter().map(|us| Nanos::new(us * US)).collect();
    CellTimes::new(&times).unwrap()
}

/// The comparison device `s1`.
fn s1() -> (GeometrySpec, TimingSpec) {
    let geometry = GeometrySpec {
        channels: 8,
        ways: 2,
        planes: 1,
        blocks: 256,
        pages: 256,
        page_bytes: 4096,
        unit_bytes: 4096,
        span: Span::Die,
    };
    (geometry, TimingSpec::EXAMPLE)
}

fn host(now: u64) -> At {
    At { now: Nanos::new(now), ready: Nanos::new(now), work: Work::Host }
}

/// 4 KiB at 400 MB/s.
const TRANSFER: u64 = 10_240;

#[test]
fn a_read_alone_takes_array_and_transfer() {
    let (geometry, timing) = s1();
    let geometry = Geometry::new(geometry).unwrap();
    assert_eq!(channel_time(&timing, 4096), Nanos::new(TRANSFER));
    let mut nand = Nand::new(geometry, timing, FaultSpec::default(), NullMedia);
    let mut now = 0;
    for n in 0..100 {
        let grant = nand
            .read(host(now), Ppn::new(n * 37), 4096, &mut [], &mut ERASED_SPARE.clone())
            .unwrap();
        assert_eq!(grant.done.get() - now, 40 * US + TRANSFER);
        now = grant.done.get();
    }
    // Less of the page is less of the transfer only.
    let grant = nand.read(host(now), Ppn::new(5), 512, &mut [], &mut ERASED_SPARE.clone()).unwrap();
    assert_eq!(grant.done.get() - now, 40 * US + 1280);
}

/// Reads per second in a closed loop over random dies, queue deep enough that every die has work.
fn saturated_reads(geometry: GeometrySpec, timing: TimingSpec) -> f64 {
    let geometry = Geometry::new(geometry).unwrap();
    let mut nand = Nand::new(geometry, timing, FaultSpec::default(), NullMedia);
    let dies = geometry.dies();
    let requests = 20_000;
    let mut last = 0;
    // All are there at time zero, die by die in turn.
    for n in 0..requests {
        let superblock = onefold_units::SuperblockId::new(n % dies);
        let ppn = geometry.ppn(superblock, n / dies % geometry.slots());
        let grant = nand.read(host(0), ppn, 4096, &mut [], &mut ERASED_SPARE.clone()).unwrap();
        last = last.max(grant.done.get());
    }
    f64::from(requests) * 1e9 / float(last)
}

fn assert_within(found: f64, expected: f64, share: f64) {
    assert!(
        (found / expected - 1.0).abs() < share,
        "{found:.0} per second, expected {expected:.0}"
    );
}

#[test]
fn saturated_reads_meet_the_closed_forms() {
    let (geometry, timing) = s1();
    let dies = f64::from(geometry.channels * geometry.ways);
    let (read, transfer) = (40e-6, float(TRANSFER) * 1e-9);
    // The one page register is taken from the array read to the end of the transfer.
    let rate = saturated_reads(geometry, timing);
    assert_within(rate, dies / (read + transfer), 0.01);
    // With cache commands the next array read overlaps the transfer.
    let cached = TimingSpec { cache_read: true, ..timing };
    assert_within(saturated_reads(geometry, cached), dies / read, 0.01);
    // Many dies on a channel: the channel is the bound, either way.
    let crowded = GeometrySpec { ways: 8, ..geometry };
    let channels = f64::from(geometry.channels) / transfer;
    assert_within(saturated_reads(crowded, cached), channels, 0.01);
    assert_within(saturated_reads(crowded, timing), channels, 0.01);
}

fn saturated_programs(timing: TimingSpec, count: u32) -> u64 {
    let (geometry, _) = s1();
    let geometry = Geometry::new(geometry).unwrap();
    let mut timelines = Timelines::new(&geometry, timing);
    let mut last = 0;
    for n in 0..count {
        let place = geometry.locate(onefold_units::SuperblockId::new(0), n, 0);
        let now = Nanos::ZERO;
        last = timelines.program(now, now, place, 4096, Work::Host, 1).done.get();
    }
    last
}

#[test]
fn cache_program_hides_the_transfer() {
    let (_, timing) = s1();
    let plain = saturated_programs(timing, 50);
    assert_eq!(plain, 50 * (200 * US + TRANSFER));
    let cached = saturated_programs(TimingSpec { cache_program: true, ..timing }, 50);
    assert_eq!(cached, TRANSFER + 50 * 200 * US);
}

#[test]
fn each_page_type_has_its_latency() {
    let (geometry, timing) = s1();
    let geometry = Geometry::new(geometry).unwrap();
    let (reads, programs) = ([56, 77, 106], [820, 2225, 5734]);
    let timing = TimingSpec { read: cell(&reads), program: cell(&programs), ..timing };
    let mut timelines = Timelines::new(&geometry, timing);
    let mut now = 0;
    for row in 0..9 {
        let place = geometry.locate(onefold_units::SuperblockId::new(0), row, 0);
        assert_eq!(place.row, row);
        let kind = usize::try_from(row % 3).unwrap();
        let at = Nanos::new(now);
        let program = timelines.program(at, at, place, 4096, Work::Host, 1).done;
        assert_eq!(program.get() - now, TRANSFER + programs[kind] * US);
        let read = timelines.read(program, program, place, 4096, Work::Host, 1).done;
        assert_eq!((read - program).get(), TRANSFER + reads[kind] * US);
        now = read.get();
    }
}

#[test]
fn planes_work_side_by_side_if_they_may() {
    let (geometry, timing) = s1();
    let geometry =
        Geometry::new(GeometrySpec { channels: 1, ways: 1, planes: 2, ..geometry }).unwrap();
    let finish = |plane_parallel: bool| {
        let mut timelines = Timelines::new(&geometry, TimingSpec { plane_parallel, ..timing });
        let mut last = 0;
        for n in 0..2 {
            let place = geometry.locate(onefold_units::SuperblockId::new(0), n, 0);
            assert_eq!(place.plane, n);
            let now = Nanos::ZERO;
            last = timelines.program(now, now, place, 4096, Work::Host, 1).done.get();
        }
        last
    };
    assert_eq!(finish(false), 2 * (200 * US + TRANSFER));
    // Only the transfers share the channel.
    assert_eq!(finish(true), 2 * TRANSFER + 200 * US);
}

/// Ten programs wait on one die; a read comes.
fn read_behind_programs(read_priority: Nanos, reads: u32) -> (Vec<u64>, u64) {
    let (geometry, timing) = s1();
    let geometry = Geometry::new(geometry).unwrap();
    let mut timelines = Timelines::new(&geometry, TimingSpec { read_priority, ..timing });
    let place = geometry.locate(onefold_units::SuperblockId::new(0), 0, 0);
    let zero = Nanos::ZERO;
    for _ in 0..10 {
        timelines.program(zero, zero, place, 4096, Work::Background, 1);
    }
    let now = Nanos::new(US);
    let done = |n: u32| {
        let _ = n;
        timelines.read(now, now, place, 4096, Work::Host, 1).done.get()
    };
    let reads = (0..reads).map(done).collect();
    let after = timelines.program(now, now, place, 4096, Work::Background, 1).done.get();
    (reads, after)
}

#[test]
fn a_read_overtakes_but_postpones_no_longer_than_the_bound() {
    let program = 200 * US + TRANSFER;
    let read = 40 * US + TRANSFER;
    let (reads, after) = read_behind_programs(Nanos::ZERO, 1);
    assert_eq!(reads, [10 * program + read], "first come, first served");
    assert_eq!(after, 11 * program + read);
    // One program runs; the read goes next.
    let (reads, after) = read_behind_programs(Nanos::new(1_000_000), 1);
    assert_eq!(reads, [program + read]);
    assert_eq!(after, 11 * program + read, "the work behind it moves back by the read");
    // Three reads fit the bound; the fourth queues behind everything.
    let (reads, _) = read_behind_programs(Nanos::new(3 * read), 4);
    assert_eq!(reads[..3], [program + read, program + 2 * read, program + 3 * read]);
    assert_eq!(reads[3], 10 * program + 4 * read);
}

#[test]
fn timelines_never_go_back() {
    for seed in 0..50 {
        let mut rng = Rng::new(seed);
        let (geometry, timing) = s1();
        let geometry = Geometry::new(GeometrySpec { channels: 2, ..geometry }).unwrap();
        let timing = TimingSpec {
            cache_read: rng.below(2) == 0,
            cache_program: rng.below(2) == 0,
            plane_parallel: rng.below(2) == 0,
            read_priority: Nanos::new(rng.below(3) * 500 * US),
            ..timing
        };
        let mut timelines = Timelines::new(&geometry, timing);
        let (mut now, mut idle) = (0, Nanos::ZERO);
        for _ in 0..3000 {
            now += rng.below(60 * US);
            let at = Nanos::new(now);
            let ready = Nanos::new(now + rng.below(20 * US));
            let die = onefold_units::convert::low32(rng.below(4));
            let place = geometry.locate(onefold_units::SuperblockId::new(die), 0, 0);
            let work = if rng.below(2) == 0 { Work::Host } else { Work::Background };
            let (grant, least) = match rng.below(10) {
                0..6 => (timelines.read(at, ready, place, 4096, work, 1), 40 * US + TRANSFER),
                6..9 => (timelines.program(at, ready, place, 4096, work, 1), 200 * US + TRANSFER),
                _ => (timelines.erase(at, ready, place, work), 2000 * US),
            };
            assert!(grant.done.get() >= ready.get() + least, "faster than the flash");
            assert!(timelines.idle_at() >= idle, "the busiest die became less busy");
            idle = timelines.idle_at();
        }
    }
}

/// Faults are drawn by operation, whether or not it takes time.
#[test]
fn slow_operations_keep_their_die_and_are_counted() {
    let (geometry, timing) = s1();
    let geometry = Geometry::new(geometry).unwrap();
    let superblock = onefold_units::SuperblockId::new(0);
    let nand = |faults| Nand::new(geometry, timing, faults, NullMedia);
    let always = FaultSpec { slow: 1.0, slow_by: 5, ..FaultSpec::default() };
    let mut slow = nand(always);
    let read = slow.read(host(0), Ppn::new(7), 4096, &mut [], &mut ERASED_SPARE.clone()).unwrap();
    assert_eq!(read.done.get(), 5 * 40 * US + TRANSFER);
    assert!(slow.was_retried());
    let at = read.done.get();
    let program = slow.program(host(at), superblock, 0, &[], &[]).unwrap();
    assert_eq!(program.done.get() - at, TRANSFER + 5 * 200 * US);
    assert_eq!((slow.slow().reads, slow.slow().programs), (1, 1));

    let some = FaultSpec { slow: 0.3, slow_by: 2, seed: 4, ..FaultSpec::default() };
    let (mut timed, mut untimed) = (nand(some), nand(some));
    untimed.set_timed(false);
    let (mut now, mut seen) = (0, 0);
    for n in 0..1000 {
        let ppn = Ppn::new(n % 64);
        let grant = timed.read(host(now), ppn, 4096, &mut [], &mut ERASED_SPARE.clone()).unwrap();
        untimed.read(host(0), ppn, 4096, &mut [], &mut ERASED_SPARE.clone()).unwrap();
        let took = grant.done.get() - now;
        assert_eq!(took, if timed.was_retried() { 80 * US } else { 40 * US } + TRANSFER);
        seen += u64::from(timed.was_retried());
        now = grant.done.get();
    }
    assert_eq!((timed.slow().reads, untimed.slow()), (seen, timed.slow()));
    assert!((250..350).contains(&seen), "{seen} of 1000");
}
