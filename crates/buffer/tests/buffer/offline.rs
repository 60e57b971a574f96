//! Bounds: exact counts, naive models, and no policy beyond them.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use crate::common::build::{build, every_policy, try_build};
use crate::common::replay::{Written, cells};
use crate::common::streams::{Case, case};
use crate::common::traces::{G2, g1};
use crate::common::unmapped::Unmapped;
use onefold_buffer::offline::{
    LruCurve, MissRatios, NextUse, NextWrite, Request, Sampling, min, min_by_request, min_bypass,
    min_bypass_by_request, min_w, stack_distances,
};
use onefold_buffer::{Action, Actions, Counts, Req, TenantStats};
use onefold_units::Op;
use onefold_units::convert::float;
use proptest::prelude::*;

fn requests(stream: &[Req]) -> Vec<Request> {
    stream.iter().map(|r| Request::from(&r.whole_entries())).collect()
}

#[test]
fn g1_miss_ratios() {
    let read = |lpn| Request { op: Op::Read, tenant: 0, lpn, n: 1 };
    let requests: Vec<Request> = g1().into_iter().map(read).collect();
    let next = NextUse::new(&requests);
    for (slots, golden, golden_bypass) in
        [(1_000, 0.335_524, 0.335_454), (10_000, 0.157_240, 0.157_234)]
    {
        let misses = float(min(&next, slots).total().reads.misses()) / 1e6;
        assert!((misses - golden).abs() < 5e-7, "MIN, {slots}: {misses}");
        let misses = float(min_bypass(&next, slots).total().reads.misses()) / 1e6;
        assert!((misses - golden_bypass).abs() < 5e-7, "min-bypass, {slots}: {misses}");
    }
}

#[test]
fn g2_counts() {
    let requests = requests(&G2::new().requests);
    let (next, next_write) = (NextUse::new(&requests), NextWrite::new(&requests));
    for (slots, golden, least) in
        [(512, [36_094, 34_619, 224_243], 198_412), (2048, [64_763, 49_681, 207_939], 140_392)]
    {
        let total = min(&next, slots).total();
        assert_eq!(cells(&total), golden);
        assert_eq!(total.flash_reads, total.reads.misses());
        assert_eq!((total.reads.pages, total.trim_pages), (92_919, 168_960));
        assert_eq!(min_w(&next_write, slots).total().pages_programmed, least);
    }
}

/// What the naive models work on: one page of one request.
#[derive(Clone, Copy)]
struct Page {
    op: Op,
    tenant: u8,
    lpn: u32,
}

fn pages(requests: &[Request]) -> Vec<Page> {
    let pages = |r: &Request| {
        let Request { op, tenant, lpn, n } = *r;
        (lpn..lpn + n).map(move |lpn| Page { op, tenant, lpn })
    };
    let touching = requests.iter().filter(|r| r.op != Op::Flush);
    touching.flat_map(pages).collect()
}

/// Position of the next page access; trimmed before or none = after all, lower pages being later.
fn next_use(pages: &[Page], at: usize) -> (usize, i64) {
    let lpn = pages[at].lpn;
    let next = pages[at + 1..].iter().position(|page| page.lpn == lpn);
    match next.filter(|next| pages[at + 1 + next].op != Op::Trim) {
        Some(next) => (next, 0),
        None => (usize::MAX, -i64::from(lpn)),
    }
}

/// Flash pages read and programmed.
type Work = (u32, u32);

