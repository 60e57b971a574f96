//! Conversion there and back, compression, sorting, and files that are not what they should be.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::common::{committed, drain, local, records};
use onefold_trace::{DetectError, Format, FormatSpec, OnBadLine, ReadError, Record};
use onefold_tracefile::{Fit, Merge, Options, OutputFormat, TraceFileError, TraceSource, create};

const CSV: &str = "rec-sqlite-wal-ext4.csv.zst";
const LOG: &str = "rec-sqlite-wal-nbdkit-filter-log.txt.zst";

fn apart() -> Options {
    Options { flat: false, ..Default::default() }
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, bytes).unwrap();
    path
}

fn convert(from: &Path, to: &Path, format: &str) -> Vec<Record> {
    let format = OutputFormat::from_name(format).unwrap();
    let options = Options { flat: !format.keeps_devices(), ..Default::default() };
    let mut source = TraceSource::open(from, &options).unwrap();
    let mut writer = create(to, format, source.meta(), "").unwrap();
    let all = drain(&mut source);
    for record in &all {
        writer.push(record).unwrap();
    }
    writer.finish().unwrap();
    all
}

#[test]
fn there_and_back_keeps_every_record() {
    let folder = tempfile::tempdir().unwrap();
    let mut sources = vec![committed(CSV)];
    sources.extend(local("rec-dedup-homes-mail-ext4.fiu.zst"));
    sources.extend(local("umass-financial1-first10k.ssdsim.ascii.zst"));
    for source in &sources {
        for format in ["oft", "parquet"] {
            let to = folder.path().join(format);
            let before = convert(source, &to, format);
            assert!(before == records(&to, &apart()), "{format} of {}", source.display());
            let meta = TraceSource::open(&to, &apart()).unwrap();
            let original = TraceSource::open(source, &apart()).unwrap();
            assert_eq!(meta.meta().epoch_unix_ns, original.meta().epoch_unix_ns);
            assert_eq!(meta.meta().has_digests, original.meta().has_digests);
        }
    }
    for name in ["csv", "csv.gz", "csv.zst"] {
        let to = folder.path().join(name);
        let before = convert(&committed(CSV), &to, "onefold-csv");
        assert!(before == records(&to, &apart()), "{name}");
    }
    // Byte for byte what was recorded.
    let plain = fs::read(folder.path().join("csv")).unwrap();
    let packed = fs::read(committed(CSV)).unwrap();
    assert!(plain == zstd::stream::decode_all(packed.as_slice()).unwrap());
    assert!(fs::read_dir(folder.path()).unwrap().all(|entry| {
        entry.unwrap().path().extension().is_none_or(|extension| extension != "part")
    }));
}

#[test]
fn formats_of_simulators_keep_reads_and_writes() {
    let folder = tempfile::tempdir().unwrap();
    for format in ["msr", "mqsim", "ssdsim", "fio-iolog"] {
        let to = folder.path().join(format);
        let key = |record: &Record| (record.op, record.offset, record.len, record.t_ns / 1_000);
        let before: Vec<_> = convert(&committed(CSV), &to, format)
            .iter()
            .filter(|record| record.op.is_data())
            .map(key)
            .collect();
        let after: Vec<_> =
            records(&to, &apart()).iter().filter(|record| record.op.is_data()).map(key).collect();
        assert!(before == after, "{format}");
    }
}

#[test]
fn sorting_on_disk_equals_sorting_in_memory() {
    let mut files = vec![committed(LOG)];
    files.extend(local("rec-dedup-homes-mail-ext4.fiu.zst"));
    for path in files {
        let options = Options { merge: Merge::Auto, ..apart() };
        let memory = records(&path, &options);
        assert!(memory.is_sorted_by_key(|record| record.t_ns));
        let mut disk = TraceSource::open_with_window(&path, &options, 5_000).unwrap();
        assert!(drain(&mut disk) == memory, "{}", path.display());
    }
    // A sorted file is streamed.
    let memory = records(&committed(CSV), &apart());
    let mut stream = TraceSource::open_with_window(&committed(CSV), &apart(), 5_000).unwrap();
    assert!(drain(&mut stream) == memory);
}

#[test]
fn every_compression_and_tar_read_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let plain = b"1,W,4096,4096,5\n2,R,8192,512,9\n".to_vec();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&plain).unwrap();
    let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
    xz.write_all(&plain).unwrap();
    let mut tar = vec![0; 512];
    tar[..5].copy_from_slice(b"a.csv");
    tar[124..135].copy_from_slice(format!("{:011o}", plain.len()).as_bytes());
    tar[156] = b'0';
    tar[257..262].copy_from_slice(b"ustar");
    tar.extend_from_slice(&plain);
    tar.resize(4_096, 0);
    let files = [
        ("plain", plain.clone()),
        ("gzip", gzip.finish().unwrap()),
        ("zstd", zstd::stream::encode_all(plain.as_slice(), 1).unwrap()),
        ("xz", xz.finish().unwrap()),
        ("tar", tar),
    ];
    for (name, bytes) in files {
        let path = write(folder.path(), name, &bytes);
        let source = TraceSource::open(&path, &apart()).unwrap();
        assert_eq!(source.meta().spec.format, Format::Alibaba, "{name}");
        assert_eq!(records(&path, &apart()).len(), 2, "{name}");
        assert_eq!(source.meta().warnings.len(), usize::from(name == "tar"), "{name}");
        assert_eq!(source.meta().sha256.len(), 64);
        if name == "plain" || name == "tar" {
            continue;
        }
        for cut in [bytes.len() / 2, bytes.len() - 1] {
            let path = write(folder.path(), "cut", &bytes[..cut]);
            let error = TraceSource::open(&path, &apart()).unwrap_err();
            assert!(matches!(error, TraceFileError::Compressed { .. }), "{name}: {error}");
            assert!(error.is_bad_trace());
        }
    }
}

