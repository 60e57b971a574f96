//! Look-alikes: what they show against what was asked, the same requests for ever, refusals.

use onefold_trace::workload::like::{Figures, LikeWorkload};
use onefold_trace::workload::{Pacing, Request, Workload, WorkloadError};
use onefold_trace::{Info, Record, TraceOp};
use onefold_units::{Nanos, Op};

const PAGE: u64 = 4096;

fn named(name: &str) -> LikeWorkload {
    LikeWorkload::named(name).unwrap_or_else(|| panic!("{name} is unknown"))
}

fn requests(spec: &str, device: u64, seed: u64) -> Vec<Request> {
    Workload::parse(spec)
        .and_then(|workload| workload.instantiate(device, seed))
        .unwrap_or_else(|error| panic!("{spec}: {error}"))
        .collect()
}

fn count(requests: impl Iterator<Item = Request>) -> Info {
    let mut info = Info::new();
    for request in requests {
        let op = match request.op {
            Op::Read => TraceOp::Read,
            Op::Write => TraceOp::Write,
            other => panic!("a look-alike reads and writes, this is {other:?}"),
        };
        let at = request.at.map_or(0, Nanos::get);
        info.add(&Record::new(at, op, request.offset, u64::from(request.len)));
    }
    info
}

fn measured(name: &str, seed: u64) -> Figures {
    let workload = Workload::parse(name).unwrap();
    let device = workload.natural_bytes().unwrap();
    Figures::of(&count(workload.instantiate(device, seed).unwrap()))
}

/// The list of look-alikes tells the truth: what is stored as reached is reached, and what is
/// outside its tolerance is in the description.
#[test]
fn every_look_alike_reaches_what_it_says() {
    for name in LikeWorkload::names() {
        let (workload, found) = (named(name), measured(name, 0));
        let stored = workload.reached();
        for (what, stored, found) in [
            ("write requests", stored.write_requests, found.write_requests),
            ("write blocks", stored.write_blocks, found.write_blocks),
            ("mean bytes", stored.mean_bytes, found.mean_bytes),
            ("rewrite share", stored.rewrite_share, found.rewrite_share),
            ("top 1 %", stored.top1_share, found.top1_share),
            ("gap p50", stored.gap_p50_s, found.gap_p50_s),
            ("gap p90", stored.gap_p90_s, found.gap_p90_s),
            ("unaligned", stored.unaligned_share, found.unaligned_share),
            ("multi-page", stored.multi_share, found.multi_share),
        ] {
            assert!(
                (stored - found).abs() <= 0.001 * stored.abs() + 1e-4,
                "{name}: {what} {found}, stored {stored}"
            );
        }
        let description = workload.description();
        let outside =
            description.split_once("outside its tolerance: ").map_or("", |(_, list)| list);
        for (what, miss) in workload.misses(&found) {
            assert_eq!(miss > 1.0, outside.contains(what), "{name}: {what} {miss}: {description}");
        }
    }
}

/// The demand holds for other seeds, so it is not an accident of the search.
#[test]
fn other_seeds_are_near_as_well() {
    for name in ["like-hm_0", "like-prxy_0", "like-proj_0"] {
        for (what, miss) in named(name).misses(&measured(name, 7)) {
            assert!(miss <= 1.0, "{name}: {what} is {miss} tolerances off");
        }
    }
}

#[test]
fn twelve_volumes_and_three_services() {
    let names: Vec<_> = LikeWorkload::names().collect();
    assert_eq!(names.len(), 15);
    assert!(names.iter().all(|name| name.starts_with("like-")), "never a volume's own name");
    for name in names {
        let workload = named(name);
        assert_eq!(workload.is_counted(), !name.starts_with("like-fiu-"), "{name}");
        let description = Workload::describe(name).unwrap();
        assert!(
            workload.is_counted() != description.contains("all else assumed, no digests"),
            "{name}"
        );
        assert_eq!(Workload::parse(name).unwrap().pacing(), Pacing::Timed);
    }
}

/// Requests scale addresses and time.
#[test]
fn fewer_requests_are_a_smaller_volume() {
    for (name, seconds_per_request) in
        [("like-mds_0", 604_803.0 / 1_211_034.0), ("like-proj_0", 479_707.0 / 3e6)]
    {
        let mut shares = Vec::new();
        for thousands in [100.0_f64, 400.0] {
            let spec = format!("{name},requests={thousands}k");
            let natural = Workload::parse(&spec).unwrap().natural_bytes().unwrap();
            let list = requests(&spec, natural, 1);
            let end = list.last().unwrap().at.unwrap();
            let seconds = thousands * 1e3 * seconds_per_request;
            let found = std::time::Duration::from_nanos(end.get()).as_secs_f64();
            assert!((found / seconds - 1.0).abs() < 0.03, "{spec}: {found} s, expected {seconds}");
            let info = count(list.into_iter());
            let pages = u32::try_from(info.written_pages()).unwrap();
            shares.push(f64::from(pages) / thousands);
        }
        assert!((shares[0] / shares[1] - 1.0).abs() < 0.1, "{name}: {shares:?} pages per thousand");
    }
}

