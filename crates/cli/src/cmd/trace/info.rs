//! `onefold trace info`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use onefold_config::Sources;
use onefold_trace::{Info as Counts, TraceOp};
use onefold_tracefile::TraceSource;
use serde_json::{Map, Value, json};

use super::options::ReadArgs;
use super::trace_error;
use crate::error::CliError;
use crate::output::{Format, Global};

/// Bytes of a page.
const PAGE: u64 = 4_096;

/// Options of `trace info`.
#[derive(Debug, Args)]
pub(crate) struct Info {
    /// Trace files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    read: ReadArgs,
}

impl Info {
    pub(crate) fn run(&self, global: &Global) -> Result<ExitCode, CliError> {
        let mut text = String::new();
        for file in &self.files {
            let found = describe(file, &self.read, global)?;
            match global.format() {
                Format::Json => {
                    let object: Map<String, Value> =
                        found.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
                    text.push_str(&Value::Object(object).to_string());
                    text.push('\n');
                }
                Format::Table => text.push_str(&table(&found)),
            }
        }
        global.emit(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Keys and values, in the order of the manual.
type Numbers = Vec<(&'static str, Value)>;

/// Reads a trace once and describes it.
fn describe(file: &Path, read: &ReadArgs, global: &Global) -> Result<Numbers, CliError> {
    let options = read.options(false)?;
    let mut source = TraceSource::open(file, &options).map_err(|error| trace_error(&error))?;
    global.say(&source.meta().interpretation);
    let mut counts = Counts::new();
    let mut batch = Vec::new();
    while source.next_batch(&mut batch).map_err(|error| trace_error(&error))? {
        for record in &batch {
            counts.add(record);
        }
    }
    for warning in &source.meta().warnings {
        global.say(format_args!("warning: {warning}"));
    }
    Ok(numbers(&source, &counts))
}

/// All numbers of a trace; keys are only ever added.
fn numbers(source: &TraceSource, counts: &Counts) -> Numbers {
    let mut numbers = origin(source);
    numbers.extend(amounts(source, counts));
    numbers.extend(times(source, counts));
    numbers.extend(pages(counts));
    numbers.extend(shape(source, counts));
    numbers.push(("warnings", json!(source.meta().warnings)));
    numbers.push(("suggested_preset", json!(suggested_preset(counts.max_end_bytes()))));
    numbers
}

/// Where the trace comes from and how it is read.
fn origin(source: &TraceSource) -> Numbers {
    let meta = source.meta();
    vec![
        ("schema", json!("onefold.trace_info/1")),
        ("path", json!(meta.path.display().to_string())),
        ("format", json!(meta.spec.format.name())),
        ("interpretation", json!(meta.interpretation)),
        ("sha256", json!(meta.sha256)),
        ("devices", json!(meta.devices)),
        ("epoch", json!(meta.epoch_unix_ns)),
        ("time_resolution_ns", json!(meta.time_resolution_ns)),
        ("timed", json!(!meta.untimed)),
    ]
}

/// Requests and bytes.
fn amounts(source: &TraceSource, counts: &Counts) -> Numbers {
    let meta = source.meta();
    let of = |op| counts.of(op);
    let mean = |op| {
        let count = of(op);
        count.bytes.checked_div(count.requests)
    };
    let other: u64 = [TraceOp::Remap, TraceOp::Append, TraceOp::Zone]
        .into_iter()
        .map(|op| of(op).requests)
        .sum();
    let sizes = |op| -> Vec<Value> {
        let sizes = counts.top_sizes(op).into_iter();
        sizes.map(|(bytes, requests)| json!({"bytes": bytes, "requests": requests})).collect()
    };
    vec![
        ("requests", json!(counts.requests())),
        ("reads", json!(of(TraceOp::Read).requests)),
        ("writes", json!(of(TraceOp::Write).requests)),
        ("trims", json!(of(TraceOp::Trim).requests)),
        ("flushes", json!(of(TraceOp::Flush).requests)),
        ("zeroes", json!(of(TraceOp::WriteZeroes).requests)),
        ("other", json!(other)),
        ("skipped_lines", json!(meta.skipped_lines)),
        ("dropped_records", json!(meta.dropped_records)),
        ("merged_lines", json!(source.merged())),
        ("read_bytes", json!(of(TraceOp::Read).bytes)),
        ("write_bytes", json!(of(TraceOp::Write).bytes)),
        ("trim_bytes", json!(of(TraceOp::Trim).bytes)),
        ("zero_bytes", json!(of(TraceOp::WriteZeroes).bytes)),
        ("mean_read_bytes", json!(mean(TraceOp::Read))),
        ("mean_write_bytes", json!(mean(TraceOp::Write))),
        ("sizes", json!(sizes(None))),
        ("read_sizes", json!(sizes(Some(TraceOp::Read)))),
        ("write_sizes", json!(sizes(Some(TraceOp::Write)))),
    ]
}

fn times(source: &TraceSource, counts: &Counts) -> Numbers {
    let (jumps, cut_ns) = source.jumps();
    vec![
        ("duration_ns", json!(counts.duration_ns())),
        ("iops_mean", json!(counts.iops_mean())),
        ("iops_peak_1s", json!(counts.iops_peak_1s())),
        ("out_of_order", json!(source.meta().out_of_order)),
        ("jumps", json!(jumps)),
        ("jumps_cut_ns", json!(cut_ns)),
        ("tie_share", json!(counts.tie_share())),
    ]
}

/// Pages and how they are written again.
fn pages(counts: &Counts) -> Numbers {
    let gaps = json!({"p50": counts.rewrite_gap_ns(0.5), "p90": counts.rewrite_gap_ns(0.9)});
    vec![
        ("read_pages", json!(counts.read_pages())),
        ("write_pages", json!(counts.write_pages())),
        ("footprint_bytes", json!(counts.touched_pages() * PAGE)),
        ("write_footprint_bytes", json!(counts.written_pages() * PAGE)),
        ("max_end_bytes", json!(counts.max_end_bytes())),
        ("rewrite_share", json!(counts.rewrite_share())),
        ("top1_write_share", json!(counts.top_write_share(100))),
        ("top20_write_share", json!(counts.top_write_share(5))),
        ("rewrite_gap_ns", gaps),
    ]
}

/// Alignment, flushes, queue and content.
fn shape(source: &TraceSource, counts: &Counts) -> Numbers {
    let share = |part: u64, whole: u64| (whole > 0).then(|| ratio(part, whole));
    let (data, digests) = (counts.data_requests(), counts.digest_pages());
    let (flushes, writes) = (counts.of(TraceOp::Flush), counts.of(TraceOp::Write));
    let known = |count: u64| (digests > 0).then_some(count);
    vec![
        ("sequential_share", json!(share(counts.sequential(), data))),
        ("unaligned_share", json!(share(counts.unaligned(), data))),
        ("multi_page_share", json!(share(counts.multi_page(), data))),
        ("shift_proposal", json!(source.meta().shift_proposal)),
        ("flushes_per_write", json!(share(flushes.requests, writes.requests))),
        ("fua_share", json!(counts.fua_share())),
        ("queue_depth_mean", json!(counts.queue_depth_mean())),
        ("duplicate_share", json!(share(counts.duplicate_pages(), digests))),
        ("distinct_digests", json!(known(counts.distinct_digests()))),
        ("same_lba_same_content", json!(known(counts.same_lba_same_content()))),
    ]
}

fn ratio(part: u64, whole: u64) -> f64 {
    onefold_units::convert::float(part) / onefold_units::convert::float(whole)
}

/// Presets for traces of any kind, the smallest first: of several of one size, the plainest.
const SUGGESTED: [&str; 6] = ["s1", "femu-bb", "tlc", "femu32", "970pro", "mqsim-default"];

/// The first of them whose logical space holds every address.
fn suggested_preset(end_bytes: u64) -> Option<&'static str> {
    SUGGESTED.into_iter().find(|name| capacity(name).is_some_and(|bytes| bytes >= end_bytes))
}

fn capacity(preset: &str) -> Option<u64> {
    let sources = Sources { preset: Some(preset), ..Sources::default() };
    onefold_config::Config::load(&sources).ok()?.logical_bytes().ok()
}

/// The same numbers for people: one key per line.
fn table(found: &Numbers) -> String {
    let mut text = String::new();
    let width = found.iter().map(|(key, _)| key.len()).max().unwrap_or(0);
    for (key, value) in found {
        let shown = match value {
            Value::Null => "-".to_owned(),
            Value::String(value) => value.clone(),
            Value::Number(number) if number.is_f64() => {
                format!("{:.4}", number.as_f64().unwrap_or(0.0))
            }
            Value::Array(list) => list.iter().map(plain).collect::<Vec<_>>().join(", "),
            Value::Object(_) => plain(value),
            value => value.to_string(),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{key:width$}  {shown}");
    }
    text.push('\n');
    text
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(value) => value.clone(),
        Value::Object(pairs) => pairs
            .iter()
            .map(|(key, value)| format!("{key} {}", plain(value)))
            .collect::<Vec<_>>()
            .join(" "),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::{SUGGESTED, capacity, suggested_preset};

    #[test]
    fn the_smallest_preset_that_holds_all_is_suggested() {
        let capacities = SUGGESTED.map(|name| capacity(name).unwrap());
        assert!(capacities.is_sorted());
        let gib = 1 << 30;
        for (bytes, preset) in [
            (1, "s1"),
            (4 * gib, "femu-bb"),
            (11 * gib, "femu-bb"),
            (11 * gib + 1, "tlc"),
            (32 * gib, "femu32"),
            (32 * gib + 1, "970pro"),
            (400 * gib, "mqsim-default"),
        ] {
            assert_eq!(suggested_preset(bytes), Some(preset), "{bytes}");
        }
        assert_eq!(suggested_preset(477 << 30), None);
    }
}
