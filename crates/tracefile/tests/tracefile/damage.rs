//! Damaged files of every container: an error or records, never a panic.

use std::fs;

use onefold_trace::{Record, TraceOp};
use onefold_tracefile::{Meta, Options, OutputFormat, TraceSource, create};

/// Reads as far as possible.
fn read(path: &std::path::Path) {
    let Ok(mut source) = TraceSource::open(path, &Options::default()) else { return };
    let mut batch = Vec::new();
    while source.next_batch(&mut batch).is_ok_and(|more| more) {}
}

#[test]
fn flipped_bits_and_cuts_do_not_panic() {
    let folder = tempfile::tempdir().unwrap();
    let mut rng = onefold_units::Rng::new(7);
    for (name, format) in [
        ("a.parquet", "parquet"),
        ("a.oft", "oft"),
        ("a.csv.gz", "onefold-csv"),
        ("a.csv.zst", "msr"),
    ] {
        let path = folder.path().join(name);
        let format = OutputFormat::from_name(format).unwrap();
        let mut writer = create(&path, format, &Meta::generated("test"), "").unwrap();
        for n in 0..500 {
            let mut record = Record::new(n, TraceOp::Write, rng.below(1 << 30) & !4_095, 4_096);
            record.lat_ns = n.is_multiple_of(3).then_some(n);
            record.digests = n
                .is_multiple_of(2)
                .then(|| Box::from([n.to_le_bytes().repeat(2).try_into().unwrap()]));
            writer.push(&record).unwrap();
        }
        writer.finish().unwrap();
        let whole = fs::read(&path).unwrap();
        let length = onefold_units::convert::u64_from(whole.len());
        for round in 0..400 {
            let mut bytes = whole.clone();
            let at = onefold_units::convert::index64(rng.below(length));
            if round % 4 == 0 {
                bytes.truncate(at);
            } else {
                bytes[at] ^= 1 << (rng.below(8));
            }
            fs::write(&path, &bytes).unwrap();
            read(&path);
        }
    }
}