#[test]
fn requests_are_in_order_and_inside_the_range() {
    const MIB: u64 = 1 << 20;
    for name in LikeWorkload::names() {
        for count in [1, 2, 300, 5_000] {
            let spec = format!("{name},requests={count},range=64MiB-80%");
            let list = requests(&spec, 1024 * MIB, 3);
            assert_eq!(list.len(), count, "{spec}");
            assert!(list.is_sorted_by_key(|request| request.at), "{spec}");
            for request in list {
                let (first, end) = (request.offset, request.offset + u64::from(request.len));
                assert!(request.len > 0 && first >= 64 * MIB, "{spec}: {request:?}");
                assert!(end <= 1024 * MIB * 8 / 10, "{spec}: {request:?}");
                assert!(first % 512 == 0 && end % 512 == 0, "{spec}: {request:?}");
                assert!(end.div_ceil(PAGE) - first / PAGE <= 16, "{spec}: {request:?}");
            }
        }
    }
}

#[test]
fn canonical_form_and_batches() {
    for spec in ["like-hm_0", "like-fiu-mail,requests=3k,seed=4", "like-usr_0,range=1GiB-100%"] {
        let workload = Workload::parse(spec).unwrap();
        let canonical = workload.canonical();
        assert_eq!(Workload::parse(&canonical).as_ref(), Ok(&workload), "{canonical}");
        let mut batched = workload.instantiate(64 << 30, 9).unwrap();
        let single: Vec<_> = batched.clone().take(3_000).collect();
        let mut all = Vec::new();
        let mut buffer = [Request::EMPTY; 37];
        while all.len() < 3_000 {
            let filled = batched.fill(&mut buffer);
            all.extend_from_slice(&buffer[..filled]);
            if filled < buffer.len() {
                break;
            }
        }
        all.truncate(3_000);
        assert_eq!(all, single, "{spec}");
    }
    let canonical = Workload::parse("like-hm_0").unwrap().canonical();
    assert_eq!(canonical, "like-hm_0,range=0-100%,requests=1000000");
}

#[test]
fn refusals_say_what_to_do() {
    for (spec, text) in [
        ("like-hm0", "did you mean `like-hm_0`?"),
        ("like-", "trace generate --list"),
        ("hm_0", "`hm_0` is no access pattern"),
        ("like-hm_0,bs=4KiB", "unknown workload key `bs`; the keys are requests, range, seed"),
        ("like-hm_0,request=5", "did you mean `requests`?"),
        ("like-hm_0,requests=0", "at least 1"),
        ("like-hm_0,requests=2G", "at most 1G requests"),
        ("like-hm_0,requests=5,requests=6", "given twice"),
        ("like-hm_0,range=2GiB", "the range ends at byte"),
        ("like-prn_0", "the workload touches up to"),
        ("like-hm_0,range=1MiB", "take a larger device or range, or lower `requests`"),
    ] {
        let made = Workload::parse(spec).and_then(|workload| workload.instantiate(1 << 30, 1));
        let Err(error) = made else { panic!("{spec} was taken") };
        let error = error.to_string();
        assert!(error.contains(text), "{spec}: {error}");
    }
    let made = Workload::parse("like-hm_0,requests=1G").unwrap().instantiate(1 << 30, 1);
    assert!(matches!(made, Err(WorkloadError::FootprintTooLarge { .. })));
    assert!(Workload::parse("like-stg_0,requests=1G").unwrap().instantiate(u64::MAX, 1).is_ok());
}

/// The first 20,000 requests, for all time.
#[test]
fn digests() {
    let digest = |spec: &str| {
        let mut fnv: u64 = 0xCBF2_9CE4_8422_2325;
        for request in requests(spec, 64 << 30, 42) {
            let at = request.at.map_or(0, Nanos::get);
            let op = u64::from(request.op == Op::Write);
            for word in [op, request.offset, u64::from(request.len), at] {
                for byte in word.to_le_bytes() {
                    fnv = (fnv ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
                }
            }
        }
        fnv
    };
    for (spec, expected) in DIGESTS {
        let found = digest(spec);
        assert_eq!(found, expected, "{spec}: {found:#018X}");
    }
    assert_ne!(digest("like-hm_0,requests=20k,seed=1"), DIGESTS[0].1, "the seed matters");
}

const DIGESTS: [(&str, u64); 4] = [
    ("like-hm_0,requests=20k", 0x3220_0998_2050_31C4),
    ("like-prxy_0,requests=20k", 0x9852_D4EB_8927_E6FF),
    ("like-proj_0,requests=20k", 0x8B95_B93E_915D_2857),
    ("like-fiu-web,requests=20k", 0x89E0_B620_70F4_4FEB),
];
