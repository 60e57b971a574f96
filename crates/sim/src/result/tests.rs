//! Tests of the result format, and the sample other tests build on.

use onefold_units::{Cause, CauseCounts};
use serde_json::json;

use super::{
    Area, Buffer, ByCause, CcdfPoint, Device, Flash, Ftl, Host, LatencySummary, LittlesLaw,
    Precondition, Program, Reclaims, ResultError, RunResult, SavedPages, Series, SeriesPoint,
    Stalls, TraceSource, Volume, Waits, Wear, Zoned, ZonedDevice, ZonedVolume, labels, table,
};

fn counts(user: u64, gc: u64, metadata: u64) -> CauseCounts {
    let mut counts = CauseCounts::default();
    counts.add(Cause::User, user);
    counts.add(Cause::Gc, gc);
    counts.add(Cause::Metadata, metadata);
    counts
}

fn latency(mean: f64) -> LatencySummary {
    let p50 = onefold_units::convert::floor_u64(mean * 0.9);
    LatencySummary {
        count: 1_000_000,
        mean,
        p50,
        p90: p50 * 2,
        p99: p50 * 4,
        p999: p50 * 12,
        p9999: p50 * 20,
        max: p50 * 40,
    }
}

/// A plausible result with every part filled.
pub(crate) fn sample() -> RunResult {
    let mut run = RunResult::from_json(MINIMAL).unwrap();
    run.onefold = Program { version: "0.1.0".to_owned(), commit: "0123456789abcdef".to_owned() };
    run.seed = 7;
    run.config = json!({"geometry": {"channels": 8}, "ftl": {"victim": "greedy"}});
    run.config_sha256 = "ab".repeat(32);
    run.trace = Some(TraceSource {
        path: "traces/trace.csv".to_owned(),
        format: "msr".to_owned(),
        sha256: "cd".repeat(32),
        requests: 2_000_000,
        skipped: 0,
        passes: 1,
        replay: "dependencies".to_owned(),
    });
    run.device = Device {
        preset: Some("s1".to_owned()),
        name: "s1".to_owned(),
        logical_bytes: 3_758_096_384,
        raw_bytes: 4_294_967_296,
        op: 1.0 / 7.0,
    };
    run.host = Host {
        read_requests: 1_000_000,
        write_requests: 1_000_000,
        read_pages: 1_000_000,
        write_pages: 1_000_000,
        ..Host::default()
    };
    let causes = counts(1_000_000, 5_300_000, 24_000);
    run.flash = Flash {
        program_pages: ByCause::from(&causes),
        read_pages: ByCause::from(&counts(1_000_000, 5_300_000, 0)),
        saved_pages: SavedPages::default(),
        erases: 24_700,
        wear: Wear { min: 3, mean: 6.03, max: 9 },
    };
    run.ftl = Ftl {
        rho: 0.921,
        usable_pages: 996_000,
        logical_pages: 917_504,
        superblocks: 4096,
        victim: "greedy".to_owned(),
        ..Ftl::default()
    };
    run.buffer = Buffer {
        policy: "pt-lru:p=1/2".to_owned(),
        read_hits: 900,
        read_misses: 100,
        hit_ratio: 0.9,
        read_hit_ratio: 0.9,
        areas: ["clean", "dirty"].map(area).to_vec(),
        ..Buffer::default()
    };
    run.waf = 6.324;
    run.latency_ns.read = latency(133_400.0);
    run.latency_ns.write = latency(2_512_345.678_9);
    run.virtual_ns = 80_000_000_000;
    run.cpu_s = 0.4;
    run.page_ops = 13_600_000;
    run.series = series();
    run.latency_ccdf.read = ccdf(40_000);
    run.latency_ccdf.write = ccdf(200_000);
    run.superblocks.valid_histogram = (0..20).map(|n| n * n * 3).collect();
    run.superblocks.slots = 255;
    run.checks.littles_law =
        Some(LittlesLaw { in_flight_mean: 32.0, rate_x_latency: 31.99, relative_error: 0.0003 });
    run.precondition = Some(Precondition { fill: 1.0, ..Precondition::default() });
    run.volume = Some(volume());
    run.zoned_volume = Some(zoned_volume());
    run.stack = vec![super::StackPlace {
        name: "data".to_owned(),
        kind: "log".to_owned(),
        on: vec!["zones".to_owned()],
        host: Host { write_pages: 1_000, ..Host::default() },
        written_pages: 1_200,
        write_ratio: 1.2,
    }];
    run.zoned = Some(Zoned {
        zone_bytes: 64 << 20,
        zones: [("full".to_owned(), 7)].into(),
        resets: 3,
        ..Zoned::default()
    });
    run
}

