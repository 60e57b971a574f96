use onefold_units::Op;
use onefold_units::convert::{float, index};

use proptest::prelude::*;

use super::{Lsm, LsmGenerator};
use crate::workload::page_request::{PageRequest, PageSource};
use crate::workload::{Request, WorkloadError};

/// A store 64 times smaller than the default one.
const SMALL: &str = "space=4GiB,memtable=1MiB,file=1MiB,l1=4MiB,align=64KiB,shorten=4,\
                     cache_age=32MiB,journal=1000,wal_burst=1-8";

/// Behind 64 metadata pages and the journal, at a multiple of 64 KiB.
const FIRST_FILE_PAGE: u32 = 1072;

fn small(phase: &str, rest: &str) -> LsmGenerator {
    let spec = format!("{phase},{SMALL},{rest}");
    Lsm::parse(&spec).unwrap().instantiate(4 << 30, 7).unwrap()
}

fn drain(source: &mut LsmGenerator, mut each: impl FnMut(&PageRequest)) {
    let mut batch = [PageRequest::EMPTY; 100];
    loop {
        let got = source.fill_pages(&mut batch);
        batch[..got].iter().for_each(&mut each);
        if got < batch.len() {
            return;
        }
    }
}

fn digest(source: &mut LsmGenerator) -> u64 {
    let mut fnv: u64 = 0xCBF2_9CE4_8422_2325;
    drain(source, |request| {
        let op = u32::from(request.op == Op::Write) + 2 * u32::from(request.op == Op::Trim);
        for byte in [op, request.lpn, request.n].map(u32::to_le_bytes).concat() {
            fnv = (fnv ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        }
    });
    fnv
}

/// Which pages hold data, by the requests alone.
struct Pages {
    written: Vec<bool>,
    trimmed: u64,
    /// Pages of files written again without a trim.
    rewritten: u64,
}

impl Pages {
    fn new(source: &LsmGenerator) -> Self {
        Self { written: vec![false; index(source.end_pages())], trimmed: 0, rewritten: 0 }
    }

    /// Everything read or trimmed has been written and not trimmed since; a file is written once,
    /// but for the last page of a burst of the log.
    fn apply(&mut self, request: &PageRequest, is_recycled: bool) {
        let pages = &mut self.written[index(request.lpn)..index(request.lpn + request.n)];
        assert!(request.n > 0);
        match request.op {
            Op::Write if request.lpn >= FIRST_FILE_PAGE && !is_recycled => {
                assert!(pages.iter().skip(1).all(|written| !*written), "{request:?} again");
                self.rewritten += u64::from(pages[0]);
            }
            Op::Write => {}
            _ => assert!(pages.iter().all(|written| *written), "{request:?} of nothing"),
        }
        if request.op == Op::Trim {
            self.trimmed += u64::from(request.n);
        }
        pages.fill(request.op != Op::Trim);
    }
}

/// No two live files, nor the log, share a page, and everything lies within the space.
fn check_ownership(source: &LsmGenerator) {
    let mut extents = source.all_extents();
    extents.sort_unstable_by_key(|extent| extent.start);
    for pair in extents.windows(2) {
        assert!(pair[0].start + pair[0].pages <= pair[1].start, "{pair:?} overlap");
    }
    let last = extents.last().map_or(0, |last| last.start + last.pages);
    assert!(last <= source.end_pages());
}

#[test]
fn what_is_read_or_trimmed_was_written() {
    for rest in [
        "",
        "wal=recycle",
        "wal_end=full",
        "discard=delayed,trim_batch=64MiB",
        "max_req=4KiB",
        "absorb=1",
        "keys=zipf:0.99,cascade=on",
    ] {
        let mut source = small("lsm-run", &format!("warmup=600MiB,bytes=8GiB,{rest}"));
        let mut pages = Pages::new(&source);
        let mut batch = [PageRequest::EMPTY; 1000];
        let mut got = batch.len();
        while got == batch.len() {
            for _ in 0..50 {
                got = source.fill_pages(&mut batch);
                batch[..got].iter().for_each(|it| pages.apply(it, rest == "wal=recycle"));
            }
            check_ownership(&source);
        }
        assert!(pages.trimmed > 1 << 20, "{rest}: {} pages trimmed", pages.trimmed);
        if rest != "wal=recycle" {
            // Bursts of 1 to 8 pages, all but the first of a log.
            let bursts = float(source.totals().user_bytes + (600 << 20)) / 4096.0 / 4.5;
            let found = float(pages.rewritten) / bursts;
            assert!((0.9..1.0).contains(&found), "{rest}: {found} pages rewritten per burst");
        }
    }
}

/// Reads of gets, how often the page that is read most is, and pages written.
fn gets(rest: &str) -> (u64, u64, u64) {
    // Merges read nothing.
    let rest = format!("warmup=600MiB,bytes=2GiB,absorb=1,repeat=0,get_pages=1:1,gets=2k,{rest}");
    let (mut pages, mut written) = (std::collections::BTreeMap::<u32, u64>::new(), 0);
    drain(&mut small("lsm-run", &rest), |request| match request.op {
        Op::Read if request.n == 1 => *pages.entry(request.lpn).or_default() += 1,
        Op::Write => written += u64::from(request.n),
        _ => {}
    });
    (pages.values().sum(), pages.into_values().max().unwrap(), written)
}

#[test]
fn popular_keys_are_read_again() {
    let ((all, most, _), (all_zipf, most_zipf, _)) = (gets(""), gets("keys=zipf:0.99"));
    assert_eq!(all, all_zipf, "as many gets");
    assert!(most_zipf > 5 * most, "{most} and {most_zipf} of {all}");
}

/// A get that cascades reads a block of each newer file: of level 0, and one of each level between.
#[test]
fn gets_go_down_the_levels() {
    let per_write = |(reads, _, written): (u64, u64, u64)| float(reads) / float(written);
    let (once, cascaded) = (per_write(gets("")), per_write(gets("cascade=on")));
    assert!((2.0..6.0).contains(&(cascaded / once)), "{once} and {cascaded} reads a page written");
}

#[test]
fn without_discard_nothing_is_trimmed() {
    let mut source = small("lsm-load", "bytes=4GiB,discard=none");
    drain(&mut source, |request| assert_ne!(request.op, Op::Trim));
    assert_eq!(source.totals().trim_bytes, 0);
}

/// Each burst but the first of a log starts at the page where the one before ended.
#[test]
fn a_burst_writes_the_last_page_again() {
    let mut source = small("lsm-load", "bytes=200MiB,max_req=1MiB");
    let (mut bursts, mut logs, mut end) = (0, 0, None);
    let mut added = 0;
    drain(&mut source, |request| {
        if request.lpn < FIRST_FILE_PAGE || request.op != Op::Write || logs > 3 {
            return;
        }
        // The log of the first memtables, before the first flush of each.
        if added == 256 {
            (added, end) = (0, None);
            logs += 1;
            return;
        }
        if let Some(end) = end {
            assert_eq!(request.lpn + 1, end, "the last page again");
            added += request.n - 1;
        } else {
            added += request.n;
        }
        assert!((1..=9).contains(&request.n), "{request:?}");
        end = Some(request.lpn + request.n);
        bursts += 1;
    });
    assert!(logs > 3 && bursts > 100, "{bursts} bursts, {logs} logs");
}

/// The shares and amplifications of the paper, at a 64th of the size.
#[test]
fn phases_resemble_the_measured_traces() {
    for (phase, rest, read_share, amplification) in [
        ("lsm-load", "bytes=64GiB", 0.30, 14.3),
        ("lsm-run", "warmup=3GiB,bytes=26GiB,gets=400", 0.40, 22.6),
    ] {
        let spec = format!("{phase},{SMALL},{rest}");
        let mut source = Lsm::parse(&spec).unwrap().instantiate(4 << 30, 7).unwrap();
        drain(&mut source, |_| ());
        let totals = source.totals();
        let share = float(totals.read_bytes) / float(totals.read_bytes + totals.write_bytes);
        assert!((share - read_share).abs() < 0.03, "{phase}: {share} of the bytes are reads");
        let found = float(totals.write_bytes) / float(totals.user_bytes);
        assert!((found / amplification - 1.0).abs() < 0.35, "{phase}: amplification {found}");
    }
}

#[test]
fn same_seed_same_requests() {
    let run = "warmup=100MiB,bytes=1GiB";
    assert_eq!(digest(&mut small("lsm-load", "bytes=1GiB")), 6_751_234_450_623_231_007);
    assert_eq!(digest(&mut small("lsm-run", run)), 9_574_146_153_825_882_521);
    assert_ne!(digest(&mut small("lsm-run", run)), digest(&mut small("lsm-run,seed=8", run)));
}

#[test]
fn the_warm_up_is_a_prefix() {
    let rest = "warmup=100MiB,bytes=100MiB";
    let mut whole = Vec::new();
    drain(&mut small("lsm-run", rest), |request| whole.push(*request));
    let mut source = small("lsm-run", rest);
    let (mut parts, mut batch) = (Vec::new(), [PageRequest::EMPTY; 77]);
    loop {
        let got = source.fill_warm_up(&mut batch);
        parts.extend_from_slice(&batch[..got]);
        if got < batch.len() {
            break;
        }
    }
    assert!(parts.iter().all(|request| request.op != Op::Read || request.n > 8), "no gets yet");
    assert_eq!(source.totals().write_bytes, 0);
    assert_eq!(source.fill_warm_up(&mut batch), 0);
    drain(&mut source, |request| parts.push(*request));
    assert_eq!(parts, whole);
    let totals = source.totals();
    let traffic = totals.read_bytes + totals.write_bytes;
    assert!((100 << 20..(100 << 20) + (512 << 10)).contains(&traffic), "{traffic} bytes");
}

#[test]
fn bytes_and_pages_agree() {
    let rest = "bytes=20MiB";
    let mut requests = Vec::new();
    drain(&mut small("lsm-load", rest), |request| requests.push(request.request()));
    let mut found = vec![Request::EMPTY; requests.len() + 10];
    let got = small("lsm-load", rest).fill(&mut found);
    assert_eq!(found[..got], requests);
    assert!(small("lsm-load", rest).eq(requests));
}

/// A long load in a small space fills up and goes on with updates.
#[test]
fn a_full_store_goes_on() {
    let mut source = small("lsm-load", "bytes=200GiB");
    drain(&mut source, |_| ());
    let totals = source.totals();
    assert!(totals.read_bytes + totals.write_bytes >= 200 << 30);
    assert!(source.live_bytes() < 4 << 30);
    assert!(totals.user_bytes > 6 << 30, "more than fits: {totals:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..Default::default() })]

    /// Whatever is accepted has room for as long as it runs.
    #[test]
    fn an_accepted_store_never_runs_out_of_space(
        run: bool,
        space in 8_u64..200,
        (memtable, file) in (4_u64..64, 4_u64..64),
        (trigger, l1, fanout) in (1_u64..6, 4_u64..512, 2_u64..12),
        (capacity, new_share) in (1_u32..95, 0_u32..100),
        (align, shorten) in (0_u32..6, 0_u32..400),
        discard in prop::sample::select(vec!["online", "delayed", "none"]),
        wal in prop::sample::select(vec!["delete", "recycle"]),
        seed: u32,
    ) {
        let (phase, more) = if run {
            ("lsm-run", format!("warmup={space}MiB,gets=20,new_share={new_share}%"))
        } else {
            ("lsm-load", String::new())
        };
        let spec = format!(
            "{phase},{more},space={space}MiB,memtable={}KiB,file={}KiB,l0_trigger={trigger},\
             l1={}KiB,fanout={fanout},capacity=0.{capacity:02},align={}KiB,shorten={shorten},\
             discard={discard},trim_batch=1MiB,wal={wal},journal=1000,seed={seed},bytes={}MiB",
            memtable * 16, file * 16, l1 * 16, 4 << align, 20 * space,
        );
        let Ok(store) = Lsm::parse(&spec) else { return Ok(()) };
        let mut source = store.instantiate(1 << 30, 1).unwrap();
        drain(&mut source, |_| ());
        let totals = source.totals();
        prop_assert!(totals.read_bytes + totals.write_bytes >= store.traffic_bytes(), "{spec}");
        check_ownership(&source);
    }
}

#[test]
fn specifications_round_trip() {
    for spec in [
        "lsm-load",
        "lsm-run",
        "lsm-run,get_pages=1:3/7-9:1,wal=recycle,wal_end=full,discard=delayed,seed=3,gets=10k",
        "lsm-load,space=16GiB,wal_burst=5,capacity=0.5",
        "lsm-run,keys=zipf:0.99,cascade=on",
    ] {
        let parsed = Lsm::parse(spec).unwrap();
        assert_eq!(Lsm::parse(&parsed.canonical()).as_ref(), Ok(&parsed), "{spec}");
    }
}

#[test]
fn refusals_say_what_to_do() {
    for (spec, text) in [
        ("", "the workload is empty"),
        ("lsm", "`lsm` is no such workload; use lsm-load or lsm-run"),
        ("lsm-load,discards=none", "unknown workload key `discards`, did you mean `discard`?"),
        ("lsm-load,discard=onlin", "`discard=onlin` is unknown, did you mean `online`?"),
        ("lsm-load,gets=5", "`gets` needs `lsm-run`; add it or drop `gets`"),
        ("lsm-load,align=1000", "`align=1000` is out of limits: expected whole pages"),
        ("lsm-load,fanout=1", "`fanout=1` is out of limits: expected 2 to 100"),
        ("lsm-load,bytes=", "workload key `bytes` has no value"),
        ("lsm-load,bytes=4KiB,bytes=8KiB", "workload key `bytes` is given twice"),
        ("lsm-load,align=128MiB", "`align` is 134217728 bytes, more than `file`"),
        ("lsm-load,space=1GiB", "`space` is 1073741824 bytes, but this tree may need"),
        ("lsm-run,get_pages=0:1", "`get_pages=0:1` is malformed"),
        ("lsm-run,keys=zipf", "`keys=zipf` is malformed"),
        ("lsm-load,cascade=on", "`cascade` needs `lsm-run`; add it or drop `cascade`"),
        ("lsm-run,wal_burst=9-5", "`wal_burst=9-5` is malformed"),
    ] {
        let error = Lsm::parse(spec).unwrap_err().to_string();
        assert!(error.starts_with(text), "{spec}: {error}");
    }
    let small_device = Lsm::parse("lsm-load").unwrap().instantiate(1 << 30, 1).unwrap_err();
    assert!(matches!(small_device, WorkloadError::RangeBeyondDevice { .. }));
}

/// The table in the documentation lists every key with the default the code uses.
#[test]
fn the_table_is_complete() {
    let table: Vec<&str> =
        include_str!("mod.rs").lines().filter(|line| line.starts_with("//! | `")).collect();
    let keys: Vec<&str> = table.iter().map(|line| line.split('`').nth(1).unwrap()).collect();
    assert_eq!(keys, super::parse::KEYS);
    let canonical = Lsm::parse("lsm-run").unwrap().canonical();
    for line in table {
        let cells: Vec<&str> = line.split('|').collect();
        let (key, default) = (cells[1].trim().trim_matches('`'), cells[2]);
        if let Some(default) = default.split('`').nth(1) {
            assert!(format!("{canonical},").contains(&format!(",{key}={default},")), "{line}");
        }
    }
}
