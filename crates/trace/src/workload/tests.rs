//! Tests of the specification language and of whole generators.

use std::collections::BTreeMap;

use onefold_units::convert::{float, index64, u64_from};
use onefold_units::{Nanos, Op, Rng};

use super::{
    Generator, Length, Pacing, PatternGenerator, PatternWorkload, Request, Workload, WorkloadError,
};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

fn generator(spec: &str, device: u64, seed: u64) -> Generator {
    Workload::parse(spec)
        .and_then(|workload| workload.instantiate(device, seed))
        .unwrap_or_else(|error| panic!("{spec}: {error}"))
}

fn pattern(spec: &str) -> PatternWorkload {
    match Workload::parse(spec) {
        Ok(Workload::Pattern(workload)) => workload,
        other => panic!("{spec}: {other:?}"),
    }
}

fn pattern_generator(spec: &str, device: u64, seed: u64) -> PatternGenerator {
    pattern(spec).instantiate(device, seed).unwrap_or_else(|error| panic!("{spec}: {error}"))
}

/// The next `count` requests.
fn take(generator: &mut PatternGenerator, count: usize) -> Vec<Request> {
    let mut list = vec![Request::EMPTY; count];
    let filled = generator.fill(&mut list);
    list.truncate(filled);
    list
}

fn requests(spec: &str, device: u64, seed: u64) -> Vec<Request> {
    generator(spec, device, seed).collect()
}

fn refused(spec: &str) -> WorkloadError {
    match Workload::parse(spec).and_then(|workload| workload.instantiate(GIB, 1).map(|_| workload))
    {
        Ok(workload) => panic!("{spec} was taken as {workload}"),
        Err(error) => error,
    }
}

/// Share of the requests that are `op`.
fn share(list: &[Request], op: Op) -> f64 {
    float(u64_from(list.iter().filter(|request| request.op == op).count()))
        / float(u64_from(list.len()))
}

#[track_caller]
fn near(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance, "{found}, expected {expected} +- {tolerance}");
}

/// Specifications that together use every key.
const SPECS: [&str; 15] = [
    "randwrite,bs=4KiB,qd=32,requests=10M",
    "randread",
    "write,bs=64KiB,drive_writes=2.5",
    "read,range=25%-75%,bytes=100MiB",
    "randrw,bs=4KiB:70/64KiB:30,read_share=70%,seed=0",
    "mix,rate=50k,range=1MiB-50%",
    "mix,read_share=0.3,trim_share=0.2,fresh,rate=1.5k,arrival=fixed",
    "randwrite,dist=zipf:0.99,align=512,range=512MiB",
    "randwrite,dist=hotcold:20%/80%,scatter=true",
    "randread,dist=pareto",
    "randread,dist=pareto:0.1,scatter=false",
    "randread,dist=gaussian:0.05",
    "randwrite,fua_share=0.25,flush_every=100,trim_share=0.1",
    "mix,remap_share=0.1,remap_run=64KiB,remap_move_share=0.25,read_share=0.4",
    " randwrite , bs = 6KiB:1/512:3 , align=1KiB,requests=7 ",
];

#[test]
fn canonical_form_is_a_fixed_point() {
    for spec in SPECS {
        let workload = Workload::parse(spec).unwrap();
        let canonical = workload.canonical();
        assert_eq!(Workload::parse(&canonical).as_ref(), Ok(&workload), "{spec}");
        assert_eq!(Workload::parse(&canonical).unwrap().canonical(), canonical);
    }
    let canonical = |spec| Workload::parse(spec).unwrap().canonical();
    assert_eq!(
        canonical(SPECS[0]),
        "randwrite,bs=4KiB,align=4KiB,range=0-100%,dist=uniform,qd=32,requests=10000000,\
         trim_share=0,fua_share=0,fresh=false"
    );
    assert_eq!(
        canonical(SPECS[5]),
        "mix,bs=4KiB,align=4KiB,range=1MiB-50%,dist=uniform,rate=50000,arrival=poisson,\
         requests=1000000,read_share=0.5,trim_share=0.1,fua_share=0,fresh=false"
    );
    assert_eq!(
        canonical(SPECS[8]),
        "randwrite,bs=4KiB,align=4KiB,range=0-100%,dist=hotcold:0.2/0.8,scatter=true,qd=1,\
         requests=1000000,trim_share=0,fua_share=0,fresh=false"
    );
}

