//! Counts of real traces against numbers that an independent script found.
//!
//! The recorded traces are in `traces/`. The others have unclear rights and are never committed:
//! they are looked for in the folder of `ONEFOLD_TRACES` and skipped, visibly, if absent.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::common::{committed, local, records};
use onefold_trace::{Format, FormatSpec, Info, Scan, TraceOp};
use onefold_tracefile::{Merge, Options, Shift, TraceSource};

/// A trace from either place.
fn find(name: &str) -> Option<PathBuf> {
    Some(committed(name)).filter(|path| path.exists()).or_else(|| local(name))
}

/// One row of the table in `traces/README.md`.
struct Golden {
    file: &'static str,
    format: Format,
    /// Reads, writes, flushes, trims, zeroes.
    requests: [u64; 5],
    /// Bytes of reads, writes, trims, zeroes.
    bytes: [u64; 4],
    duration_ns: u64,
    /// Pages read and written with multiplicity, touched, written at least once.
    pages: [u64; 4],
    /// Sequential, unaligned, multi-page requests.
    requests_of_kind: [u64; 3],
    /// Rewrite share in 1/10,000; top 1 % and top 20 % in 1/1,000.
    shares: [u64; 3],
    out_of_order: u64,
}

const ROWS: [Golden; 12] = [
    Golden {
        file: "rec-rocksdb-ycsba-ext4.csv.zst",
        format: Format::OnefoldCsv,
        requests: [224_029, 9_610, 1_951, 534, 64],
        bytes: [6_800_902_656, 7_690_792_960, 13_498_306_560, 134_209_536],
        duration_ns: 232_042_940_000,
        pages: [1_856_111, 1_877_635, 1_627_904, 1_627_641],
        requests_of_kind: [15_925, 223_140, 231_602],
        shares: [1_331, 29, 307],
        out_of_order: 0,
    },
    Golden {
        file: "rec-sqlite-wal-ext4.csv.zst",
        format: Format::OnefoldCsv,
        requests: [58, 22_411, 15_611, 4, 8],
        bytes: [1_106_944, 352_366_592, 229_580_800, 16_773_120],
        duration_ns: 17_772_884_000,
        pages: [271, 86_027, 5_345, 5_084],
        requests_of_kind: [445, 1, 16_432],
        shares: [9_409, 47, 861],
        out_of_order: 0,
    },
    Golden {
        file: "rec-sqlite-wal-nbdkit-filter-log.txt.zst",
        format: Format::NbdkitLog,
        requests: [65, 22_423, 15_616, 14, 4],
        bytes: [1_147_904, 352_980_992, 1_320_099_840, 33_628_160],
        duration_ns: 17_972_073_000,
        pages: [281, 86_177, 5_358, 5_226],
        requests_of_kind: [446, 1, 16_441],
        shares: [9_394, 49, 876],
        out_of_order: 126,
    },
    Golden {
        file: "rec-fio-ext4-journal.csv.zst",
        format: Format::OnefoldCsv,
        requests: [24_889, 415_577, 50_107, 1, 24],
        bytes: [317_912_064, 16_801_042_432, 130_023_424, 50_315_264],
        duration_ns: 68_726_772_000,
        pages: [77_616, 4_101_817, 278_823, 278_561],
        requests_of_kind: [20_402, 1, 205_583],
        shares: [9_321, 92, 759],
        out_of_order: 0,
    },
    Golden {
        file: "rec-dedup-homes-mail-ext4.fiu.zst",
        format: Format::Fiu,
        requests: [320, 340_440, 23_384, 9_179, 4],
        bytes: [1_307_648, 1_394_442_240, 3_644_088_320, 67_182_592],
        duration_ns: 20_155_784_454,
        pages: [320, 340_440, 154_785, 154_656],
        requests_of_kind: [307_581, 1, 0],
        shares: [5_457, 49, 576],
        out_of_order: 60_545,
    },
    Golden {
        file: "msr-hm_0-snia-sample-1000.csv.zst",
        format: Format::Msr,
        requests: [508, 492, 0, 0, 0],
        bytes: [6_108_672, 3_580_928, 0, 0],
        duration_ns: 127_233_494_100,
        pages: [1_537, 936, 1_917, 475],
        requests_of_kind: [39, 153, 371],
        shares: [4_925, 104, 478],
        out_of_order: 0,
    },
    Golden {
        file: "fiu-mail-cheetah-2008-11-01-first9997.blkparse.zst",
        format: Format::Fiu,
        requests: [8_896, 1_101, 0, 0, 0],
        bytes: [36_438_016, 4_509_696, 0, 0],
        duration_ns: 23_566_198_233,
        pages: [8_896, 1_101, 9_201, 893],
        requests_of_kind: [8_518, 0, 0],
        shares: [1_889, 94, 351],
        out_of_order: 0,
    },
    Golden {
        file: "umass-financial1-first10k.ssdsim.ascii.zst",
        format: Format::Ssdsim,
        requests: [4_077, 5_923, 0, 0, 0],
        bytes: [25_437_696, 29_841_408, 0, 0],
        duration_ns: 259_601_203_125,
        pages: [10_105, 12_406, 7_322, 3_734],
        requests_of_kind: [4_524, 9_989, 6_067],
        shares: [6_990, 141, 562],
        out_of_order: 0,
    },
    Golden {
        file: "ms-tpcc-small.mqsim.trace.zst",
        format: Format::Ssdsim,
        requests: [4_381, 2_618, 0, 0, 0],
        bytes: [36_315_136, 23_403_520, 0, 0],
        duration_ns: 136_489_000,
        pages: [12_674, 7_995, 20_470, 7_879],
        requests_of_kind: [87, 6_107, 6_965],
        shares: [145, 22, 212],
        out_of_order: 0,
    },
    Golden {
        file: "java-app-ext4.blkparse.zst",
        format: Format::Blkparse,
        requests: [9_039, 848, 0, 0, 0],
        bytes: [1_047_625_728, 251_944_960, 0, 0],
        duration_ns: 810_379_690_811,
        pages: [255_768, 61_510, 317_163, 61_395],
        requests_of_kind: [3_446, 0, 9_726],
        shares: [19, 12, 201],
        out_of_order: 3_712,
    },
    Golden {
        file: "hadoop-eternity8-sdb.blktrace.36.bin.zst",
        format: Format::Blktrace,
        requests: [2_088, 1, 0, 0, 0],
        bytes: [537_078_272, 8_192, 0, 0],
        duration_ns: 133_016_623_331,
        pages: [131_127, 3, 131_122, 3],
        requests_of_kind: [957, 6, 1_988],
        shares: [0, 333, 333],
        out_of_order: 0,
    },
    Golden {
        file: "cloudphysics-sample.vscsi1.bin.zst",
        format: Format::Vscsi1,
        requests: [46_974, 66_898, 0, 0, 0],
        bytes: [1_797_412_352, 2_408_565_760, 0, 0],
        duration_ns: 7_200_089_885_000,
        pages: [485_700, 656_169, 269_210, 208_696],
        requests_of_kind: [29_558, 113_768, 107_110],
        shares: [6_819, 74, 400],
        out_of_order: 0,
    },
];

