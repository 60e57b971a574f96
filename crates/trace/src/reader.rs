//! One reader for every stream format.

use crate::formats::{line_format, record_format};
use crate::lines::LineReader;
use crate::oft::Decoder;
use crate::records::RecordReader;
use crate::{Format, FormatSpec, ReadError, ReadOptions, Record};

/// Turns pushed bytes into records, in file order and in the trace's own clock.
///
/// Call [`Reader::push`] with pieces of any length, then [`Reader::finish`] once. Nothing may be
/// pushed after an error.
///
/// ```
/// use onefold_trace::{Format, FormatSpec, ReadOptions, Reader};
///
/// let mut reader = Reader::new(FormatSpec::new(Format::Msr), ReadOptions::default())?;
/// let mut records = Vec::new();
/// reader.push(b"128166385295514663,hm,0,Write,90560143", &mut records)?;
/// reader.push(b"36,2048,2833\n", &mut records)?;
/// reader.finish(&mut records)?;
/// assert_eq!((records[0].offset, records[0].lat_ns), (9_056_014_336, Some(283_300)));
/// # Ok::<(), onefold_trace::ReadError>(())
/// ```
#[derive(Debug)]
pub struct Reader {
    spec: FormatSpec,
    engine: Engine,
}

#[derive(Debug)]
enum Engine {
    Lines(Box<LineReader>),
    Records(Box<RecordReader>),
    Oft(Box<Decoder>),
}

/// What a reader knows besides the records. Complete after [`Reader::finish`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Names of the devices, by the number in the records.
    pub devices: Vec<String>,
    /// Lines or records skipped: bad ones under `OnBadLine::Skip` and those the trace itself marks
    /// as unusable.
    pub skipped_lines: u64,
    /// Records the recorder lost, as far as the trace says.
    pub dropped_records: u64,
    /// What to add to a time to get nanoseconds since 1970, if the trace has such times.
    pub epoch_base_ns: Option<u64>,
    /// The trace has no times: only a closed loop makes sense.
    pub untimed: bool,
    /// Lines of one instant may be parts of one request.
    pub split_requests: bool,
    /// Size of the device in bytes, where the trace says it.
    pub device_bytes: Option<u64>,
    /// What a user should know.
    pub warnings: Vec<String>,
}

impl Reader {
    /// A reader of one format. Fails for formats that are no byte stream.
    pub fn new(spec: FormatSpec, options: ReadOptions) -> Result<Self, ReadError> {
        if spec.format == Format::OracleGeneral && !options.cache_study {
            return Err(ReadError::NoReadWriteFlag);
        }
        let engine = if spec.format == Format::Oft {
            Engine::Oft(Box::new(Decoder::new()))
        } else if let Some(format) = line_format(spec.format) {
            Engine::Lines(Box::new(LineReader::new(spec, options, format)))
        } else if let Some(format) = record_format(spec.format) {
            Engine::Records(Box::new(RecordReader::new(spec, options, format)))
        } else {
            return Err(ReadError::NotAStream(spec.format));
        };
        Ok(Self { spec, engine })
    }

    /// The format being read.
    #[must_use]
    pub const fn spec(&self) -> &FormatSpec {
        &self.spec
    }

    /// Takes the next piece of the file; appends the records it completes.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<Record>) -> Result<(), ReadError> {
        match &mut self.engine {
            Engine::Lines(lines) => lines.push(bytes, out),
            Engine::Records(records) => records.push(bytes, out),
            Engine::Oft(decoder) => decoder.push(bytes, out),
        }
    }

    /// The file has ended: appends the records that waited for more.
    pub fn finish(&mut self, out: &mut Vec<Record>) -> Result<(), ReadError> {
        match &mut self.engine {
            Engine::Lines(lines) => lines.finish(out),
            Engine::Records(records) => records.finish(out),
            Engine::Oft(decoder) => decoder.finish(out),
        }
    }

    /// The number of the device called `name`, once a record of it was read.
    #[must_use]
    pub fn device_number(&self, name: &str) -> Option<u16> {
        let names = match &self.engine {
            Engine::Lines(lines) => lines.context.devices.names(),
            Engine::Records(records) => records.context.devices.names(),
            Engine::Oft(_) => return name.strip_prefix("ns").and_then(|n| n.parse().ok()),
        };
        names.iter().position(|known| known == name).and_then(|at| u16::try_from(at).ok())
    }

    /// Everything else the trace told.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let (context, skipped) = match &self.engine {
            Engine::Lines(lines) => (&lines.context, lines.skipped),
            Engine::Records(records) => (&records.context, records.skipped),
            Engine::Oft(decoder) => return oft_summary(decoder),
        };
        let facts = &context.facts;
        let mut warnings = Vec::new();
        if facts.orphans > 0 {
            warnings.push(format!(
                "{} completions have no issue: the start of the recording or a CPU's file is \
                 missing",
                facts.orphans
            ));
        }
        if facts.requeued > 0 {
            warnings.push(format!("{} issues repeat a requeued request", facts.requeued));
        }
        if facts.dropped > 0 {
            warnings.push(format!("the recorder lost {} events", facts.dropped));
        }
        Summary {
            devices: context.devices.names().to_vec(),
            skipped_lines: skipped,
            dropped_records: facts.dropped,
            epoch_base_ns: facts.unix.then_some(0),
            untimed: facts.untimed,
            split_requests: facts.split_requests,
            device_bytes: None,
            warnings,
        }
    }
}

fn oft_summary(decoder: &Decoder) -> Summary {
    let header = decoder.header();
    let known = |value: u64| (value != 0).then_some(value);
    Summary {
        devices: decoder.devices(),
        skipped_lines: 0,
        dropped_records: decoder.dropped(),
        epoch_base_ns: header.and_then(|header| known(header.epoch_unix_ns)),
        untimed: false,
        split_requests: false,
        device_bytes: header.and_then(|header| known(header.device_bytes)),
        warnings: decoder.warnings.clone(),
    }
}

/// Reads a whole trace that is in memory and not compressed, with all that a cache study may use.
pub fn read_all(spec: FormatSpec, bytes: &[u8]) -> Result<(Vec<Record>, Summary), ReadError> {
    let mut reader = Reader::new(spec, ReadOptions { cache_study: true, ..Default::default() })?;
    let mut records = Vec::new();
    reader.push(bytes, &mut records)?;
    reader.finish(&mut records)?;
    let summary = reader.summary();
    Ok((records, summary))
}
