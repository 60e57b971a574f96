//! Remaps of a load, of traces and of generators, on every scheme that keeps their mappings.

use std::path::PathBuf;

use onefold_config::Load;
use onefold_sim::result::{Remap, RunResult, SeriesPoint};
use onefold_sim::{Control, SimError, simulate};
use onefold_trace::oft::{Encoder, FLAG_DIGESTS, Header};
use onefold_trace::{Flags, Record, TraceOp};

use crate::common::{sets, setup, workload};

const SCHEMES: [&str; 6] = ["none", "gf", "gn", "ln", "lh", "opt"];
const PAGE: u64 = 4096;
/// One die, so that a small drive has superblocks to choose from; nothing is written before the load.
const DRIVE: [&str; 5] = [
    "geometry.channels=1",
    "geometry.ways=1",
    "geometry.pages=64",
    "capacity.logical=64MiB",
    "precondition.fill=0",
];

/// A trace of one client, with one request every 10 ms.
#[derive(Default)]
struct Script(Vec<Record>);

impl Script {
    fn add(&mut self, op: TraceOp, page: u64, pages: u64) -> &mut Record {
        let t_ns = 10_000_000 * u64::try_from(self.0.len()).unwrap();
        self.0.push(Record::new(t_ns, op, page * PAGE, pages * PAGE));
        self.0.last_mut().unwrap()
    }

    fn write(mut self, page: u64, pages: u64) -> Self {
        self.add(TraceOp::Write, page, pages);
        self
    }

    fn write_zeroes(mut self, page: u64, pages: u64) -> Self {
        let digests = (0..pages).map(|_| onefold_ssd::ZEROES.to_le_bytes()).collect();
        self.add(TraceOp::Write, page, pages).digests = Some(digests);
        self
    }

    fn read(mut self, page: u64, pages: u64) -> Self {
        self.add(TraceOp::Read, page, pages);
        self
    }

    fn remap(mut self, source: u64, target: u64, pages: u64, flags: Flags) -> Self {
        let record = self.add(TraceOp::Remap, target, pages);
        (record.aux, record.flags) = (source * PAGE, flags);
        self
    }

    fn run(&self, more: &[&str]) -> RunResult {
        self.attempt(more).unwrap_or_else(|error| panic!("{more:?}: {error}"))
    }

    fn attempt(&self, more: &[&str]) -> Result<RunResult, SimError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("load.oft");
        std::fs::write(&path, self.bytes()).unwrap();
        on_drive(&Load::Trace(path), more)
    }

    fn bytes(&self) -> Vec<u8> {
        let has_digests = self.0.iter().any(|record| record.digests.is_some());
        let mut encoder = Encoder::new(Header {
            flags: if has_digests { FLAG_DIGESTS } else { 0 },
            epoch_unix_ns: 0,
            device_bytes: 0,
            device_uuid: [0; 16],
            lba_bytes: 4096,
        });
        let mut bytes = encoder.header().to_vec();
        self.0.iter().for_each(|record| encoder.push(record, &mut bytes));
        encoder.finish(&mut bytes);
        bytes
    }
}

fn on_drive(load: &Load, more: &[&str]) -> Result<RunResult, SimError> {
    let sets = sets(&[&DRIVE[..], more].concat());
    simulate(&setup("femu32", &sets, load), &Control::default())
}

fn remap(result: &RunResult) -> &Remap {
    result.remap.as_ref().unwrap()
}

/// Pages remapped, copied and refused.
fn outcome(result: &RunResult) -> [u64; 3] {
    let remap = remap(result);
    [remap.remapped, remap.copied, remap.skipped]
}

/// Pages of the host that were read from flash.
fn read(result: &RunResult) -> u64 {
    result.flash.read_pages.of("user")
}

const COPY: Flags = Flags::NONE;

/// 64 pages are written, copied once and moved once.
fn script() -> Script {
    Script::default().write(0, 64).remap(0, 1000, 64, COPY).remap(0, 2000, 32, Flags::MOVE)
}