/// MIN page by page: the buffer has the position of each page's next use, and who wrote it. Returns
/// what each page took, too.
fn naive_min(requests: &[Request], slots: usize, always: bool) -> ([TenantStats; 3], Vec<Work>) {
    let pages = pages(requests);
    let mut stats = [TenantStats::default(); 3];
    let mut work = vec![(0, 0); pages.len()];
    let mut kept: BTreeMap<u32, ((usize, i64), Option<u8>)> = BTreeMap::new();
    for (at, page) in pages.iter().enumerate() {
        let tenant = usize::from(page.tenant);
        let found = kept.remove(&page.lpn);
        let writer = found.and_then(|(_, writer)| writer);
        if page.op == Op::Trim {
            if let Some(writer) = writer {
                stats[usize::from(writer)].trim_discards += 1;
            }
            continue;
        }
        let write = page.op != Op::Read;
        let next = match next_use(&pages, at) {
            (usize::MAX, order) => (usize::MAX, order),
            (distance, order) => (at + distance, order),
        };
        let mut leaving = None;
        if found.is_some() {
            let counts = if write { &mut stats[tenant].writes } else { &mut stats[tenant].reads };
            counts.hits += 1;
        } else if kept.len() == slots {
            let farthest = kept.iter().max_by_key(|(_, (next, _))| *next);
            leaving = farthest.map(|(lpn, (next, _))| (*lpn, *next));
        }
        if write && let Some(writer) = writer {
            stats[usize::from(writer)].overwritten += 1;
        }
        let owner = if write { Some(page.tenant) } else { writer };
        // Among pages without a next use a newcomer is refused, as one more gains nothing.
        let refused =
            !always && leaving.is_some_and(|(_, other)| other < next || next.0 == usize::MAX);
        let gone = match leaving {
            _ if refused => owner,
            Some((lpn, _)) => kept.remove(&lpn).unwrap().1,
            None => None,
        };
        if let Some(gone) = gone {
            stats[usize::from(gone)].pages_programmed += 1;
        }
        work[at] = (u32::from(found.is_none() && !write), u32::from(gone.is_some()));
        if !refused {
            kept.insert(page.lpn, (next, owner));
        }
    }
    (stats, work)
}

/// The same for whole reads and writes.
fn by_request(requests: &[Request], mut pages: &[Work]) -> Vec<Work> {
    let mut of_request = |r: &Request| {
        let (own, others) = pages.split_at(usize::try_from(r.n).unwrap());
        pages = others;
        let sum = own.iter().fold((0, 0), |sum, page| (sum.0 + page.0, sum.1 + page.1));
        (r.op != Op::Trim && r.n > 0).then_some(sum)
    };
    requests.iter().filter(|r| r.op != Op::Flush).filter_map(&mut of_request).collect()
}

/// What the naive models count.
fn counted(stats: &TenantStats) -> [u64; 5] {
    let TenantStats { reads, writes, pages_programmed, overwritten, trim_discards, .. } = stats;
    [reads.hits, writes.hits, *pages_programmed, *overwritten, *trim_discards]
}

/// The intervals of [`min_w`]: from a write to the next write or TRIM of its page.
fn intervals(pages: &[Page]) -> Vec<(usize, usize)> {
    let interval = |(at, page): (usize, &Page)| {
        let ends = |other: &Page| other.lpn == page.lpn && other.op != Op::Read;
        let end = pages[at + 1..].iter().position(ends).map_or(usize::MAX, |next| at + 1 + next);
        matches!(page.op, Op::Write | Op::WriteZeroes).then_some((at, end))
    };
    pages.iter().enumerate().filter_map(interval).collect()
}

/// The largest number of intervals that can wait, by trying all sets.
fn most_waiting(intervals: &[(usize, usize)], slots: usize, chosen: &mut Vec<usize>) -> usize {
    let Some(((start, end), rest)) = intervals.split_first() else { return 0 };
    let without = most_waiting(rest, slots, chosen);
    if chosen.iter().filter(|end| *end > start).count() == slots {
        return without;
    }
    chosen.push(*end);
    let with = 1 + most_waiting(rest, slots, chosen);
    chosen.pop();
    with.max(without)
}

