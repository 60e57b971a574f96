//! How fast traces are read: lines per second of every text format, records per second of OFT.
//!
//! `cargo bench -p onefold-tracefile` prints one line per format: millions of records per second of
//! one thread, and MB/s, the best of five runs over a file in memory. In blkparse, tracefs and
//! nbdkit-log a record takes two lines: issue and completion.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Instant;

use onefold_trace::{
    Format, FormatSpec, Info, ReadOptions, Reader, Record, TraceOp, WriteFormat, Writer,
};
use onefold_units::convert::{float, u64_from};

/// Records of a sample.
const RECORDS: u64 = 1_000_000;

/// Bytes pushed at once, as `TraceSource` does.
const CHUNK: usize = 1 << 18;

const RUNS: usize = 5;

/// A line of the format for a request of 4 KiB pages.
fn line(format: Format, n: u64, page: u64, write: bool, text: &mut String) {
    let (sector, bytes) = (page * 8, page * 4_096);
    let (rw, word) = if write { ('W', "Write") } else { ('R', "Read") };
    let result = match format {
        Format::Msr => {
            let ticks = 128_166_385_295_514_663 + n * 1_000;
            writeln!(text, "{ticks},hm,0,{word},{bytes},4096,2833")
        }
        Format::Fiu => {
            let md5 = u128::from(page) << 64 | u128::from(n);
            writeln!(text, "{} 4253 nfsd {sector} 8 {rw} 6 0 {md5:032x}", n * 1_000)
        }
        Format::Spc => writeln!(text, "0,{sector},4096,{rw},{}.{:06}", n / 1_000, n % 1_000),
        Format::Systor => {
            let s = 1_455_592_390 + n / 1_000;
            writeln!(text, "{s}.{:09},0.000500000,{rw},1,{bytes},4096", n % 1_000 * 1_000)
        }
        Format::Alibaba => writeln!(text, "419,{rw},{bytes},4096,{}", 1_577_808_144_360_767 + n),
        Format::Tencent => {
            writeln!(text, "{},{sector},8,{},1063", 1_538_323_200 + n / 99, u8::from(write))
        }
        Format::Ssdsim => writeln!(text, "{} 0 {sector} 8 {}", n * 1_000, u8::from(!write)),
        Format::Blkparse => {
            let (s, ns) = (n / 1_000, n % 1_000);
            let tail = format_args!("{rw} {sector} + 8");
            writeln!(
                text,
                "  8,16   3 {n:8} {s:5}.{ns:09}  3645  D   {tail} [java]\n  8,16   3 {n:8} \
                 {s:5}.{ns:09}     0  C   {tail} [0]"
            )
        }
        Format::Tracefs => {
            let (s, us) = (n / 1_000, n % 1_000);
            writeln!(
                text,
                "kworker/0:1-55 [000] d..1. {s}.{us:06}: block_rq_issue: 259,0 {rw}S 4096 () \
                 {sector} + 8 be,0,4 [kworker/0:1]\n<idle>-0 [000] d.h1. {s}.{us:06}: \
                 block_rq_complete: 259,0 {rw}S () {sector} + 8 be,0,4 [0]"
            )
        }
        Format::NbdkitLog => {
            let us = n % 1_000_000;
            writeln!(
                text,
                "2026-11-20 18:25:23.{us:06} connection=1 {word} id={n} offset={bytes:#x} \
                 count=0x1000 fua=0 ...\n2026-11-20 18:25:23.{us:06} connection=1 ...{word} \
                 id={n} return=0"
            )
        }
        Format::FioIolog => writeln!(text, "{n} f {} {bytes} 4096", word.to_ascii_lowercase()),
        _ => writeln!(text, "{},{rw},{sector},8,S,92000", n * 1_000),
    };
    // Writing to a string cannot fail.
    let _ = result;
}

fn sample(format: Format) -> Vec<u8> {
    let mut text = String::new();
    match format {
        Format::FioIolog => text.push_str("fio version 3 iolog\n"),
        Format::OnefoldCsv => text.push_str("t_ns,op,sector512,nsect,flags,lat_ns\n"),
        _ => {}
    }
    let mut rng = onefold_units::Rng::new(1);
    for n in 0..RECORDS {
        line(format, n, rng.below(1 << 24), rng.below(3) > 0, &mut text);
    }
    text.into_bytes()
}

/// Reads a file from memory; the best time in seconds.
fn time(format: Format, file: &[u8]) -> f64 {
    let mut best = f64::INFINITY;
    let mut records: Vec<Record> = Vec::new();
    for _ in 0..RUNS {
        let mut reader = Reader::new(FormatSpec::new(format), ReadOptions::default())
            .expect("the format is a stream");
        let mut count = 0;
        let start = Instant::now();
        for chunk in file.chunks(CHUNK) {
            records.clear();
            reader.push(chunk, &mut records).expect("the sample is well formed");
            count += u64_from(records.len());
        }
        records.clear();
        reader.finish(&mut records).expect("the sample is complete");
        count += u64_from(records.len());
        assert_eq!(count, RECORDS);
        best = best.min(start.elapsed().as_secs_f64());
    }
    best
}

fn main() {
    let mut out = std::io::stdout().lock();
    let mut show = |name: &str, seconds: f64, bytes: usize| {
        let rate = float(RECORDS) / seconds / 1e6;
        let speed = float(u64_from(bytes)) / seconds / 1e6;
        // A closed pipe is the reader's choice.
        let _ = writeln!(out, "{name:12} {rate:8.2} M records/s {speed:8.0} MB/s");
    };
    let formats = [
        Format::Msr,
        Format::Fiu,
        Format::Spc,
        Format::Systor,
        Format::Alibaba,
        Format::Tencent,
        Format::Ssdsim,
        Format::Blkparse,
        Format::Tracefs,
        Format::NbdkitLog,
        Format::FioIolog,
        Format::OnefoldCsv,
    ];
    for format in formats {
        let file = sample(format);
        show(format.name(), time(format, &file), file.len());
    }
    let mut rng = onefold_units::Rng::new(1);
    let mut writer = Writer::new(WriteFormat::Oft, 0, Vec::new(), false);
    let mut file = Vec::new();
    let records: Vec<Record> = (0..RECORDS)
        .map(|n| Record::new(n * 1_000, TraceOp::Write, rng.below(1 << 24) * 4_096, 4_096))
        .collect();
    let start = Instant::now();
    for record in &records {
        writer.push(record, &mut file);
    }
    writer.finish(&mut file);
    show("oft write", start.elapsed().as_secs_f64(), file.len());
    show("oft", time(Format::Oft, &file), file.len());
    let mut info = Info::new();
    let start = Instant::now();
    for record in &records {
        info.add(record);
    }
    show("info", start.elapsed().as_secs_f64(), file.len());
}