fn volume() -> Volume {
    let sent = [("cleaning", 176_000), ("header", 5_000), ("user", 1_000_000)];
    Volume {
        mode: "log".to_owned(),
        sent_pages: sent.map(|(cause, pages)| (cause.to_owned(), pages)).into(),
        waf_host: 1.181,
        waf_device: 1.05,
        cleaned_segments: 620,
        stalls: Stalls {
            requests: 12,
            total_ns: 1_000_000,
            max_ns: 400_000,
            max_paced_ns: 300_000,
        },
        log_pages: 900_000,
        live_pages: 450_000,
        ..Volume::default()
    }
}

fn zoned_volume() -> ZonedVolume {
    let sent = [("user", 900), ("reclaim_rnd_data", 700), ("zero_fill", 12)];
    ZonedVolume {
        policy: "dmz".to_owned(),
        journal: "off".to_owned(),
        zone_bytes: 64 << 20,
        chunks: 62,
        cache_zones: 14,
        devices: vec![ZonedDevice {
            name: "zoned".to_owned(),
            sent_pages: sent.map(|(cause, pages)| (cause.to_owned(), pages)).into(),
            ..ZonedDevice::default()
        }],
        reclaims: [(
            "rnd_data".to_owned(),
            Reclaims { started: 9, aborted: 2, ..Reclaims::default() },
        )]
        .into(),
        waits: [("reclaim".to_owned(), Waits { count: 3, total_ns: 2_000_000 })].into(),
        phys_per_user: 1.79,
        ..ZonedVolume::default()
    }
}

fn area(name: &str) -> Area {
    Area { name: name.to_owned(), evictions: 1234, write_backs: 7 }
}

fn series() -> Series {
    let point = |n: u64| SeriesPoint {
        virtual_ns: (n + 1) * 4_000_000_000,
        host_write_pages: 50_000,
        program_pages: ByCause::non_zero(&counts(50_000, 10_000 * n, 0)),
        waf: 1.0 + 0.2 * onefold_units::convert::float(n),
        read_mean_ns: 133_000.0,
        write_mean_ns: 900_000.0,
        free_superblocks: 400 - 10 * n,
        ..SeriesPoint::default()
    };
    Series { window_requests: 100_000, points: (0..20).map(point).collect() }
}

fn ccdf(first_ns: u64) -> Vec<CcdfPoint> {
    let halved = |n: i32| CcdfPoint(first_ns * u64::from(n.unsigned_abs() + 1), 0.5_f64.powi(n));
    (0..21).map(halved).collect()
}

/// The least a result holds.
pub(crate) const MINIMAL: &str = r#"{"schema": "onefold.sim/1", "onefold": {"version": "", "commit": ""},
 "seed": 0, "partial": false, "config": {}, "config_sha256": "", "trace": null,
 "host": {"read_requests": 0}, "flash": {"program_pages": {"user": 0, "gc": 0}},
 "ftl": {"rho": 0.0}, "waf": 0.0, "latency_ns": {"read": {}, "write": {}},
 "virtual_ns": 0, "cpu_s": 0.0, "page_ops": 0}"#;

/// The example of design.md, section 5, as printed there.
const DESIGN: &str = r#"{"schema": "onefold.sim/1", "onefold": {"version": "", "commit": ""}, "seed": 0, "partial": false,
 "config": {}, "config_sha256": "",
 "trace": {"path": "", "format": "", "sha256": "", "requests": 0},
 "host": {"read_requests": 0, "write_requests": 0, "trim_requests": 0, "flush_requests": 0,
          "read_pages": 0, "write_pages": 0, "trim_pages": 0},
 "buffer": {"policy": "", "read_hits": 0, "read_misses": 0, "write_hits": 0, "write_misses": 0, "hit_ratio": 0.0},
 "flash": {"program_pages": {"user": 0, "gc": 0}, "read_pages": {"user": 0, "gc": 0}, "erases": 0},
 "ftl": {"rho": 0.0, "usable_pages": 0, "logical_pages": 0},
 "waf": 0.0,
 "latency_ns": {"read": {"mean": 0, "p50": 0, "p99": 0, "p999": 0, "max": 0}, "write": {}},
 "virtual_ns": 0, "cpu_s": 0.0, "page_ops": 0}"#;