#[test]
fn every_scheme_remaps_and_a_drive_without_one_copies_or_refuses() {
    for scheme in SCHEMES {
        let set = format!("ftl.remap={scheme}");
        for full in ["copy", "refuse"] {
            let result = script().run(&[&set, &format!("run.remap_full={full}")]);
            let expected = match (scheme, full) {
                ("none", "copy") => [0, 96, 0],
                ("none", _) => [0, 0, 96],
                _ => [96, 0, 0],
            };
            assert_eq!(outcome(&result), expected, "{scheme}, {full}");
            let [_, copied, _] = expected;
            let moved = |by: &onefold_sim::result::ByCause| by.of("fallback");
            assert_eq!(moved(&result.flash.program_pages), copied, "{scheme}, {full}");
            assert_eq!(moved(&result.flash.read_pages), copied, "{scheme}, {full}");
            assert_eq!(remap(&result).scheme, scheme);
            assert_eq!((result.host.remap_requests, result.host.remap_pages), (2, 96));
            assert_eq!(result.host.requests(), 3);
            assert_eq!(result.latency_ns.remap.as_ref().unwrap().count, 2);
        }
    }
    let without = Script::default().write(0, 64).run(&["ftl.remap=none"]);
    assert!(without.remap.is_none() && without.latency_ns.remap.is_none());
}

/// A database whose checkpoints remap is, on a drive without remaps, one whose checkpoints write.
#[test]
fn a_host_without_remaps_writes_instead() {
    let load = |how: &str| {
        let spec = "like-sqlite-fillrandom,values=2k,frames=300,qd=4,checkpoint=";
        workload(&format!("{spec}{how}"))
    };
    let run = |how, scheme, full| on_drive(&load(how), &[scheme, full]).unwrap();
    let stock = run("write", "ftl.remap=none", "run.remap_full=copy");
    let instead = run("remap", "ftl.remap=none", "run.remap_full=write");
    assert!(instead.remap.is_none() && instead.latency_ns.remap.is_none());
    assert_eq!(instead.host, stock.host);
    assert_eq!(instead.flash.program_pages, stock.flash.program_pages);
    assert_eq!((instead.virtual_ns, instead.flash.read_pages.total()), (stock.virtual_ns, 0));
    // A drive with remaps is asked all the same, and one without them copies what is moved.
    let remapped = run("remap", "ftl.remap=lh", "run.remap_full=write");
    let expected = stock.host.write_pages - remapped.host.write_pages;
    assert_eq!((remapped.host.remap_pages, outcome(&remapped)), (expected, [expected, 0, 0]));
    assert!(remapped.flash.program_pages.total() * 10 < stock.flash.program_pages.total() * 7);
    let moved = Script::default().write(0, 8).remap(0, 100, 8, Flags::MOVE);
    let moved = moved.run(&["ftl.remap=none", "run.remap_full=write"]);
    assert_eq!(outcome(&moved), [0, 8, 0]);
}

/// What the trace tells of a write goes with that write, also behind a remap that the host or the drive carries out.
#[test]
fn a_remap_takes_nothing_of_what_is_told_of_writes() {
    let load =
        Script::default().write(0, 1).remap(0, 100, 1, COPY).write_zeroes(200, 8).write(300, 1);
    for (scheme, programmed) in [("none", 3), ("lh", 2)] {
        let scheme = format!("ftl.remap={scheme}");
        let result = load.run(&[&scheme, "run.remap_full=write", "ftl.zeroes=unmap"]);
        let zeroes = result.flash.saved_pages.zero;
        let user = result.flash.program_pages.of("user");
        assert_eq!((zeroes, user), (8, programmed), "{scheme}");
    }
}

/// The windows of a run add up to what the host did; a page that two share is valid once.
#[test]
fn windows_tell_what_the_host_did_and_what_flash_holds() {
    let load = workload("like-sqlite-fillseq,values=500,frames=300,qd=1,checkpoint=remap");
    let result = on_drive(&load, &["ftl.remap=lh", "run.window=16"]).unwrap();
    let points = &result.series.points;
    let sum = |of: fn(&SeriesPoint) -> u64| points.iter().map(of).sum::<u64>();
    // Requests after the last whole window are in none.
    let (written, remapped) = (result.host.write_pages, result.host.remap_pages);
    let rest = written - sum(|point| point.host_write_pages);
    assert!(rest < 16 * 20, "{rest} pages written");
    let rest = remapped - sum(|point| point.host_remap_pages);
    assert!(rest < 16 * 20 && remapped > 2000, "{rest} of {remapped} pages remapped");
    assert_eq!(sum(|point| point.host_read_pages), 0);
    let last = points.last().unwrap();
    // Nothing was collected, so that what was programmed for the host is valid or stale, or in the open superblock.
    let (valid, stale) = (last.valid_pages.unwrap(), last.stale_pages.unwrap());
    let found = valid + stale;
    assert!(found <= written && found + 64 + 16 * 20 >= written, "{valid}, {stale}, {written}");
    // The WAL shows what the database shows, but for its blocks of headers and what it logged twice.
    assert!(valid > 2000 && valid < 2200 + result.host.remap_pages / 10, "{valid}");
}

