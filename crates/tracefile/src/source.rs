//! A trace file as a source of requests.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use onefold_trace::{
    FitError, Format, FormatSpec, Layout, Record, Regions, Scan, ShapeOptions, Shaper, Summary,
    TraceOp,
};

use crate::error::{NAMES_LISTED, TraceFileError};
use crate::hash::sha256;
use crate::input::{Input, file_of};
use crate::options::{Fit, Merge, Options, Shift};
use crate::plausible;
use crate::sorted::{Sorted, Spilled};

/// What is known about a trace before its records are used.
#[derive(Clone, Debug)]
pub struct Meta {
    /// The file.
    pub path: PathBuf,
    /// Format and overrides.
    pub spec: FormatSpec,
    /// One line that says how the file is read; to be shown before any run.
    pub interpretation: String,
    /// SHA-256 of the file as it lies on disk.
    pub sha256: String,
    /// Names of the devices by number.
    pub devices: Vec<String>,
    /// Time of t = 0 in nanoseconds since 1970, where the trace knows it.
    pub epoch_unix_ns: Option<u64>,
    /// Requests, before lines are merged.
    pub requests: u64,
    /// Lines skipped.
    pub skipped_lines: u64,
    /// Records the recorder lost.
    pub dropped_records: u64,
    /// Records behind an earlier record's time, in the file.
    pub out_of_order: u64,
    /// The largest unit all times are multiples of.
    pub time_resolution_ns: u64,
    /// The trace has no times: only a closed loop makes sense.
    pub untimed: bool,
    /// Whether requests carry the time that they took.
    pub has_latencies: bool,
    /// Flushes and durable writes.
    pub barriers: u64,
    /// Remaps.
    pub remaps: u64,
    /// Whether writes carry digests.
    pub has_digests: bool,
    /// Bytes of the address space of all requests: laid out if [`Options::flat`], else of the largest device.
    pub end_bytes: u64,
    /// Size of the recorded device, where the trace says it.
    pub device_bytes: Option<u64>,
    /// Bytes subtracted from every offset.
    pub shift_bytes: u64,
    /// What `--shift auto` would subtract.
    pub shift_proposal: Option<u64>,
    /// What a user should know.
    pub warnings: Vec<String>,
}

impl Meta {
    /// Metadata of records that come from no file but from `words`, a workload.
    #[must_use]
    pub fn generated(words: &str) -> Self {
        Self {
            path: PathBuf::from(words),
            spec: FormatSpec::new(Format::Oft),
            interpretation: words.to_owned(),
            sha256: String::new(),
            devices: vec!["generated".to_owned()],
            epoch_unix_ns: None,
            requests: 0,
            skipped_lines: 0,
            dropped_records: 0,
            out_of_order: 0,
            time_resolution_ns: 1,
            untimed: false,
            has_latencies: false,
            barriers: 0,
            remaps: 0,
            has_digests: false,
            end_bytes: 0,
            device_bytes: None,
            shift_bytes: 0,
            shift_proposal: None,
            warnings: Vec::new(),
        }
    }
}

/// What a first pass over a trace found.
#[derive(Debug)]
struct Known {
    meta: Meta,
    options: Options,
    /// The same with the format that was found.
    spec_options: Options,
    scan: Scan,
    layout: Option<Layout>,
    shape: ShapeOptions,
    records: Records,
}

/// Where the records of a trace are.
#[derive(Debug)]
enum Records {
    /// In memory, sorted: they are few.
    Memory(Arc<Vec<Record>>),
    /// In its file, which is sorted.
    InFile,
    /// In sorted runs on disk.
    Spilled(Spilled),
}

/// A trace that was read once and checked: it can be read again, by several threads at a time. Clones share it, and the
/// records of one that is kept in memory.
#[derive(Clone, Debug)]
pub struct Checked(Arc<Known>);

impl Checked {
    /// Reads a trace once to check it, to learn its size and whether it is sorted.
    ///
    /// # Errors
    /// As [`TraceSource::open`].
    pub fn new(path: &Path, options: &Options) -> Result<Self, TraceFileError> {
        Self::with_window(path, options, onefold_trace::order::WINDOW_RECORDS)
    }