#[test]
fn json_round_trips() {
    let run = sample();
    let text = run.to_json_pretty();
    assert_eq!(RunResult::from_json(&text).unwrap(), run);
    assert!(text.ends_with("}\n"));
}

/// Keys of `text` that stand at the start of a line with `indent` blanks, in order.
fn keys(text: &str, indent: usize) -> Vec<String> {
    let prefix = format!("{}\"", " ".repeat(indent));
    let lines = text.lines().filter_map(|line| line.strip_prefix(&prefix));
    lines.filter_map(|line| Some(line.split_once("\":")?.0.to_owned())).collect()
}

#[test]
fn keys_stand_in_the_documented_order() {
    let text = sample().to_json_pretty();
    let documented = [
        "schema",
        "onefold",
        "seed",
        "partial",
        "config",
        "config_sha256",
        "trace",
        "host",
        "buffer",
        "flash",
        "ftl",
        "waf",
        "latency_ns",
        "virtual_ns",
        "cpu_s",
        "page_ops",
        "workload",
        "device",
        "latency_by_delay",
        "latency_ccdf",
        "series",
        "superblocks",
        "checks",
        "tenants",
        "precondition",
        "map_cache",
        "faults",
        "remap",
        "recovery",
        "volume",
        "zoned",
        "zoned_volume",
        "stack",
        "bandwidth",
        "warnings",
    ];
    assert_eq!(keys(&text, 2), documented);
    let causes: Vec<&str> = Cause::ALL.into_iter().map(Cause::name).collect();
    let programmed = text.split_once("\"program_pages\"").unwrap().1;
    assert_eq!(keys(programmed.split_once('}').unwrap().0, 6), causes);
}

#[test]
fn every_key_of_a_result_is_documented() {
    let documented = include_str!("../../../../docs/results.md");
    let value: serde_json::Value = serde_json::from_str(&sample().to_json_pretty()).unwrap();
    let mut missing = Vec::new();
    collect_undocumented(&value, documented, &mut missing);
    assert_eq!(missing, Vec::<String>::new());
}

fn collect_undocumented(value: &serde_json::Value, text: &str, missing: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(map) => {
            for (key, inner) in map {
                if !text.contains(&format!("`{key}`")) {
                    missing.push(key.clone());
                }
                if key != "config" {
                    collect_undocumented(inner, text, missing);
                }
            }
        }
        serde_json::Value::Array(items) => {
            for item in items {
                collect_undocumented(item, text, missing);
            }
        }
        _ => {}
    }
}

#[test]
fn the_example_of_the_design_is_a_result() {
    let run = RunResult::from_json(DESIGN).unwrap();
    let printed = run.to_json_pretty();
    let value: serde_json::Value = serde_json::from_str(DESIGN).unwrap();
    let ours: serde_json::Value = serde_json::from_str(&printed).unwrap();
    for key in value.as_object().unwrap().keys() {
        assert!(ours.get(key).is_some(), "{key} is missing");
    }
}

#[test]
fn unknown_keys_and_causes_are_tolerated() {
    let text = MINIMAL.replace("\"seed\"", "\"zones\": {\"x\": [1]}, \"seed\"");
    let text = text.replace("\"gc\": 0", "\"gc\": 3, \"scrub\": 4");
    let run = RunResult::from_json(&text).unwrap();
    assert_eq!(run.flash.program_pages.of("scrub"), 4);
    assert_eq!(run.flash.program_pages.total(), 7);
    assert!(table(&[run]).contains("pages programmed, scrub"));
}