#[test]
fn hot_and_cold_shares_have_three_spellings() {
    let canonical = |shares: &str| {
        let spec = format!("randwrite,dist=hotcold:{shares}");
        Workload::parse(&spec).unwrap_or_else(|error| panic!("{spec}: {error}")).canonical()
    };
    assert!(canonical("20/80").contains(",dist=hotcold:0.2/0.8,"));
    for same in ["0.2/0.8", "20%/80%", "20%/0.8", "20.0/80.0"] {
        assert_eq!(canonical(same), canonical("20/80"), "{same}");
    }
    assert_eq!(canonical("2/100"), canonical("0.02/1"));
}

#[test]
fn batches_and_single_requests_give_the_same_sequence() {
    for spec in SPECS {
        let mut batched = generator(spec, 64 * MIB * 16, 9);
        let single = batched.clone();
        let mut buffer = [Request::EMPTY; 37];
        let mut all = Vec::new();
        while all.len() < 2_000 {
            let filled = batched.fill(&mut buffer);
            all.extend_from_slice(&buffer[..filled]);
            if filled < buffer.len() {
                assert_eq!(batched.next(), None, "{spec}: the end is the end");
                break;
            }
        }
        assert_eq!(all, single.take(all.len()).collect::<Vec<_>>(), "{spec}");
        let again = generator(spec, 64 * MIB * 16, 9).take(all.len()).collect::<Vec<_>>();
        assert_eq!(all, again, "{spec}: the same seed");
    }
}

#[test]
fn every_request_is_aligned_and_inside_the_range() {
    for spec in SPECS {
        // A size that is no multiple of anything.
        let mut requests = pattern_generator(spec, GIB + 12_345, 2);
        let (start, end) =
            (requests.start_bytes(), requests.start_bytes() + requests.length_bytes());
        assert!(end <= GIB + 12_345);
        let align = u64::from(pattern(spec).align);
        let requests = take(&mut requests, 20_000);
        for request in requests.iter().filter(|request| request.op != Op::Flush) {
            assert!(request.len > 0 && request.offset % align == 0, "{spec}: {request:?}");
            assert!(request.offset >= start, "{spec}: {request:?}");
            assert!(request.offset + u64::from(request.len) <= end, "{spec}: {request:?}");
        }
    }
}

#[test]
fn seeds_matter_and_the_own_seed_wins() {
    assert_ne!(requests("randread,requests=9", GIB, 1), requests("randread,requests=9", GIB, 2));
    let own = "randread,requests=9,seed=1";
    assert_eq!(requests(own, GIB, 5), requests("randread,requests=9", GIB, 1));
    // Streams are independent: a new decision does not move the addresses.
    let plain = requests("randwrite,requests=9", GIB, 1);
    let decorated = requests("randwrite,requests=9,fua_share=0.5,rate=10", GIB, 1);
    let offsets = |list: &[Request]| list.iter().map(|request| request.offset).collect::<Vec<_>>();
    assert_eq!(offsets(&plain), offsets(&decorated));
}

#[test]
fn sequential_patterns_wrap() {
    let offsets: Vec<u64> =
        requests("write,bs=24KiB,range=8KiB-80KiB,align=4KiB,requests=5", GIB, 1)
            .iter()
            .map(|request| request.offset / 1024)
            .collect();
    assert_eq!(offsets, [8, 32, 56, 8, 32], "72 KiB hold exactly three requests");
    let offsets: Vec<u64> = requests("read,bs=3KiB,align=2KiB,range=16KiB,requests=6", GIB, 1)
        .iter()
        .map(|request| request.offset / 1024)
        .collect();
    assert_eq!(offsets, [0, 4, 8, 12, 0, 4], "each start is aligned");
}