/// A policy with the requests of a case: what it counts, and whether it refused a read. `None` if it
/// cannot be built so small.
fn policy(spec: &str, case: &Case) -> Option<(TenantStats, bool)> {
    let mut policy = try_build(spec, case.slots, 4096, case.k, false).ok()?;
    let (mut out, mut written, mut refused) = (Actions::new(), Written::default(), false);
    for r in &case.requests {
        let r = r.whole_entries();
        policy.request(&r, &written, &mut out);
        written.note(&r);
        refused |= out.as_slice().iter().any(|step| matches!(step, Action::Bypass { .. }));
    }
    Some((policy.stats().total(), refused))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn min_equals_the_naive_model(case in case(), slots in 1..40_u32) {
        let requests = requests(&case.requests);
        let next = NextUse::new(&requests);
        let pages = usize::try_from(slots).unwrap();
        for always in [true, false] {
            let mut work = Vec::new();
            let note = |_: &Request, counts: Counts| work.push((counts.reads, counts.programs));
            let found = if always {
                min_by_request(&next, slots, note)
            } else {
                min_bypass_by_request(&next, slots, note)
            };
            let (naive, by_page) = naive_min(&requests, pages, always);
            prop_assert_eq!(work, by_request(&requests, &by_page));
            for (tenant, naive) in (0..).zip(naive) {
                let found = found.tenant(tenant);
                prop_assert_eq!(counted(&found), counted(&naive), "always {}", always);
                let accounted = found.pages_programmed + found.overwritten + found.trim_discards;
                prop_assert_eq!(found.writes.pages, accounted + found.dirty);
            }
        }
    }

    #[test]
    fn min_w_is_the_least(case in case(), slots in 0..5_u32) {
        let mut requests = requests(&case.requests);
        requests.truncate(9);
        for r in &mut requests {
            (r.lpn, r.n) = (r.lpn % 5, r.n.min(3));
        }
        let intervals = intervals(&pages(&requests));
        prop_assume!(intervals.len() < 15);
        let waiting = most_waiting(&intervals, usize::try_from(slots).unwrap(), &mut Vec::new());
        let least = u64::try_from(intervals.len() - waiting).unwrap();
        let found = min_w(&NextWrite::new(&requests), slots).total();
        prop_assert_eq!(found.pages_programmed, least);
        let accounted = found.pages_programmed + found.overwritten + found.trim_discards;
        prop_assert_eq!(found.writes.pages, accounted + found.dirty);
    }

    #[test]
    fn no_policy_passes_the_bounds(case in case()) {
        let requests = requests(&case.requests);
        let (next, next_write) = (NextUse::new(&requests), NextWrite::new(&requests));
        let hits = |total: TenantStats| total.accesses().hits;
        let most_always = hits(min(&next, case.slots).total());
        let most = hits(min_bypass(&next, case.slots).total());
        let least = min_w(&next_write, case.slots).total().pages_programmed;
        prop_assert!(most_always <= most);
        for spec in every_policy() {
            let Some((total, refused)) = policy(spec, &case) else { continue };
            prop_assert!(hits(total) <= most, "{}", spec);
            prop_assert!(refused || hits(total) <= most_always, "{}", spec);
            prop_assert!(total.all_programmed() >= least, "{}", spec);
        }
    }

    /// One pass tells the hits of LRU at every size, TRIMs included.
    #[test]
    fn stack_distances_are_lru(case in case()) {
        let requests = requests(&case.requests);
        let distances = stack_distances(&requests);
        for slots in 1..45 {
            let case = Case { slots, k: 1, ..case.clone() };
            let total = policy("lru", &case).unwrap().0;
            prop_assert_eq!(total.reads.hits, distances.read_hits(slots), "{} slots", slots);
            prop_assert_eq!(total.writes.hits, distances.write_hits(slots), "{} slots", slots);
        }
        prop_assert_eq!(distances.read_hits(0), 0);
    }

    /// So does a curve, for pages anywhere. A sample with room for all pages is no sample.
    #[test]
    fn a_curve_is_lru(case in case(), far in prop::sample::select(vec![0, 1_u64 << 50])) {
        let sizes: Vec<u64> = (1..45).collect();
        let samples = [Sampling::All, Sampling::Rate(1.0), Sampling::Pages(NonZeroU32::MAX)];
        for sampling in samples {
            let mut curve = LruCurve::new(sizes.clone(), sampling, 7);
            for r in requests(&case.requests) {
                let (first, n) = (far + u64::from(r.lpn), u64::from(r.n));
                match r.op {
                    Op::Read => curve.read(first, n),
                    Op::Write | Op::WriteZeroes => curve.write(first, n),
                    Op::Trim => curve.trim(first, n),
                    Op::Flush => {}
                }
            }
            for (slots, at) in (1..).zip(curve.miss_ratios()) {
                let total = policy("lru", &Case { slots, k: 1, ..case.clone() }).unwrap().0;
                prop_assert_eq!(at.pages, u64::from(slots));
                for (ratio, counts) in [(at.reads, &total.reads), (at.writes, &total.writes)] {
                    let misses = ratio.unwrap_or(0.0) * float(counts.pages);
                    prop_assert!(
                        (misses - float(counts.misses())).abs() < 1e-6,
                        "{} slots, {:?}: {}, {:?}", slots, sampling, misses, counts
                    );
                }
            }
        }
    }
}

