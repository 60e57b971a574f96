//! Trace readers: any bytes in any format are records or an error, and it does not matter in which
//! pieces they arrive. The first byte is the format, the second the size of the pieces, the third
//! the options.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onefold_fuzz::choice;
use onefold_trace::oft::{Encoder, Header};
use onefold_trace::{
    Event, Format, FormatSpec, OnBadLine, ReadError, ReadOptions, Reader, Record, Summary, detect,
};

fuzz_target!(|data: &[u8]| {
    let Some((format, rest)) = choice(data) else { return };
    let Some((piece, rest)) = choice(rest) else { return };
    let Some((options, bytes)) = choice(rest) else { return };
    let _ = detect(bytes, options & 4 == 4);
    let spec = FormatSpec::new(Format::ALL[usize::from(format) % Format::ALL.len()]);
    let options = ReadOptions {
        on_bad_line: if options & 1 == 1 { OnBadLine::Skip } else { OnBadLine::Fail },
        event: if options & 2 == 2 { Event::Queue } else { Event::Issue },
        cache_study: true,
    };
    let whole = read(spec, options, bytes, bytes.len());
    let pieces = read(spec, options, bytes, usize::from(piece));
    match (whole, pieces) {
        (Ok(whole), Ok(pieces)) => {
            assert_eq!(whole, pieces);
            // No format says a record in less than a byte.
            assert!(whole.0.len() <= bytes.len());
            native(whole.0, usize::from(piece));
        }
        (Err(whole), Err(pieces)) => assert_eq!(whole.to_string(), pieces.to_string()),
        (whole, pieces) => panic!("whole {whole:?}, in pieces {pieces:?}"),
    }
});

fn read(
    spec: FormatSpec,
    options: ReadOptions,
    bytes: &[u8],
    piece: usize,
) -> Result<(Vec<Record>, Summary), ReadError> {
    let mut reader = Reader::new(spec, options)?;
    let mut records = Vec::new();
    for part in bytes.chunks(piece.max(1)) {
        reader.push(part, &mut records)?;
    }
    reader.finish(&mut records)?;
    Ok((records, reader.summary()))
}

/// What any format says, the native format says as well; a damaged native file is no panic.
fn native(records: Vec<Record>, at: usize) {
    let mut encoder = Encoder::new(Header::unknown());
    let mut file = encoder.header().to_vec();
    for record in &records {
        encoder.push(record, &mut file);
    }
    encoder.finish(&mut file);
    let spec = FormatSpec::new(Format::Oft);
    let again = read(spec, ReadOptions::default(), &file, file.len()).expect("our own file");
    let without_digests = |record: Record| Record { digests: None, ..record };
    let written: Vec<Record> = records.into_iter().map(without_digests).collect();
    assert_eq!(again.0, written);

    let place = at * 7919 % file.len();
    file[place] ^= 0x40;
    let _ = read(spec, ReadOptions::default(), &file, 1000);
    file.truncate(place);
    let _ = read(spec, ReadOptions::default(), &file, 1000);
}