#[test]
fn bad_files_are_refused_with_one_reason() {
    let folder = tempfile::tempdir().unwrap();
    let open = |bytes: &[u8], options: &Options| {
        let path = write(folder.path(), "bad", bytes);
        TraceSource::open(&path, options).unwrap_err()
    };
    let empty = open(b"", &apart());
    assert!(matches!(empty, TraceFileError::Detect { source: DetectError::Empty, .. }), "{empty}");
    let named = Options { format: Some(FormatSpec::new(Format::Msr)), ..apart() };
    let empty = open(b"", &named);
    assert!(matches!(empty, TraceFileError::Detect { source: DetectError::Empty, .. }), "{empty}");
    let other = open(b"1,W,4096,4096,5\n", &named);
    assert!(
        matches!(&other, TraceFileError::Read { source: ReadError::Line { line: 1, .. }, .. }),
        "{other}"
    );
    let header = open(b"t_ns,op,sector512,nsect,flags,lat_ns\n", &apart());
    assert!(matches!(header, TraceFileError::Empty { .. }), "{header}");
    let parquet = open(b"PAR1 and no more", &apart());
    assert!(matches!(parquet, TraceFileError::Parquet { .. }), "{parquet}");
    let missing = TraceSource::open(&folder.path().join("none"), &apart()).unwrap_err();
    assert!(!missing.is_bad_trace(), "{missing}");
    // Sectors taken for bytes, nanoseconds for seconds.
    let small = open(b"1,W,8,8,5\n", &apart()).to_string();
    assert!(small.contains("the mean request is 8 bytes"), "{small}");
    let ns = Options { format: FormatSpec::parse("alibaba:time=s").ok(), ..apart() };
    let mut slow = String::new();
    for n in 0..2_000_u64 {
        slow.extend(["1,W,4096,4096,", &(n * 2_000_000).to_string(), "\n"]);
    }
    let long = open(slow.as_bytes(), &ns).to_string();
    assert!(long.contains("the duration is"), "{long}");
}

#[test]
fn bad_lines_are_skipped_on_demand() {
    let folder = tempfile::tempdir().unwrap();
    let good = "1,W,4096,4096,5\n".repeat(30);
    let path = write(folder.path(), "t", format!("{good}what?\n{good}").as_bytes());
    let error = TraceSource::open(&path, &apart()).unwrap_err().to_string();
    assert!(error.contains("line 31, column 6 (byte 485)"), "{error}");
    let skip = Options { on_bad_line: OnBadLine::Skip, ..apart() };
    let source = TraceSource::open(&path, &skip).unwrap();
    assert_eq!((source.meta().requests, source.meta().skipped_lines), (60, 1));
}

/// An event of blktrace: action, time and CPU.
fn event(action: u32, t_ns: u64, cpu: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    for value in [0x6561_7407_u32, 1] {
        bytes.extend(value.to_le_bytes());
    }
    bytes.extend(t_ns.to_le_bytes());
    bytes.extend(8_u64.to_le_bytes());
    for value in [4_096, action, 7, 8 << 20 | 16, cpu, 0] {
        bytes.extend(value.to_le_bytes());
    }
    bytes
}

#[test]
fn files_of_several_cpus_are_one_trace() {
    let folder = tempfile::tempdir().unwrap();
    let (issue, complete) = (7 | 2 << 16, 8 | 2 << 16);
    let (mut issues, mut completes) = (Vec::new(), Vec::new());
    for n in 0..5_000 {
        issues.extend(event(issue, n * 100, 0));
        completes.extend(event(complete, n * 100 + 30, 1));
    }
    let first = write(folder.path(), "t.0", &issues);
    let second = write(folder.path(), "t.1", &completes);
    for (one, other) in [(&first, &second), (&second, &first)] {
        let options = Options { cpu_files: vec![other.clone()], ..apart() };
        let mut source = TraceSource::open(one, &options).unwrap();
        assert!(source.meta().warnings.iter().all(|text| !text.contains("no issue")));
        let all = drain(&mut source);
        assert_eq!(all.len(), 5_000);
        assert!(all.iter().all(|record| record.lat_ns == Some(30)));
        assert!(all.is_sorted_by_key(|record| record.t_ns));
    }
    let torn = write(folder.path(), "t.2", &completes[..completes.len() - 1]);
    let options = Options { cpu_files: vec![torn], ..apart() };
    let error = TraceSource::open(&first, &options).unwrap_err();
    assert!(error.is_bad_trace(), "{error}");
    let options = Options { cpu_files: vec![second], ..apart() };
    let error = TraceSource::open(&committed(CSV), &options).unwrap_err();
    assert!(matches!(error, TraceFileError::NotPerCpu { .. }), "{error}");
}

#[test]
fn a_trace_larger_than_the_device_needs_a_policy() {
    let source = TraceSource::open(&committed(CSV), &Options::default()).unwrap();
    let end = source.meta().end_bytes;
    assert_eq!(source.fit(Fit::Error, end).unwrap(), end);
    let error = source.fit(Fit::Error, end - 1).unwrap_err().to_string();
    assert!(error.contains(&format!("needs {end} bytes")), "{error}");
    let compact = source.fit(Fit::Compact, end).unwrap();
    assert!(compact < end && compact >= 5_345 * 4_096);
    let regions = source.regions();
    let mut moved = 0;
    for record in records(&committed(CSV), &Options::default()) {
        regions.map(&record, |piece| {
            assert!(piece.end() <= compact);
            moved += u64::from(piece.op.is_data());
        });
    }
    assert_eq!(moved, 58 + 22_411, "reads and writes stay whole");
}