#[test]
fn lengths() {
    assert_eq!(requests("write,requests=12", GIB, 1).len(), 12);
    assert_eq!(requests("write,bs=64KiB,bytes=100KiB", GIB, 1).len(), 2, "reached, not cut");
    assert_eq!(requests("randwrite,drive_writes=2", 16 * MIB, 1).len(), 2 * 4096);
    let mixed = requests("mix,drive_writes=2.5,range=0-50%,bs=4KiB:1/8KiB:1", 32 * MIB, 1);
    let written: u64 = mixed
        .iter()
        .filter(|request| request.op == Op::Write)
        .map(|request| u64::from(request.len))
        .sum();
    assert!((40 * MIB..40 * MIB + 8192).contains(&written), "{written}");
    let both = requests("randrw,bytes=1MiB", GIB, 1);
    assert_eq!(both.len(), 256, "reads count too");
    assert_eq!(pattern("read").length(), Length::Requests(1_000_000));
}

#[test]
fn shares_of_operations() {
    let list = requests("mix,read_share=0.3,trim_share=0.2,requests=200k", GIB, 1);
    near(share(&list, Op::Read), 0.3, 0.005);
    near(share(&list, Op::Trim), 0.2, 0.005);
    near(share(&list, Op::Write), 0.5, 0.005);
    let list = requests("randrw,requests=100k,read_share=70%,fua_share=0.25", GIB, 1);
    near(share(&list, Op::Read), 0.7, 0.006);
    let fua = list.iter().filter(|request| request.fua).count();
    near(float(u64_from(fua)) / 30_000.0, 0.25, 0.01);
    assert!(list.iter().all(|request| !request.fua || request.op == Op::Write));
    let list = requests("randwrite,trim_share=1,requests=10,range=16KiB,fresh", GIB, 1);
    near(share(&list, Op::Trim), 0.5, 0.0); // nothing to trim: a write takes its place
}

#[test]
fn weighted_sizes() {
    let list = requests("randread,bs=4KiB:70/64KiB:20/12KiB:10,requests=200k", GIB, 1);
    let mut counts = BTreeMap::new();
    for request in &list {
        *counts.entry(request.len).or_insert(0.0) += 1.0 / 200_000.0;
    }
    assert_eq!(counts.len(), 3);
    near(counts[&4096], 0.7, 0.005);
    near(counts[&65_536], 0.2, 0.005);
    near(counts[&12_288], 0.1, 0.005);
    assert!(list.iter().any(|request| request.offset % 65_536 != 0), "align is the smallest size");
}

#[test]
fn flushes_follow_every_nth_write() {
    let list = requests("randrw,flush_every=3,requests=5k", GIB, 1);
    let mut writes = 0;
    for request in &list {
        match request.op {
            Op::Write => writes += 1,
            Op::Flush => {
                assert_eq!((writes, request.len, request.offset), (3, 0, 0));
                writes = 0;
            }
            _ => {}
        }
        assert!(writes <= 3);
    }
    assert_eq!(list.len(), 5_000, "flushes are requests");
}

#[test]
fn open_loop_times() {
    let list = requests("randread,rate=3,arrival=fixed,requests=7", GIB, 1);
    let times: Vec<_> = list.iter().map(|request| request.at.unwrap().get()).collect();
    let third = 1_000_000_000_u64;
    let expected: Vec<_> = (0..7).map(|i| i * third / 3).collect();
    assert_eq!(times, expected, "no drift");
    let list = requests("randread,rate=50k,requests=200k", GIB, 1);
    let times: Vec<_> = list.iter().map(|request| request.at.unwrap()).collect();
    assert!(times.is_sorted());
    near(float(times[199_999].get()) / 4e9, 1.0, 0.01);
    // Exponential: a share of 1/e of the distances exceeds the mean.
    let mean = Nanos::new(20_000);
    let long = times.windows(2).filter(|pair| pair[1] - pair[0] > mean).count();
    near(float(u64_from(long)) / 200_000.0, 0.3679, 0.005);
    assert!(requests("randread,requests=3", GIB, 1).iter().all(|request| request.at.is_none()));
}

/// Share of the requests that start in the given part of the device.
fn share_within(list: &[Request], from: u64, to: u64) -> f64 {
    let hits = list.iter().filter(|request| (from..to).contains(&request.offset)).count();
    float(u64_from(hits)) / float(u64_from(list.len()))
}