/// What reads as zeroes takes no read of flash, and that of data one for each page.
#[test]
fn a_moved_source_and_an_unwritten_one_read_as_zeroes() {
    for scheme in SCHEMES {
        let set = format!("ftl.remap={scheme}");
        let moved = Script::default().write(0, 8).remap(0, 100, 8, Flags::MOVE);
        let reads = |script: Script| read(&script.run(&[&set]));
        let copied = Script::default().write(0, 8).remap(0, 100, 8, COPY);
        assert_eq!(reads(copied.read(0, 8).read(100, 8)), 16, "{scheme}");
        assert_eq!(reads(moved.read(0, 8).read(100, 8)), 8, "{scheme}");
        let unwritten = Script::default().write(0, 8).remap(500, 0, 4, COPY);
        assert_eq!(reads(unwritten.read(0, 8)), 4, "{scheme}: the target is unmapped");
    }
}

/// Sources count as they were before, and what is target as well stays mapped.
#[test]
fn ranges_may_overlap() {
    for scheme in SCHEMES {
        let set = format!("ftl.remap={scheme}");
        for (source, target) in [(0, 3), (3, 0)] {
            let overlapping =
                |flags| Script::default().write(source, 8).remap(source, target, 8, flags);
            let copied = overlapping(COPY).read(0, 11).run(&[&set]);
            assert_eq!(read(&copied), 11, "{scheme}: {source} to {target}");
            let moved = overlapping(Flags::MOVE).read(0, 11).run(&[&set]);
            assert_eq!(read(&moved), 8, "{scheme}: {source} to {target}");
        }
    }
}

/// The log of LN is full in the end; LH moves it to flash.
#[test]
fn a_full_log_copies_or_refuses() {
    let load = workload("randwrite,qd=4,requests=20k,remap_share=0.5,remap_run=16KiB");
    let run = |scheme: &str, full: &str| {
        let sets = [scheme, full, "ftl.remap_log=64KiB", "precondition.fill=1"];
        on_drive(&load, &sets).unwrap()
    };
    let full = run("ftl.remap=ln", "run.remap_full=copy");
    let [remapped, copied, refused] = outcome(&full);
    assert!(remapped > 1000 && copied > 1000 && refused == 0, "{:?}", outcome(&full));
    assert_eq!(full.flash.program_pages.of("fallback"), copied);
    assert!(remap(&full).log_full > 0);
    let refusing = run("ftl.remap=ln", "run.remap_full=refuse");
    let [remapped, copied, refused] = outcome(&refusing);
    assert!(remapped > 1000 && copied == 0 && refused > 1000, "{:?}", outcome(&refusing));
    assert_eq!(refusing.flash.program_pages.of("fallback"), 0);
    let destaged = run("ftl.remap=lh", "run.remap_full=copy");
    let [remapped, copied, _] = outcome(&destaged);
    assert!(remap(&destaged).destages > 0 && remapped > 10 * copied, "{:?}", outcome(&destaged));
}

/// A remap that comes while its source is programmed waits for it, and one of other pages does not.
#[test]
fn a_remap_waits_for_writes_of_its_ranges() {
    let program_ns = 500_000;
    let latency = |source, target| {
        let mut script = Script::default().write(0, 8).write(100, 1).remap(source, target, 1, COPY);
        script.0[2].t_ns = script.0[1].t_ns + 1000;
        let result = script.run(&["ftl.remap=opt", "run.mode=open"]);
        (result.latency_ns.remap.unwrap().max, outcome(&script.run(&["ftl.remap=opt"])))
    };
    for (source, target) in [(100, 200), (0, 100)] {
        let (waited, done) = latency(source, target);
        assert!((program_ns - 1000..program_ns + 1000).contains(&waited), "{waited}");
        assert_eq!(done, [1, 0, 0]);
    }
    let (waited, _) = latency(0, 200);
    assert!(waited < 1000, "{waited}");
}