    fn with_window(path: &Path, options: &Options, window: usize) -> Result<Self, TraceFileError> {
        let first = first_pass(path, options, window)?;
        let FirstPass { input, scan, summary, records, reads, writes } = first;
        let layout = Layout::new(&scan.end_bytes).filter(|_| options.flat);
        if options.flat && layout.is_none() {
            return Err(TraceFileError::AddressSpace {
                path: path.to_path_buf(),
                devices: scan.end_bytes.len(),
            });
        }
        let (mut meta, split) = meta(path, options, &input, &scan, summary)?;
        meta.end_bytes = layout
            .as_ref()
            .map_or_else(|| scan.end_bytes.iter().copied().max().unwrap_or(0), Layout::total);
        if meta.spec.takes_read() {
            meta.warnings.extend(plausible::one_direction(reads, writes));
        }
        let shape = shape_options(options, &meta, split);
        let spec_options = Options { format: Some(meta.spec), ..options.clone() };
        let records = match records {
            Some(mut records) => {
                onefold_trace::order::sort(&mut records);
                Records::Memory(Arc::new(records))
            }
            None if scan.out_of_order == 0 => Records::InFile,
            None => {
                let input = Input::open(path, &spec_options)?;
                Records::Spilled(Spilled::new(input, scan.with_digests > 0, window)?)
            }
        };
        let options = options.clone();
        let known = Known { meta, options, spec_options, scan, layout, shape, records };
        Ok(Self(Arc::new(known)))
    }

    /// Its requests, from the first on.
    ///
    /// # Errors
    /// The file cannot be read any more.
    pub fn source(&self) -> Result<TraceSource, TraceFileError> {
        let Known { meta, spec_options, shape, records, .. } = &*self.0;
        let sorted = match records {
            Records::Memory(records) => Sorted::Memory(Arc::clone(records), 0),
            Records::InFile => Sorted::Stream(Box::new(Input::open(&meta.path, spec_options)?)),
            Records::Spilled(spilled) => spilled.read(&meta.path)?,
        };
        let (checked, shaper) = (self.clone(), Shaper::new(*shape));
        Ok(TraceSource { checked, sorted, shaper, raw: Vec::new(), finished: false })
    }
}

/// Records of a trace file, sorted and shaped.
///
/// ```no_run
/// use onefold_tracefile::{Options, TraceSource};
///
/// let mut source = TraceSource::open("hm_0.csv.gz".as_ref(), &Options::default())?;
/// eprintln!("{}", source.meta().interpretation);
/// let mut batch = Vec::new();
/// while source.next_batch(&mut batch)? {
///     for record in &batch { /* run it */ }
/// }
/// # Ok::<(), onefold_tracefile::TraceFileError>(())
/// ```
#[derive(Debug)]
pub struct TraceSource {
    checked: Checked,
    sorted: Sorted,
    shaper: Shaper,
    raw: Vec<Record>,
    finished: bool,
}

impl TraceSource {
    /// Opens a trace: reads it once to check it, to learn its size and whether it is sorted.
    pub fn open(path: &Path, options: &Options) -> Result<Self, TraceFileError> {
        Checked::new(path, options)?.source()
    }

    /// [`TraceSource::open`] with another limit of the sort in memory.
    pub fn open_with_window(
        path: &Path,
        options: &Options,
        window: usize,
    ) -> Result<Self, TraceFileError> {
        Checked::with_window(path, options, window)?.source()
    }

    /// The same trace from its first request on, without reading it once more to check it.
    ///
    /// # Errors
    /// The file cannot be read any more.
    pub fn again(&self) -> Result<Self, TraceFileError> {
        self.checked.source()
    }

    /// What is known about the trace.
    #[must_use]
    pub fn meta(&self) -> &Meta {
        &self.checked.0.meta
    }

