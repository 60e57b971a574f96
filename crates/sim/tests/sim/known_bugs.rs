//! Bugs of other simulators, as tests of ours (ssd.md 3.5). Each test opens with the bug.

use std::fmt::Write as _;
use std::path::PathBuf;

use crate::common::{sets, setup, workload};
use onefold_config::Load;
use onefold_sim::result::RunResult;
use onefold_sim::{Control, Setup, SimError, simulate};
use onefold_trace::FormatSpec;
use onefold_tracefile::{Options, TraceFileError};

/// Four dies of 16,384 pages.
const SMALL: [&str; 2] = ["geometry.channels=2", "geometry.blocks=64"];

fn small(changes: &[&str], load: &Load) -> Setup {
    setup("s1", &sets(&[&SMALL[..], changes].concat()), load)
}

fn try_run(changes: &[&str], load: &Load) -> Result<RunResult, SimError> {
    simulate(&small(changes, load), &Control::default())
}

#[track_caller]
fn run(changes: &[&str], load: &str) -> RunResult {
    try_run(changes, &workload(load)).unwrap_or_else(|error| panic!("{load}: {error}"))
}

/// A folder with a trace in the format `mqsim`: ns, device, sector, sectors, 1 = read.
fn trace(lines: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.txt");
    std::fs::write(&path, lines).unwrap();
    (folder, path)
}

/// Replays such a trace, read as `format`.
fn replay(lines: &str, format: &str) -> Result<RunResult, SimError> {
    let (_folder, path) = trace(lines);
    let format = Some(FormatSpec::parse(format).unwrap());
    let trace_options = Options { format, ..Options::default() };
    simulate(&Setup { trace_options, ..small(&[], &Load::Trace(path)) }, &Control::default())
}

/// Reads of 4 KiB, so many ns apart.
fn reads(count: u64, distance: u64) -> String {
    let mut lines = String::new();
    for n in 0..count {
        writeln!(lines, "{} 0 {} 8 1", n * distance, n * 8).unwrap();
    }
    lines
}

/// Throughput was requests divided by whole seconds: short runs were off by up to 100 %.
#[test]
fn time_of_a_short_run_is_exact() {
    for requests in [1, 2, 100] {
        let result = run(&[], &format!("randread,qd=1,requests={requests}"));
        assert_eq!(result.virtual_ns, requests * 50_240);
        assert_eq!(result.host.read_requests, requests);
    }
}

/// Requests never completed once GC throttled writes.
#[test]
fn every_request_completes_under_heavy_collection() {
    for victim in ["greedy", "cost-benefit", "fifo", "d-choices", "random"] {
        let victim = format!("ftl.victim={victim}");
        let changes = ["capacity.logical=0.88", "precondition.overwrite=0.5", &victim];
        let result = run(&changes, "randrw,qd=64,requests=60k,read_share=0.2");
        assert_eq!(result.host.requests(), 60_000, "{victim}");
        let latency = &result.latency_ns;
        assert_eq!(latency.read.count + latency.write.count, 60_000, "{victim}");
        assert!(result.waf > 5.0 && latency.write.max < 10_000_000_000, "{victim}: {result:?}");
    }
}

/// A run on a drive preconditioned to 95 % "succeeded" with 0 requests served.
#[test]
fn a_drive_filled_to_95_percent_serves_every_overwrite() {
    let result = run(&["precondition.fill=0.95"], "randwrite,qd=32,requests=300k");
    assert_eq!((result.host.write_requests, result.host.write_pages), (300_000, 300_000));
    assert_eq!(result.latency_ns.write.count, 300_000);
    assert_eq!(result.flash.program_pages.of("user"), 300_000);
    assert!(result.flash.program_pages.of("gc") > 0 && result.virtual_ns > 0);
}

/// The same: a run of nothing is no result.
#[test]
fn a_load_without_requests_is_refused() {
    for nothing in ["randread,requests=0", "randread,bytes=0"] {
        let error = try_run(&[], &workload(nothing)).unwrap_err();
        assert!(matches!(error, SimError::Workload { .. }), "{nothing}: {error}");
    }
    for empty in ["", "\n\n"] {
        let error = replay(empty, "mqsim").unwrap_err();
        assert!(matches!(error, SimError::Trace(_)), "{empty:?}: {error}");
    }
    // Its one request lies off the grid, and the run is told to drop such.
    let (_folder, path) = trace("t_ns,op,sector512,nsect,flags,lat_ns\n0,R,1,3,,-1\n");
    let error = try_run(&["run.align=drop"], &Load::Trace(path)).unwrap_err();
    assert!(matches!(error, SimError::Empty { .. }), "{error}");
    let error = simulate(&setup("s1", &[], &workload("")), &Control::default()).unwrap_err();
    assert!(matches!(error, SimError::NoLoad), "{error}");
}