#[test]
fn text_that_is_no_result_is_refused_with_the_reason() {
    let error = |text: &str| RunResult::from_json(text).unwrap_err();
    assert!(matches!(error(" \n"), ResultError::Empty));
    assert!(matches!(error(&MINIMAL[..200]), ResultError::Truncated { line: 3, .. }));
    assert!(matches!(error("schema = 1"), ResultError::NotJson { .. }));
    assert!(matches!(error(&format!("{MINIMAL}{MINIMAL}")), ResultError::NotJson { .. }));
    assert!(matches!(error("[1]"), ResultError::NoSchema));
    assert!(matches!(error("{\"schema\": 3}"), ResultError::NoSchema));
    assert!(matches!(error("{}"), ResultError::NoSchema));
    let with = |schema: &str| MINIMAL.replace("onefold.sim/1", schema);
    let found = error(&with("onefold.sim/2"));
    assert!(matches!(&found, ResultError::NewerSchema { found } if found == "onefold.sim/2"));
    assert!(found.to_string().contains("upgrade"), "{found}");
    assert!(matches!(error(&with("onefold.trace/1")), ResultError::OtherSchema { .. }));
    assert!(matches!(error(&with("onefold.sim/0")), ResultError::OtherSchema { .. }));
    let missing = error(&MINIMAL.replace("\"virtual_ns\": 0,", "")).to_string();
    assert!(missing.contains("virtual_ns"), "{missing}");
    let negative = error(&MINIMAL.replace("\"seed\": 0", "\"seed\": -1")).to_string();
    assert!(negative.contains("-1"), "{negative}");
    // A byte order mark is harmless.
    assert!(RunResult::from_json(&format!("\u{feff}{MINIMAL}")).is_ok());
}

#[test]
fn floats_are_finite() {
    let mut run = sample();
    run.waf = f64::NAN;
    run.cpu_s = f64::INFINITY;
    run.latency_ns.read.mean = f64::NEG_INFINITY;
    run.latency_ccdf.read[0].1 = f64::NAN;
    let read = RunResult::from_json(&run.to_json_pretty()).unwrap();
    assert!(read.waf.abs() < f64::EPSILON && read.latency_ccdf.read[0].1.abs() < f64::EPSILON);
    assert!(read.cpu_s.is_finite() && read.latency_ns.read.mean.is_finite());
}

#[test]
fn tables_are_aligned() {
    let mut other = sample();
    other.device.name = "a-longer-device-\u{e4}".to_owned();
    other.host.write_pages = 0;
    other.partial = true;
    other.warnings = vec!["fewer requests than a window".to_owned()];
    let runs = [sample(), other];
    let text = table(&runs);
    let (rows, warnings) = text.split_once("\nwarning ").unwrap();
    let widths: Vec<usize> =
        rows.lines().filter(|line| !line.is_empty()).map(|line| line.chars().count()).collect();
    assert!(widths.len() > 25, "{text}");
    assert!(widths.iter().all(|width| *width == widths[0]), "{text}");
    assert!(warnings.contains("(run 2): fewer requests"), "{text}");
    assert!(rows.lines().any(|line| line.starts_with("WAF ") && line.contains("6.324")), "{text}");
    assert!(rows.contains("read latency mean"), "{text}");
    assert!(
        rows.lines().any(|line| line.starts_with("evictions, dirty") && line.contains("1,234"))
    );
    assert!(!rows.contains("buffer hit ratio, writes"), "nothing was written: {text}");
    assert!(
        rows.lines().any(|line| line.starts_with("log in use") && line.contains("50")),
        "{text}"
    );
    assert!(rows.contains("pages sent, cleaning"), "{text}");
    assert!(rows.contains("133 us"), "{text}");
    assert!(rows.contains("51.2 MB/s"), "{text}");
    assert!(rows.contains("34.0 M"), "{text}");
    assert!(labels(&runs).iter().all(|label| rows.contains(label.as_str())), "{text}");
}

/// The prototype of volume.md, section 12, has neither headers nor checkpoints.
#[test]
fn amplification_of_data_leaves_out_what_is_no_data() {
    let volume = volume();
    assert!((volume.waf_data() - 1.176 * 1.05).abs() < 1e-9);
    assert!(Volume::default().waf_data().abs() < f64::EPSILON);
}

#[test]
fn a_table_of_nothing_and_of_one_run() {
    assert_eq!(table(&[]), "");
    let mut run = RunResult::from_json(MINIMAL).unwrap();
    run.workload = Some("randread\u{1b}[31m\n".to_owned());
    let text = table(&[run]);
    assert!(text.contains("randread?[31m?"), "{text}");
    assert!(!text.contains("write latency"), "{text}");
}