/// Devices apart, lines as they are.
fn raw() -> Options {
    Options { merge: Merge::Off, flat: false, ..Default::default() }
}

fn count(path: &std::path::Path, options: &Options) -> (TraceSource, Info) {
    let mut source = TraceSource::open(path, options).unwrap();
    let mut info = Info::new();
    let mut batch = Vec::new();
    while source.next_batch(&mut batch).unwrap() {
        for record in &batch {
            info.add(record);
        }
    }
    (source, info)
}

use TraceOp::{Flush, Read, Trim, Write, WriteZeroes};

fn check(golden: &Golden, path: &std::path::Path) {
    let (source, info) = count(path, &raw());
    let name = golden.file;
    assert_eq!(source.meta().spec, FormatSpec::new(golden.format), "{name}");
    let of = |op| info.of(op);
    assert_eq!(
        [Read, Write, Flush, Trim, WriteZeroes].map(|op| of(op).requests),
        golden.requests,
        "requests of {name}"
    );
    assert_eq!(source.meta().requests, golden.requests.iter().sum::<u64>());
    assert_eq!([Read, Write, Trim, WriteZeroes].map(|op| of(op).bytes), golden.bytes, "{name}");
    assert_eq!(info.duration_ns(), golden.duration_ns, "duration of {name}");
    let pages = [info.read_pages(), info.write_pages(), info.touched_pages(), info.written_pages()];
    assert_eq!(pages, golden.pages, "pages of {name}");
    let kinds = [info.sequential(), info.unaligned(), info.multi_page()];
    assert_eq!(kinds, golden.requests_of_kind, "kinds of {name}");
    let share = |value: f64, scale: f64| onefold_units::convert::floor_u64((value * scale).round());
    let shares = [
        share(info.rewrite_share(), 10_000.0),
        share(info.top_write_share(100), 1_000.0),
        share(info.top_write_share(5), 1_000.0),
    ];
    assert_eq!(shares, golden.shares, "shares of {name}");
    assert_eq!(source.meta().out_of_order, golden.out_of_order, "order of {name}");
}

#[test]
fn counts_of_all_traces() {
    let mut skipped = Vec::new();
    for golden in &ROWS {
        match find(golden.file) {
            Some(path) => check(golden, &path),
            None => skipped.push(golden.file),
        }
    }
    if !skipped.is_empty() {
        eprintln!("skipped {} of {} traces: {}", skipped.len(), ROWS.len(), skipped.join(", "));
    }
    assert!(ROWS.len() - skipped.len() >= 3, "the committed traces are missing");
}