#[test]
fn uniform_reaches_every_page_alike() {
    let list = requests("randread,requests=160k,range=64KiB-128KiB", GIB, 1);
    for page in 16..32 {
        near(share_within(&list, page * 4096, page * 4096 + 1), 1.0 / 16.0, 0.004);
    }
}

#[test]
fn skewed_shares() {
    let device = 64 * MIB;
    let list = requests("randread,dist=hotcold:0.2/0.8,requests=200k", device, 1);
    let border = (16_384 + 2) / 5 * 4096; // 20 % of the starts, rounded
    near(share_within(&list, 0, border), 0.8, 0.005);
    near(share_within(&list, 0, border / 2), 0.4, 0.005);

    let list = requests("randread,dist=pareto:0.2,scatter=false,requests=200k", device, 1);
    near(share_within(&list, 0, device / 5), 0.8, 0.005);
    near(share_within(&list, 0, device / 25), 0.64, 0.005);

    let list = requests("randread,dist=gaussian:0.1,requests=200k", device, 1);
    near(share_within(&list, device * 4 / 10, device * 6 / 10), 0.6827, 0.005);
    near(share_within(&list, device * 3 / 10, device * 7 / 10), 0.9545, 0.005);
    near(share_within(&list, 0, device / 2), 0.5, 0.005);
}

/// Requests to the most popular page, to the second, and so on.
fn popularity(list: &[Request]) -> Vec<u64> {
    let mut counts = BTreeMap::new();
    for request in list {
        *counts.entry(request.offset).or_insert(0_u64) += 1;
    }
    let mut sorted: Vec<_> = counts.into_values().collect();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    sorted
}

#[test]
fn scattering_moves_addresses_and_keeps_frequencies() {
    let device = 64 * MIB;
    for dist in ["zipf:1", "hotcold:0.1/0.9", "pareto"] {
        let straight = format!("randread,dist={dist},requests=100k,scatter=false");
        let straight = requests(&straight, device, 1);
        let scattered = format!("randread,dist={dist},requests=100k,scatter=true");
        let scattered = requests(&scattered, device, 1);
        assert_eq!(popularity(&straight), popularity(&scattered), "{dist}");
        assert!(share_within(&straight, 0, device / 4) > 0.8, "{dist}");
        let quarters =
            (0..4).map(|i| share_within(&scattered, i * device / 4, (i + 1) * device / 4));
        assert!(quarters.into_iter().all(|share| share > 0.12), "{dist} is spread");
    }
}

#[test]
fn trims_hit_data_and_settle_where_theory_says() {
    let q = 0.2;
    let pages = 4096;
    let mut requests = pattern_generator("randwrite,trim_share=0.2,requests=400k", pages * 4096, 3);
    let mut used = vec![true; 4096];
    for (at, request) in take(&mut requests, 400_000).iter().enumerate() {
        let page = &mut used[usize::try_from(request.offset / 4096).unwrap()];
        match request.op {
            Op::Trim => assert!(std::mem::replace(page, false), "request {at} trims nothing"),
            _ => *page = true,
        }
    }
    let count = u64_from(used.iter().filter(|used| **used).count());
    near(requests.in_use_share().unwrap(), float(count) / float(pages), 1e-12);
    near(requests.in_use_share().unwrap(), (1.0 - 2.0 * q) / (1.0 - q), 0.03);

    let first = requests_first_op("randwrite,trim_share=1,requests=2,fresh");
    assert_eq!(first, Op::Write, "a fresh device has nothing to trim");
    assert_eq!(requests_first_op("randwrite,trim_share=1,requests=2"), Op::Trim);
}

fn requests_first_op(spec: &str) -> Op {
    requests(spec, GIB, 1)[0].op
}

#[test]
fn trims_of_several_units_stay_in_the_range() {
    let mut requests =
        generator("randwrite,bs=4KiB:1/64KiB:1,trim_share=0.3,requests=50k", 4 * MIB, 3);
    assert!(requests.any(|request| request.op == Op::Trim && request.len > 4096));
    for request in requests {
        assert!(request.offset + u64::from(request.len) <= 4 * MIB);
    }
}