    /// The options it was opened with.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.checked.0.options
    }

    /// Replaces `out` with the next requests in time order; false when there are none left.
    pub fn next_batch(&mut self, out: &mut Vec<Record>) -> Result<bool, TraceFileError> {
        out.clear();
        while out.is_empty() && !self.finished {
            self.raw.clear();
            let more = self.sorted.next(&mut self.raw)?;
            for record in self.raw.drain(..) {
                self.shaper.push(record, out);
            }
            if !more {
                self.shaper.finish(out);
                self.finished = true;
            }
        }
        if let Some(layout) = &self.checked.0.layout {
            for record in &mut *out {
                let base = layout.base(record.dev);
                record.offset = record.offset.saturating_add(base);
                record.place_source(|source| source.saturating_add(base));
                record.dev = 0;
            }
        }
        Ok(!out.is_empty())
    }

    /// Gaps cut so far, and the time cut.
    #[must_use]
    pub const fn jumps(&self) -> (u64, u64) {
        (self.shaper.jumps(), self.shaper.cut_ns())
    }

    /// Lines merged into an earlier one so far.
    #[must_use]
    pub const fn merged(&self) -> u64 {
        self.shaper.merged()
    }

    /// The touched 1 MiB regions of a flat trace, for `--fit compact`.
    #[must_use]
    pub fn regions(&self) -> Regions {
        let layout = self.checked.0.layout.clone().unwrap_or_default();
        Regions::new(&self.checked.0.scan.regions, &layout)
    }

    /// Judges whether the trace fits a device, by the policy: the bytes it will address.
    pub fn fit(&self, fit: Fit, device_bytes: u64) -> Result<u64, TraceFileError> {
        let compact = self.regions().total();
        let needed = match fit {
            Fit::Error => self.meta().end_bytes,
            Fit::Compact => compact,
            Fit::Wrap => self.meta().end_bytes.min(device_bytes),
        };
        if needed <= device_bytes {
            return Ok(needed);
        }
        let source = FitError::TooLarge { needed, device: device_bytes, compact };
        Err(TraceFileError::Fit { path: self.meta().path.clone(), source })
    }
}

struct FirstPass {
    input: Input,
    scan: Scan,
    summary: Summary,
    /// All records, if they are few enough.
    records: Option<Vec<Record>>,
    reads: u64,
    writes: u64,
}

fn first_pass(path: &Path, options: &Options, window: usize) -> Result<FirstPass, TraceFileError> {
    let mut input = Input::open(path, options)?;
    let mut scan = Scan::new();
    let mut kept = Vec::new();
    let mut keep = true;
    let mut scanned = 0;
    let (mut reads, mut writes) = (0, 0);
    // What the clock does after cuts, in file order: an estimate good enough for plausibility.
    let (mut last, mut duration) = (None::<u64>, 0_u64);
    loop {
        let more = input.next(&mut kept)?;
        for record in kept.get(scanned..).unwrap_or_default() {
            scan.add(record);
            reads += u64::from(record.op == TraceOp::Read);
            writes += u64::from(record.op == TraceOp::Write);
            let gap = last.map_or(0, |last| record.t_ns.saturating_sub(last));
            if gap <= options.max_gap_ns {
                duration = duration.saturating_add(gap);
            }
            last = last.max(Some(record.t_ns));
        }
        keep &= kept.len() <= window;
        if !keep {
            kept.clear();
        }
        scanned = kept.len();
        if !more {
            break;
        }
    }
    let summary = input.summary();
    if scan.requests == 0 {
        return Err(no_requests(path, options, &summary));
    }
    // Our own format says its units.
    if input.spec.format != Format::Oft {
        plausible::check(&scan, duration, path)?;
    }
    Ok(FirstPass { input, scan, summary, records: keep.then_some(kept), reads, writes })
}

fn no_requests(path: &Path, options: &Options, summary: &Summary) -> TraceFileError {
    let path = path.to_path_buf();
    match &options.device {
        Some(found) if !summary.devices.contains(found) && !summary.devices.is_empty() => {
            let known = summary.devices.iter().take(NAMES_LISTED).cloned().collect();
            TraceFileError::Device { path, found: found.clone(), known }
        }
        _ => TraceFileError::Empty { path },
    }
}

/// The metadata, and whether the format splits requests into lines.
fn meta(
    path: &Path,
    options: &Options,
    input: &Input,
    scan: &Scan,
    summary: Summary,
) -> Result<(Meta, bool), TraceFileError> {
    let sha256 = sha256(&file_of(path)).map_err(TraceFileError::io(path, "read"))?;
    let mut warnings = summary.warnings;
    if input.tar {
        warnings
            .push("a tar header was skipped; only the first file of the archive is read".into());
    }
    if summary.skipped_lines > 0 {
        warnings.push(format!("{} lines were skipped", summary.skipped_lines));
    }
    let shift_proposal = scan.shift_proposal();
    let shift_bytes = match options.shift {
        Shift::None => 0,
        Shift::Auto => shift_proposal.unwrap_or(0),
        Shift::Bytes(bytes) => bytes,
    };
    let mut meta = Meta {
        path: path.to_path_buf(),
        spec: input.spec,
        interpretation: String::new(),
        sha256,
        devices: summary.devices,
        epoch_unix_ns: summary.epoch_base_ns.map(|base| base.saturating_add(scan.first_ns)),
        requests: scan.requests,
        skipped_lines: summary.skipped_lines,
        dropped_records: summary.dropped_records,
        out_of_order: scan.out_of_order,
        time_resolution_ns: scan.time_resolution_ns(),
        untimed: summary.untimed,
        has_latencies: scan.with_latencies > 0,
        barriers: scan.barriers,
        remaps: scan.remaps,
        has_digests: scan.with_digests > 0,
        end_bytes: 0,
        device_bytes: summary.device_bytes,
        shift_bytes,
        shift_proposal,
        warnings,
    };
    meta.interpretation = interpretation(&meta, options, input);
    Ok((meta, summary.split_requests))
}