/// The sample of a Zipf stream is near the exact curve at sizes that hold 100 pages of the sample, and
/// its memory is bounded by its pages.
#[test]
fn a_sample_is_near_the_curve() {
    let sizes: Vec<u64> = (12..18).map(|power| 1 << power).collect();
    let curve = |sampling| {
        let mut curve = LruCurve::new(sizes.clone(), sampling, 1);
        for page in g1() {
            curve.read(page.into(), 1);
        }
        curve
    };
    let all = curve(Sampling::All);
    for (sampling, limit) in
        [(Sampling::Rate(0.1), 0.01), (Sampling::Pages(NonZeroU32::new(4096).unwrap()), 0.02)]
    {
        let sample = curve(sampling);
        let far = |(exact, near): (MissRatios, MissRatios)| {
            (exact.reads.unwrap() - near.reads.unwrap()).abs()
        };
        let worst = all.miss_ratios().zip(sample.miss_ratios()).map(far).fold(0.0, f64::max);
        assert!(worst < limit, "{sampling:?}: {worst}");
        let pages = float(sample.distinct_pages()) / float(all.distinct_pages());
        assert!((pages - 1.0).abs() < 0.05, "{sampling:?}: {pages}");
        if let Sampling::Pages(most) = sampling {
            assert_eq!(sample.sampled_pages(), u64::from(most.get()));
        }
    }
}

#[test]
fn stack_distances_of_g2() {
    let trace = G2::new();
    let distances = stack_distances(&requests(&trace.requests));
    for (slots, golden) in [(512, [7_011, 11_947]), (2048, [18_810, 22_595])] {
        assert_eq!([distances.read_hits(slots), distances.write_hits(slots)], golden);
    }
    let mut everything = build("lru", 30_000, 4096, 1, true);
    let mut out = Actions::new();
    let mut touched = BTreeSet::new();
    for r in &trace.requests {
        everything.request(r, &Unmapped, &mut out);
        touched.extend(r.lpn.raw()..r.lpn.raw() + r.n);
    }
    assert!(touched.len() < 30_000);
    let total = everything.stats().total();
    assert_eq!(distances.read_hits(u32::MAX), total.reads.hits);
    assert_eq!(distances.write_hits(30_000), total.writes.hits);
}

/// Runs over the end of the address space end there; nothing to do is nothing.
#[test]
fn edges() {
    let r = |op, n| Request { op, tenant: 0, lpn: 7, n };
    let empty = [r(Op::Read, 0), r(Op::Flush, 3), r(Op::Trim, 0)];
    assert_eq!(min(&NextUse::new(&empty), 4).total(), TenantStats::default());
    assert_eq!(stack_distances(&[]).write_hits(9), 0);
    let twice = [r(Op::Write, 5), r(Op::Write, 5)];
    let total = min(&NextUse::new(&twice), 0).total();
    assert_eq!((total.writes.hits, total.pages_programmed, total.dirty), (0, 10, 0));
}
