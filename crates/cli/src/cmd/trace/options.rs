//! How a trace is read, on the command line.

use clap::{Args, ValueEnum};
use onefold_trace::{Event, FormatSpec, OnBadLine};
use onefold_tracefile::{Merge, Options, Shift};
use onefold_units::numbers;

use crate::error::{CliError, Exit};

/// What to do about bad lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BadLine {
    /// Stop and say where
    Fail,
    /// Count them and go on
    Skip,
}

/// Event of a block-layer trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EventName {
    /// Issued to the driver: what the device sees
    #[value(name = "D")]
    Issue,
    /// Queued: before merging
    #[value(name = "Q")]
    Queue,
}

/// Options of every command that reads a trace.
#[derive(Debug, Args)]
pub(crate) struct ReadArgs {
    /// Format of the trace if it should not be detected, such as `msr` or `mqsim:time=us`
    #[arg(long, value_name = "FORMAT", value_parser = FormatSpec::parse)]
    trace_format: Option<FormatSpec>,
    /// What to do about a line that cannot be read
    #[arg(long, value_enum, default_value = "fail", value_name = "WHAT")]
    pub(crate) on_bad_line: BadLine,
    /// Further file of a trace that blktrace wrote per CPU, merged by time; may be given often
    #[arg(long = "cpu-file", value_name = "FILE")]
    pub(crate) cpu_files: Vec<std::path::PathBuf>,
    /// Device to take, or all
    #[arg(long, default_value = "all", value_name = "NAME")]
    pub(crate) device: String,
    /// Event of a block-layer trace that is the request
    #[arg(long, value_enum, default_value = "D", value_name = "EVENT")]
    pub(crate) event: EventName,
    /// Lines that are one request: auto, off, or a time such as 1ms
    #[arg(long, default_value = "auto", value_name = "TIME")]
    pub(crate) merge: String,
    /// Cut longer gaps between requests to nothing, such as 30d, 12h, 500ms
    #[arg(long, default_value = "30d", value_name = "TIME")]
    pub(crate) max_gap: String,
    /// Subtract from every offset: none, auto (the commonest offset modulo 4 KiB) or bytes
    #[arg(long, default_value = "none", value_name = "BYTES")]
    pub(crate) shift: String,
    /// Space requests of equal times evenly inside the tick of the trace's clock
    #[arg(long)]
    pub(crate) spread_ties: bool,
    /// Allow formats that cannot tell reads from writes
    #[arg(long)]
    pub(crate) cache_study: bool,
}

impl ReadArgs {
    /// The options of the reader.
    pub(crate) fn options(&self, flat: bool) -> Result<Options, CliError> {
        Ok(Options {
            format: self.trace_format,
            cpu_files: self.cpu_files.clone(),
            on_bad_line: match self.on_bad_line {
                BadLine::Fail => OnBadLine::Fail,
                BadLine::Skip => OnBadLine::Skip,
            },
            event: match self.event {
                EventName::Issue => Event::Issue,
                EventName::Queue => Event::Queue,
            },
            cache_study: self.cache_study,
            device: (self.device != "all").then(|| self.device.clone()),
            max_gap_ns: time("--max-gap", &self.max_gap)?,
            merge: match self.merge.as_str() {
                "auto" => Merge::Auto,
                "off" => Merge::Off,
                text => Merge::Within(time("--merge", text)?),
            },
            shift: match self.shift.as_str() {
                "none" => Shift::None,
                "auto" => Shift::Auto,
                text => Shift::Bytes(
                    text.parse()
                        .map_err(|_| usage("--shift", text, "none, auto or a number of bytes"))?,
                ),
            },
            spread_ties: self.spread_ties,
            flat,
        })
    }

    /// Refuses the format of a trace where none is read.
    pub(crate) fn expect_no_format(&self) -> Result<(), CliError> {
        if self.trace_format.is_none() {
            return Ok(());
        }
        let text = "--trace-format is given, but no trace is read";
        Err(CliError::new(Exit::Usage, "usage::trace_format", text)
            .help("name the trace with --trace FILE, or leave the option out"))
    }

    /// The options in words, for the metadata of a converted trace.
    pub(crate) fn words(&self) -> String {
        format!(
            "device={} event={:?} merge={} max_gap={} shift={} spread_ties={}",
            self.device, self.event, self.merge, self.max_gap, self.shift, self.spread_ties
        )
    }
}

fn usage(option: &str, found: &str, expected: &str) -> CliError {
    let text = format!("{option} is `{found}`, expected {expected}");
    CliError::new(Exit::Usage, "usage::value", text)
}

/// A time with its unit in nanoseconds.
pub(crate) fn time(option: &str, text: &str) -> Result<u64, CliError> {
    numbers::time(text).map_err(|_| {
        usage(option, text, "a time with a unit, such as 30d, 12h, 1s, 5ms, 10us or 0ns")
    })
}