#[test]
fn a_share_gives_way_to_the_one_asked_for() {
    let workload = pattern("mix,read_share=0.95");
    near(workload.trim_share(), 0.05, 1e-12);
    let workload = pattern("mix,trim_share=0.8");
    near(workload.read_share(), 0.2, 1e-12);
    assert_eq!(Workload::parse("mix,qd=7").unwrap().pacing(), Pacing::Closed { depth: 7 });
}

#[test]
fn refusals_say_what_to_do() {
    for (spec, text) in [
        ("", "the workload is empty"),
        ("randwrit,qd=1", "did you mean `randwrite`?"),
        ("frobnicate", "`frobnicate` is no access pattern; use randwrite"),
        ("randread,request=1", "did you mean `requests`?"),
        ("randread,block=1", "unknown workload key `block`; the keys are bs, align"),
        ("randread,qd", "`qd` has no value"),
        ("randread,qd=", "`qd` has no value"),
        ("randread,qd=1,qd=2", "given twice"),
        ("randread,bs=4ms", "`bs=4ms` is malformed: expected a whole number of bytes"),
        ("randread,bs=4096:1/", "expected sizes with whole weights"),
        ("randread,bs=4KiB:0/8KiB:1", "expected weights from 1"),
        ("randread,requests=10MiB", "`requests=10MiB` is malformed"),
        ("randread,requests=0", "expected at least 1"),
        ("randread,bs=0", "`bs` is 0 bytes"),
        ("randread,bs=4KB", "`bs` is 4000 bytes, expected a multiple of 512"),
        ("randread,bs=2GiB", "at most 1GiB"),
        ("randread,align=100", "`align` is 100 bytes"),
        ("randread,qd=65537", "1 to 65536"),
        ("randread,qd=0", "1 to 65536"),
        ("randread,rate=0", "1 to 1G"),
        ("randread,qd=1,rate=5", "`qd` and `rate` exclude each other"),
        ("randwrite,bytes=1MiB,requests=1", "exclude each other"),
        ("randwrite,bytes=1MiB,drive_writes=1", "exclude each other"),
        ("randread,arrival=fixed", "`arrival` needs `rate`"),
        ("randread,rate=1,arrival=poison", "did you mean `poisson`?"),
        ("randrw,read_share=1.5", "a share from 0 to 1"),
        ("randrw,read_share=-0.1", "a share from 0 to 1"),
        ("randrw,read_share=nan", "expected a share such as 0.3"),
        ("mix,read_share=0.7,trim_share=0.4", "add up to more than 1"),
        ("randwrite,read_share=0.5", "no meaning for the pattern `randwrite`"),
        ("randread,trim_share=0.5", "no meaning for the pattern `randread`"),
        ("write,dist=zipf:1", "no meaning for the pattern `write`"),
        ("read,drive_writes=1", "no meaning for the pattern `read`"),
        ("mix,read_share=1,drive_writes=1", "never ends"),
        ("randwrite,drive_writes=0", "above 0"),
        ("randread,dist=zip:1", "did you mean `zipf`?"),
        ("randread,dist=zipf", "an exponent"),
        ("randread,dist=zipf:11", "an exponent from 0 to 10"),
        ("randread,dist=hotcold:20/0.8", "a share from 0 to 1, or a percentage such as 30%"),
        ("randread,dist=hotcold:1/99", "a share from 0 to 1, or a percentage such as 30%"),
        ("randread,dist=hotcold:20/101", "a share from 0 to 1, or a percentage such as 30%"),
        ("randread,dist=hotcold:100/80", "neither of them"),
        ("randread,dist=hotcold:0/1", "neither of them"),
        ("randread,dist=pareto:0.7", "0.001 to 0.5"),
        ("randread,dist=gaussian:0", "0.000001 to 1"),
        ("randread,scatter=true", "`scatter` needs `a skewed dist`"),
        ("randread,fresh", "no meaning"),
        ("mix,fresh=maybe", "true or false"),
        ("randread,range=2GiB-1GiB", "an end that lies behind the start"),
        ("randread,range=0-101%", "percentages from 0 to 100"),
        ("randread,range=10-50%", "`range` is 10 bytes"),
        ("randread,range=2GiB", "the range ends at byte 2147483648, but the device has 1073741824"),
        ("randread,range=60%-512MiB", "the range holds 0 bytes"),
        ("randread,bs=1MiB,range=512KiB", "the range holds 0 bytes after rounding"),
        ("randread,seed=x", "`seed=x` is malformed"),
        ("randwrite,flush_every=0", "at least 1"),
    ] {
        let error = refused(spec).to_string();
        assert!(error.contains(text), "{spec}: {error}");
    }
    let huge = Workload::parse("mix,bs=512").unwrap().instantiate(1 << 50, 1);
    assert!(matches!(huge, Err(WorkloadError::TooManyUnits { .. })));
    let huge = Workload::parse("randread,dist=zipf:1,bs=512").unwrap().instantiate(u64::MAX, 1);
    assert!(matches!(huge, Err(WorkloadError::TooManyUnits { .. })));
    assert!(Workload::parse("randread").unwrap().instantiate(u64::MAX, 1).is_ok());
}