#[test]
fn what_cannot_be_remapped_is_explained() {
    let set = "ftl.indirection=16KiB";
    let coarse = ["geometry.page=16KiB", set, "ftl.remap=lh"];
    let said = |script: &Script, sets: &[&str]| script.attempt(sets).unwrap_err().to_string();
    let aligned = Script::default().write(0, 8).remap(0, 8, 4, COPY);
    assert_eq!(outcome(&aligned.run(&coarse)), [1, 0, 0]);
    let off = Script::default().write(0, 8).remap(1, 8, 4, COPY);
    let text = said(&off, &coarse);
    assert!(
        text.starts_with(
            "request 1 (remap of 16384 B from byte 4096 to byte 32768) is not in whole mapping units of 16384 B"
        ),
        "{text}"
    );
    assert_eq!(off.run(&[&coarse[..], &["run.align=drop"]].concat()).host.remap_requests, 0);
    let beyond = Script::default().write(0, 8).remap(1 << 20, 8, 4, COPY);
    let text = said(&beyond, &["ftl.remap=lh"]);
    assert!(text.contains("the trace needs 4294983680 bytes"), "{text}");
    let wrapped = beyond.run(&["ftl.remap=lh", "run.fit=wrap"]);
    assert_eq!(outcome(&wrapped), [4, 0, 0]);
}

/// A volume takes no remaps: a load that has some is refused, or the host writes what it could not remap.
#[test]
fn volumes_take_no_remaps() {
    for full in ["copy", "refuse"] {
        let sets = ["volume.mode=log", &format!("run.remap_full={full}")];
        let text = script().attempt(&sets).unwrap_err().to_string();
        assert!(text.contains("has 2 remaps, which volumes"), "{text}");
    }
    let written = ["volume.mode=log", "run.remap_full=write"];
    let result = script().run(&written);
    let host = |result: &RunResult| {
        [result.host.remap_requests, result.host.write_pages, result.host.trim_pages]
    };
    assert_eq!(host(&result), [0, 160, 32]);
    let warned =
        result.warnings.iter().any(|text| text.starts_with("2 remaps of the trace are written"));
    assert!(warned, "{:?}", result.warnings);
    // The source of a move goes but for what the target lies on.
    for (source, target, trimmed) in [(0, 16, 16), (16, 0, 16), (0, 0, 0), (0, 64, 64)] {
        let moved =
            Script::default().write(0, 128).remap(source, target, 64, Flags::MOVE).run(&written);
        assert_eq!(host(&moved), [0, 192, trimmed], "{source} to {target}");
    }
    let load = workload("randwrite,remap_share=0.1,requests=10");
    let error = on_drive(&load, &["volume.mode=log"]).unwrap_err();
    assert!(error.to_string().contains("drop remap_share"), "{error}");
    let path = PathBuf::from("tests/sim/data/none.oft");
    assert!(on_drive(&Load::Trace(path), &[]).is_err());
}

/// The same load, whatever the scheme, and the same contents at its end: as many pages are mapped.
#[test]
fn schemes_differ_in_how_and_not_in_what() {
    let text = "randrw,qd=8,requests=30k,read_share=0.2,remap_share=0.3,remap_run=32KiB,remap_move_share=0.5";
    let load = workload(text);
    let of = |scheme: &str| {
        let set = format!("ftl.remap={scheme}");
        on_drive(&load, &[&set, "precondition.fill=1", "ftl.remap_log=2MiB"]).unwrap()
    };
    let none = of("none");
    for scheme in &SCHEMES[1..] {
        let result = of(scheme);
        assert_eq!(result.host, none.host, "{scheme}");
        let sum = |result: &RunResult| outcome(result).iter().sum::<u64>();
        assert_eq!(sum(&result), sum(&none), "{scheme}");
        assert_eq!(read(&result), read(&none), "{scheme}: unmapped pages are not read");
        assert!(result.waf < none.waf, "{scheme}: {} and {}", result.waf, none.waf);
    }
    let per_mille = 1000 * none.host.remap_requests / none.host.requests();
    assert!((290..310).contains(&per_mille), "{per_mille}");
    assert_eq!(none.host.remap_pages, 8 * none.host.remap_requests);
}