#[test]
fn digests_and_merging() {
    let mut skipped = 0;
    let rows = [
        ("rec-dedup-homes-mail-ext4.fiu.zst", 212_276, 128_164, 873, 77_943, 73, 45_303),
        ("fiu-mail-cheetah-2008-11-01-first9997.blkparse.zst", 797, 304, 61, 9_931, 8_830, 1_101),
    ];
    for (file, distinct, seen, same, requests, reads, writes) in rows {
        let Some(path) = find(file) else {
            skipped += 1;
            continue;
        };
        let (_, info) = count(&path, &raw());
        let counts =
            [info.distinct_digests(), info.duplicate_pages(), info.same_lba_same_content()];
        assert_eq!(counts, [distinct, seen, same], "{file}");
        let (source, merged) = count(&path, &Options { flat: false, ..Default::default() });
        let of = |op| merged.of(op).requests;
        let counts = [merged.requests(), of(Read), of(Write)];
        assert_eq!(counts, [requests, reads, writes], "{file}");
        assert_eq!(source.merged(), info.requests() - requests);
        // Merging moves no byte and loses no digest.
        assert_eq!(merged.of(Write).bytes, info.of(Write).bytes);
        assert_eq!(merged.duplicate_pages(), seen);
    }
    if skipped > 0 {
        eprintln!("skipped {skipped} of {} traces with digests", rows.len());
    }
}

#[test]
fn shift_auto_aligns_cloudphysics() {
    let Some(path) = find("cloudphysics-sample.vscsi1.bin.zst") else {
        eprintln!("skipped 1 of 1 traces: cloudphysics");
        return;
    };
    let (source, info) = count(&path, &Options { shift: Shift::Auto, ..raw() });
    assert_eq!(source.meta().shift_bytes, 7 * 512);
    assert_eq!(info.requests() - info.unaligned(), 81_253);
}

#[test]
fn first_time_of_msr_is_exact() {
    let Some(path) = find("msr-hm_0-snia-sample-1000.csv.zst") else {
        eprintln!("skipped 1 of 1 traces: msr");
        return;
    };
    let source = TraceSource::open(&path, &Options::default()).unwrap();
    // 2007-02-22 17:22:09.5514663 UTC.
    assert_eq!(source.meta().epoch_unix_ns, Some(1_172_164_929_551_466_300));
    assert_eq!(
        source.meta().interpretation,
        "msr-hm_0-snia-sample-1000.csv.zst: MSR CSV, FILETIME 100 ns, bytes (zstd), 1 device \
         (hm_0), 1,000 requests"
    );
}

#[test]
fn a_late_event_does_not_stretch_the_trace() {
    let Some(path) = find("java-app-ext4.blkparse.zst") else {
        eprintln!("skipped 1 of 1 traces: java");
        return;
    };
    let (source, _) = count(&path, &raw());
    let (jumps, cut_ns) = source.jumps();
    assert_eq!((jumps, cut_ns / 1_000_000_000 / 86_400 / 365), (1, 40));
}

#[test]
fn devices_are_laid_one_after_another() {
    let Some(path) = find("umass-financial1-first10k.ssdsim.ascii.zst") else {
        eprintln!("skipped 1 of 1 traces: financial1");
        return;
    };
    let (_, apart) = count(&path, &raw());
    let (source, flat) = count(&path, &Options { flat: true, ..raw() });
    assert_eq!(flat.touched_pages(), apart.touched_pages());
    assert!(source.meta().end_bytes.is_multiple_of(1 << 30));
    let one = Options { device: Some("1".to_owned()), ..raw() };
    let (source, one) = count(&path, &one);
    assert!(one.requests() > 0 && one.requests() < apart.requests());
    assert!(source.meta().interpretation.contains("device 1 of 22"));
    let none = Options { device: Some("99".to_owned()), ..raw() };
    let error = TraceSource::open(&path, &none).unwrap_err().to_string();
    assert!(error.contains("no device is called `99`, expected one of 0, 1,"), "{error}");
}

#[test]
fn both_recordings_of_sqlite_hold_the_same_requests() {
    let block = records(&committed("rec-sqlite-wal-ext4.csv.zst"), &raw());
    let server = records(&committed("rec-sqlite-wal-nbdkit-filter-log.txt.zst"), &raw());
    let mut zeroes = 0;
    let mut differ: BTreeMap<(TraceOp, u64, u64), i64> = BTreeMap::new();
    for record in &block {
        // A loop device turns zeroing writes into discards.
        let op = if record.op == WriteZeroes {
            zeroes += 1;
            Trim
        } else {
            record.op
        };
        *differ.entry((op, record.offset, record.len)).or_default() += 1;
    }
    // The first 30 requests of the server are mkfs.
    for record in server.iter().skip(30) {
        *differ.entry((record.op, record.offset, record.len)).or_default() -= 1;
    }
    differ.retain(|_, count| *count != 0);
    assert_eq!(zeroes, 8);
    assert!(differ.is_empty(), "{differ:?}");
}

#[test]
fn a_scan_agrees_with_the_full_count() {
    let mut scan = Scan::new();
    for record in records(&committed("rec-sqlite-wal-ext4.csv.zst"), &raw()) {
        scan.add(&record);
    }
    assert_eq!((scan.requests, scan.data_bytes), (38_092, 1_106_944 + 352_366_592));
    assert_eq!(scan.time_resolution_ns(), 1_000);
    assert_eq!(scan.out_of_order, 0);
}