/// Damaged specifications on devices of odd sizes: an error or requests, never a panic.
#[test]
fn no_input_panics() {
    let mut rng = Rng::new(11);
    let words = b"0123456789.,-%=:/kKMGiBmte ";
    let mut taken = 0;
    for round in 0..40_000 {
        let mut spec = SPECS[round % SPECS.len()].as_bytes().to_vec();
        for _ in 0..=rng.below(3) {
            let at = index64(rng.below(u64_from(spec.len())));
            let byte = words[index64(rng.below(u64_from(words.len())))];
            match rng.below(3) {
                0 => spec[at] = byte,
                1 => spec.insert(at, byte),
                _ => drop(spec.remove(at)),
            }
        }
        let Ok(workload) = Workload::parse(std::str::from_utf8(&spec).unwrap()) else { continue };
        assert_eq!(Workload::parse(&workload.canonical()), Ok(workload.clone()), "{workload}");
        for device in [0, 511, 512, 4096, 65_536, 3 * MIB + 1, u64::MAX] {
            // The largest device with trims would really take 4 GiB for its units in use.
            if device == u64::MAX
                && matches!(&workload, Workload::Pattern(p) if p.trim_share() > 0.0)
            {
                continue;
            }
            if let Ok(generator) = workload.instantiate(device, 1) {
                for request in generator.take(20) {
                    assert!(request.offset <= device - u64::from(request.len), "{workload}");
                    taken += 1;
                }
            }
        }
    }
    assert!(taken > 50_000, "only {taken} requests: the specifications are damaged too much");
}

/// The first 8 requests of some specifications, for all time, in sectors. An independent
/// implementation on the C library's functions gave the same.
#[test]
fn golden_requests() {
    let show = |spec: &str| -> String {
        let list = generator(spec, 4 * GIB, 42).take(8);
        let words = list.map(|request| {
            let at = request.at.map_or_else(String::new, |at| format!("@{}", at.get()));
            let fua = if request.fua { "!" } else { "" };
            let op = &request.op.name()[..1];
            format!("{op}{fua}{}+{}{at}", request.offset / 512, request.len / 512)
        });
        words.collect::<Vec<_>>().join(" ")
    };
    for (spec, expected) in GOLDEN {
        assert_eq!(show(spec), expected, "{spec}");
    }
}

const GOLDEN: [(&str, &str); 9] = [
    (
        "randwrite",
        "w3444800+8 w1843688+8 w4885064+8 w5460888+8 \
         w8024+8 w5258296+8 w6283512+8 w112880+8",
    ),
    (
        "read,bs=64KiB",
        "r0+128 r128+128 r256+128 r384+128 \
         r512+128 r640+128 r768+128 r896+128",
    ),
    (
        "randread,dist=zipf:1",
        "r7886576+8 r7968840+8 r8341120+8 r3958888+8 \
         r5299928+8 r3230184+8 r5856664+8 r6526640+8",
    ),
    (
        "randread,dist=zipf:0.8,scatter=false",
        "r720464+8 r2620080+8 r154520+8 r70944+8 \
         r8350736+8 r94616+8 r17904+8 r7868776+8",
    ),
    (
        "randwrite,dist=hotcold:0.2/0.8",
        "w368736+8 w1092176+8 w1051656+8 w22576+8 \
         w1596376+8 w60536+8 w7589680+8 w394104+8",
    ),
    (
        "randread,dist=pareto",
        "r2080040+8 r2891008+8 r3507880+8 r1069752+8 \
         r4255912+8 r2006840+8 r6193512+8 r4255912+8",
    ),
    (
        "randread,dist=gaussian",
        "r3823032+8 r5024144+8 r4076488+8 r4143936+8 \
         r3541760+8 r3863072+8 r5337080+8 r4053944+8",
    ),
    (
        "randrw,bs=4KiB:70/64KiB:30,rate=50k",
        "w3444800+8@22229 w1843688+8@44527 w4885064+8@47769 w5460888+8@48386 \
         w8024+128@49646 r5258296+8@59074 w6283512+8@76485 r112880+8@180589",
    ),
    (
        "mix,fua_share=0.5,flush_every=2,trim_share=0.3",
        "t2330152+8 w!3444800+8 w!1843688+8 f0+0 \
         t107200+8 t434432+8 r4885064+8 w!5460888+8",
    ),
];

