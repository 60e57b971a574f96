//! What holds for all inputs.

use onefold_trace::oft::{Encoder, FLAG_DIGESTS, Header};
use onefold_trace::{
    Flags, Format, FormatSpec, OnBadLine, ReadOptions, Reader, Record, TraceOp, WriteFormat,
    Writer, detect, read_all,
};
use proptest::prelude::*;

/// Reads in pieces of the given lengths; errors as text.
fn read_split(
    spec: FormatSpec,
    on_bad_line: OnBadLine,
    bytes: &[u8],
    splits: &[usize],
) -> Result<Vec<Record>, String> {
    let options = ReadOptions { on_bad_line, cache_study: true, ..Default::default() };
    let mut reader = Reader::new(spec, options).map_err(|error| error.to_string())?;
    let mut records = Vec::new();
    let mut rest = bytes;
    for split in splits {
        let (head, tail) = rest.split_at((*split).min(rest.len()));
        reader.push(head, &mut records).map_err(|error| error.to_string())?;
        rest = tail;
    }
    reader.push(rest, &mut records).map_err(|error| error.to_string())?;
    reader.finish(&mut records).map_err(|error| error.to_string())?;
    Ok(records)
}

/// Lines that look like traces, so that parsers get past their first field.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        "[0-9]{1,20},[a-z]{1,3},[0-9],(Read|Write),[0-9]{1,20},[0-9]{1,12},[0-9]{1,20}",
        "[0-9]{1,20} [0-9]{1,5} [a-z-]{1,4} [0-9]{1,20} [0-9]{1,4} [RWFDZ] [0-9] [0-9] [0-9a-f-]{32}",
        "  8,16 [0-9] [0-9] [0-9.]{1,12} [0-9] [QDCRI] [RWDFNSMA]{1,4} [0-9]{1,20} \\+ [0-9]{1,6} x",
        "[0-9]{1,20}(\\.[0-9]{1,12})? [0-9] [0-9]{1,20} [0-9]{1,12} [0-9]",
        "[0-9.]{1,21},[0-9RW.]{1,8},[RW]?,[0-9]{1,20},[0-9]{1,20}(,[0-9.]{1,10})?",
        "2026-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9.]{2,8} connection=[0-9] (\\.\\.\\.)?(Read|Write|Zero|Trim|Flush) id=[0-9] offset=0x[0-9a-f]{1,17} count=0x[0-9a-f]{1,9}",
        "x-1 \\[0\\] d [0-9.]{1,12}: block_rq_(issue|complete): 8,0 [RWF]{1,2} [0-9] \\(\\) [0-9]{1,20} \\+ [0-9]{1,4}",
        "fio version [23] iolog",
        "[0-9]{1,20} f (read|write|trim|sync|wait) [0-9]{1,20} [0-9]{1,12}",
        "\\PC{0,40}",
    ]
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(line(), 0..12).prop_map(|lines| lines.join("\n").into_bytes())
}

fn record() -> impl Strategy<Value = Record> {
    let numbers = (0..1_u64 << 40, 0..1_u64 << 40, 1..200_u64, any::<Option<u32>>(), any::<u64>());
    let small = (0..8_u8, any::<u8>(), any::<u16>(), any::<u16>(), 0..4_u16, any::<bool>());
    (numbers, small).prop_map(
        |((t_ns, offset, len, lat, aux), (op, flags, status, client, dev, d))| {
            let op = TraceOp::from_code(op).unwrap();
            let mut record = Record::new(t_ns, op, offset, len * 512);
            record.lat_ns = lat.map(u64::from);
            record.aux = aux;
            record.flags = Flags::from_bits(flags);
            (record.status, record.client, record.dev) = (status, client, dev);
            if op == TraceOp::Write && d {
                let (first, pages) = record.pages();
                // A digest of 0 means unknown; 1 is as good as any other.
                record.digests =
                    Some((0..pages).map(|n| (1 + u128::from(first + n)).to_le_bytes()).collect());
            }
            record
        },
    )
}

fn encode(records: &[Record], flushes: usize) -> Vec<u8> {
    let mut encoder = Encoder::new(Header { flags: FLAG_DIGESTS, ..Header::unknown() });
    let mut file = encoder.header().to_vec();
    for (n, record) in records.iter().enumerate() {
        encoder.push(record, &mut file);
        if n % flushes == 0 {
            encoder.flush(&mut file);
        }
    }
    encoder.finish(&mut file);
    file
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..Default::default() })]

    #[test]
    fn no_reader_panics_and_pieces_do_not_matter(
        bytes in prop_oneof![prop::collection::vec(any::<u8>(), 0..600), text()],
        splits in prop::collection::vec(0..80_usize, 0..12),
    ) {
        let _ = detect(&bytes, true);
        let _ = detect(&bytes, false);
        for format in Format::ALL {
            for on_bad_line in [OnBadLine::Fail, OnBadLine::Skip] {
                let spec = FormatSpec::new(format);
                let whole = read_split(spec, on_bad_line, &bytes, &[]);
                let pieces = read_split(spec, on_bad_line, &bytes, &splits);
                prop_assert_eq!(whole, pieces, "{}", format.name());
            }
        }
    }

    #[test]
    fn oft_keeps_every_field(
        records in prop::collection::vec(record(), 0..40),
        flushes in 1..20_usize,
        splits in prop::collection::vec(0..400_usize, 0..12),
    ) {
        let file = encode(&records, flushes);
        let spec = FormatSpec::new(Format::Oft);
        prop_assert_eq!(read_split(spec, OnBadLine::Fail, &file, &splits), Ok(records));
    }

    #[test]
    fn damaged_oft_is_an_error_or_a_prefix(
        records in prop::collection::vec(record(), 1..40),
        at in any::<prop::sample::Index>(),
        bit in 0..8_u8,
        cut in any::<prop::sample::Index>(),
    ) {
        let file = encode(&records, 3);
        let spec = FormatSpec::new(Format::Oft);
        let mut damaged = file.clone();
        damaged[at.index(file.len())] ^= 1 << bit;
        if let Ok((read, _)) = read_all(spec, &damaged) {
            // Only a damaged last block is dropped.
            prop_assert!(read.len() + 4 >= records.len());
        }
        let torn = &file[..cut.index(file.len() + 1)];
        if let Ok((read, _)) = read_all(spec, torn) {
            let same = |(a, b): (&Record, &Record)| {
                a.t_ns == b.t_ns && a.offset == b.offset && (a.digests.is_none() || a == b)
            };
            prop_assert!(read.iter().zip(&records).all(same));
        }
    }

    #[test]
    fn onefold_csv_keeps_what_it_has_columns_for(
        records in prop::collection::vec(record(), 1..40),
    ) {
        let records: Vec<Record> = records
            .into_iter()
            .filter(|record| record.op.code() < 5)
            .map(|mut record| {
                record.offset -= record.offset % 512;
                record.flags = Flags::from_bits(record.flags.bits() & 15);
                (record.aux, record.status, record.client, record.dev) = (0, 0, 0, 0);
                record.digests = None;
                record
            })
            .collect();
        let mut writer = Writer::new(WriteFormat::OnefoldCsv, 0, Vec::new(), false);
        let mut file = Vec::new();
        for record in &records {
            writer.push(record, &mut file);
        }
        writer.finish(&mut file);
        prop_assert!(writer.losses().is_none());
        let (read, _) = read_all(FormatSpec::new(Format::OnefoldCsv), &file).unwrap();
        prop_assert_eq!(read, records);
    }
}