/// `msr-hm_0.csv: MSR CSV, FILETIME 100 ns, bytes, 1 device (hm_0), 1,000 requests`.
fn interpretation(meta: &Meta, options: &Options, input: &Input) -> String {
    let name = meta.path.file_name().unwrap_or(meta.path.as_os_str()).to_string_lossy();
    let mut text = format!("{name}: {}", meta.spec.meaning());
    if input.compression != crate::open::Compression::None {
        append(&mut text, format_args!(" ({})", input.compression.name()));
    }
    match (&options.device, meta.devices.as_slice()) {
        (Some(device), devices) => {
            append(&mut text, format_args!(", device {device} of {}", devices.len()));
        }
        (None, []) => {}
        (None, [device]) => append(&mut text, format_args!(", 1 device ({device})")),
        (None, devices) => append(&mut text, format_args!(", {} devices", devices.len())),
    }
    if meta.untimed {
        text.push_str(", no times");
    }
    if meta.shift_bytes > 0 {
        append(&mut text, format_args!(", shifted by {} bytes", meta.shift_bytes));
    }
    let noun = if meta.requests == 1 { "request" } else { "requests" };
    append(&mut text, format_args!(", {} {noun}", grouped(meta.requests)));
    text
}

fn append(text: &mut String, words: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = std::fmt::Write::write_fmt(text, words);
}

/// A number with commas between thousands.
fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn shape_options(options: &Options, meta: &Meta, split_requests: bool) -> ShapeOptions {
    ShapeOptions {
        merge_ns: match options.merge {
            Merge::Auto => split_requests.then_some(0),
            Merge::Off => None,
            Merge::Within(ns) => Some(ns),
        },
        max_gap_ns: options.max_gap_ns,
        spread_tick_ns: options.spread_ties.then_some(meta.time_resolution_ns),
        shift_bytes: meta.shift_bytes,
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::{Checked, Options, Records, TraceSource};

    /// Requests at these times, of 4 KiB each, one behind the other.
    fn checked(times: &[u64], window: usize) -> Checked {
        let mut text = "t_ns,op,sector512,nsect,flags,lat_ns\n".to_owned();
        for (at, n) in times.iter().zip(0..) {
            let _ = writeln!(text, "{at},W,{},8,,60000", n * 8);
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("load.csv");
        std::fs::write(&path, text).unwrap();
        let checked = Checked::with_window(&path, &Options::default(), window).unwrap();
        if !matches!(checked.0.records, Records::InFile) {
            assert_eq!(
                all(checked.source().unwrap()),
                all(checked.source().unwrap().again().unwrap())
            );
        }
        checked
    }

    fn all(mut source: TraceSource) -> Vec<(u64, u64)> {
        let (mut batch, mut all) = (Vec::new(), Vec::new());
        while source.next_batch(&mut batch).unwrap() {
            all.extend(batch.iter().map(|record| (record.t_ns, record.offset)));
        }
        all
    }

    /// What is longer than the window is never in memory as a whole: it is read from where it is.
    #[test]
    fn long_traces_are_streamed() {
        let sorted: Vec<u64> = (0..20_000).map(|n| n * 100_000).collect();
        let mut mixed = sorted.clone();
        mixed.swap(3, 19_000);
        assert!(matches!(checked(&sorted, 20_000).0.records, Records::Memory(_)));
        assert!(matches!(checked(&sorted, 19_999).0.records, Records::InFile));
        let spilled = checked(&mixed, 5_000);
        assert!(matches!(spilled.0.records, Records::Spilled(_)));
        assert_eq!(all(spilled.source().unwrap()), all(checked(&mixed, 20_000).source().unwrap()));
    }
}