#[test]
fn remaps_are_a_share_of_the_requests_and_stay_in_the_range() {
    let spec = "randrw,read_share=0.4,remap_share=0.25,remap_run=64KiB,remap_move_share=0.2,range=256MiB-512MiB,requests=40k";
    let list = requests(spec, GIB, 3);
    let remaps: Vec<_> = list.iter().filter_map(|r| r.remap.map(|from| (r, from))).collect();
    let part = |count: usize, of: usize| float(u64_from(count)) / float(u64_from(of));
    near(part(remaps.len(), list.len()), 0.25, 0.01);
    near(share(&list, Op::Read), 0.4, 0.01);
    near(part(remaps.iter().filter(|(_, from)| from.moves).count(), remaps.len()), 0.2, 0.015);
    for (request, from) in &remaps {
        assert_eq!((request.op, request.len, request.fua), (Op::Write, 64 << 10, false));
        for first in [request.offset, from.offset] {
            assert!((256 * MIB..=512 * MIB - (64 << 10)).contains(&first) && first % 4096 == 0);
        }
    }
    assert_eq!(requests(spec, GIB, 3), list);
    // Other requests are those of a load without remaps of the same seed.
    let without = requests("randrw,read_share=0.5,range=256MiB-512MiB,requests=10", GIB, 3);
    assert!(without.iter().all(|request| request.remap.is_none()));
}

/// A source is in use where something takes pages out of use, so that few remaps are of nothing.
#[test]
fn sources_of_moves_are_in_use() {
    let spec = "randwrite,remap_share=0.5,remap_move_share=1,requests=20k,fresh";
    let mut used = std::collections::BTreeSet::new();
    for request in requests(spec, 64 * MIB, 1) {
        if let Some(from) = request.remap {
            assert!(used.remove(&from.offset), "{request:?}");
        }
        used.insert(request.offset);
    }
    assert!(used.len() > 1000, "{}", used.len());
}

#[test]
fn remaps_that_cannot_be_are_refused() {
    for (spec, text) in [
        ("randread,remap_share=0.1", "`remap_share` has no meaning for the pattern `randread`"),
        ("randwrite,remap_run=8KiB", "`remap_run` needs `remap_share`"),
        ("randwrite,remap_move_share=1", "`remap_move_share` needs `remap_share`"),
        ("randwrite,remap_share=0.1,align=512", "whole pages of 4096 bytes, found 512"),
        ("randwrite,remap_share=0.1,bs=8KiB,remap_run=4KiB", "a multiple of `align`"),
        ("randwrite,remap_share=1.5", "remap_share"),
        ("mix,remap_share=0.5,read_share=0.4,trim_share=0.2", "and remap_share 0.5 add up to more"),
        ("randwrite,remap_share=1,bytes=1MiB", "a share below 1 beside `bytes`"),
        ("randwrite,remap_share=1,drive_writes=1", "never ends"),
        ("randwrite,remap_share=0.1,remap_run=1GiB,range=1MiB", "less than one request"),
    ] {
        let error = refused(spec).to_string();
        assert!(error.contains(text), "{spec}: {error}");
    }
    assert_eq!(requests("randwrite,remap_share=1,requests=5", GIB, 1).len(), 5);
}