/// Copies of a victim counted its invalid pages too: WAF 187.
#[test]
fn only_valid_pages_are_copied() {
    // Overwriting in order kills whole blocks, so there is nothing to copy.
    let result = run(&[], "write,bs=64KiB,drive_writes=4");
    assert_eq!(result.flash.program_pages.of("gc"), 0);
    assert!((result.waf - 1.0).abs() < 1e-12 && result.flash.erases > 0, "WAF {}", result.waf);
    // Copies are what collection wrote beyond the space that the host used up.
    let result = run(&["precondition.overwrite=2"], "randwrite,qd=32,requests=400k");
    let (user, gc) = (result.flash.program_pages.of("user"), result.flash.program_pages.of("gc"));
    assert_eq!(result.flash.read_pages.of("gc"), gc, "each copy is read once");
    let erased = result.flash.erases * 256;
    assert!((user + gc).abs_diff(erased) < 4 * 16 * 256, "{user} + {gc} pages, {erased} erased");
}

/// Preconditioning missed its target by a third.
#[test]
fn preconditioning_fills_exactly_what_was_asked_for() {
    for percent in [1, 33, 50, 95, 100] {
        let fill = format!("precondition.fill={}", onefold_units::convert::float(percent) / 100.0);
        let result = run(&[&fill], "read,bs=64KiB,requests=3584");
        let logical = result.ftl.logical_pages;
        assert_eq!(result.host.read_pages, logical, "the whole device is read once");
        // Pages that hold nothing cost no flash read.
        let expected = (logical * percent + 50) / 100;
        assert_eq!(result.flash.read_pages.total(), expected, "{percent} %");
    }
}

/// A trace that could not be opened was replaced by a synthetic workload in silence.
#[test]
fn a_missing_trace_is_an_error() {
    let missing = Load::Trace("no/such/trace.csv".into());
    let error = try_run(&[], &missing).unwrap_err();
    assert!(
        matches!(error, SimError::Trace(TraceFileError::Io { action: "open", .. })),
        "{error:?}"
    );
    assert!(error.to_string().contains("no/such/trace.csv"), "{error}");
    let error = replay("this is\nno trace\n", "mqsim").unwrap_err();
    assert!(matches!(error, SimError::Trace(_)), "{error:?}");
    // And a trace that is there is the load of the result.
    let result = replay(&reads(10, 1_000_000), "mqsim").unwrap();
    let trace = result.trace.unwrap();
    assert_eq!((trace.requests, trace.format.as_str()), (10, "mqsim"));
    assert_eq!(result.workload, None);
}

/// The unit of time was taken for another, which gave infinite bandwidth.
#[test]
fn units_of_time_decide_how_long_a_trace_takes() {
    let lines = reads(1_000, 1_000);
    let last = 999 * 1_000;
    for (format, ns_per_tick) in
        [("mqsim", 1), ("mqsim:time=ns", 1), ("mqsim:time=us", 1_000), ("mqsim:time=ms", 1_000_000)]
    {
        let result = replay(&lines, format).unwrap();
        let arrivals = last * ns_per_tick;
        assert!(result.virtual_ns >= arrivals + 50_240, "{format}: {}", result.virtual_ns);
        if ns_per_tick > 1 {
            // Slow enough never to queue.
            assert_eq!(result.virtual_ns, arrivals + 50_240, "{format}");
        } else {
            // 1,000 reads in 1 ms exceed what four dies can do: they bound the run instead.
            assert!(result.virtual_ns >= 1_000 * 50_240 / 4, "{}", result.virtual_ns);
        }
    }
}

/// There was no TRIM.
#[test]
fn trimmed_pages_are_neither_read_nor_copied() {
    let trims = "0,D,0,28672,,-1\n"; // the first quarter of 56 MiB
    let read = "1000000000,R,0,1024,,-1\n";
    let header = "t_ns,op,sector512,nsect,flags,lat_ns\n";
    for (lines, pages) in [(format!("{header}{read}"), 128), (format!("{header}{trims}{read}"), 0)]
    {
        let (_folder, path) = trace(&lines);
        let result = try_run(&[], &Load::Trace(path)).unwrap();
        assert_eq!(result.flash.read_pages.total(), pages);
    }
    let waf = |trims: &str| {
        let load = format!("randwrite,qd=32,requests=500k,trim_share={trims}");
        run(&["precondition.overwrite=1"], &load).waf
    };
    let (none, some) = (waf("0"), waf("0.3"));
    assert!(some < 0.4 * none, "WAF {some} with trims, {none} without");
}

/// A replay did not end with its trace.
#[test]
fn a_replay_ends_with_its_trace() {
    // Counts around those in which requests are fetched, and one that ends in a flush.
    for count in [1, 63, 64, 65, 128, 1_000] {
        let result = replay(&reads(count, 100_000), "mqsim").unwrap();
        assert_eq!(result.host.requests(), count);
        assert!(!result.partial);
    }
    let recorded = "../../traces/rec-sqlite-wal-ext4.csv.zst";
    let result = try_run(&["run.fit=wrap"], &Load::Trace(recorded.into())).unwrap();
    let trace = result.trace.as_ref().unwrap();
    assert_eq!(trace.requests, 38_092);
    assert!(result.host.requests() >= trace.requests, "{:?}", result.host);
}
