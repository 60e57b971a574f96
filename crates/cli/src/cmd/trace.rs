//! `onefold trace`.

mod convert;
mod generate;
mod info;
mod mrc;
mod options;

pub(crate) use options::ReadArgs;

use std::process::ExitCode;

use clap::Subcommand;
use onefold_trace::{DetectError, ReadError};
use onefold_tracefile::TraceFileError;

use crate::error::{CliError, Exit};
use crate::output::Global;

/// Subcommands of `onefold trace`.
#[derive(Debug, Subcommand)]
pub(crate) enum Trace {
    /// Say what traces hold and how they are read
    Info(info::Info),
    /// Say how often LRU buffers of all sizes miss: the miss-ratio curve of a trace
    Mrc(mrc::Mrc),
    /// Write a trace in another format
    Convert(convert::Convert),
    /// Write a part of a trace: a time window, a device, every n-th page
    Sample(convert::Sample),
    /// Write a synthetic workload as a trace
    Generate(generate::Generate),
}

impl Trace {
    /// Whether the result is text; else it is a trace.
    pub(crate) const fn prints(&self) -> bool {
        match self {
            Self::Info(_) | Self::Mrc(_) => true,
            Self::Generate(generate) => generate.prints(),
            Self::Convert(_) | Self::Sample(_) => false,
        }
    }

    /// Whether the result may be a page of HTML.
    pub(crate) const fn draws(&self) -> bool {
        matches!(self, Self::Mrc(_))
    }

    /// Runs the command.
    pub(crate) fn run(self, global: &Global) -> Result<ExitCode, CliError> {
        match self {
            Self::Info(info) => info.run(global),
            Self::Mrc(mrc) => mrc.run(global),
            Self::Convert(convert) => convert.run(global),
            Self::Sample(sample) => sample.run(global),
            Self::Generate(generate) => generate.run(global),
        }
    }
}

/// The error of a trace file as the user meets it.
pub(crate) fn trace_error(error: &TraceFileError) -> CliError {
    let exit = if error.is_bad_trace() { Exit::BadTrace } else { Exit::Failed };
    let (code, help) = match error {
        TraceFileError::Io { .. } => ("trace::io", None),
        TraceFileError::Compressed { .. } => {
            ("trace::compressed", Some("copy or download the file again".to_owned()))
        }
        TraceFileError::Compression { .. } => {
            let help = "decompress it, or compress it anew: zstd, gzip and xz are read as they are";
            ("trace::compression", Some(help.to_owned()))
        }
        TraceFileError::Detect { source: DetectError::Empty, .. } => {
            ("trace::format", Some("check that whatever made it ran to its end".to_owned()))
        }
        TraceFileError::Detect { source, .. } => ("trace::format", Some(name_it(source))),
        TraceFileError::Read { source, .. } => ("trace::bad_line", Some(mend(source))),
        TraceFileError::Parquet { .. } => ("trace::parquet", None),
        TraceFileError::Empty { .. } => {
            let help = "check that the file is a trace and the right --event is chosen";
            ("trace::empty", Some(help.to_owned()))
        }
        TraceFileError::NotPerCpu { .. } => ("trace::cpu_file", None),
        TraceFileError::Device { .. } => ("trace::device", None),
        TraceFileError::AddressSpace { .. } => ("trace::address_space", None),
        TraceFileError::Implausible { .. } => ("trace::implausible", None),
        TraceFileError::Fit { .. } => ("trace::fit", None),
        _ => ("trace::error", None),
    };
    let shown = CliError::new(exit, code, error);
    match help {
        Some(help) => shown.help(help),
        None => shown,
    }
}

/// How to name a format that was not recognised.
fn name_it(error: &DetectError) -> String {
    let closest = match error {
        DetectError::Unknown { closest: Some(closest), .. } => closest.format.name(),
        _ => "msr",
    };
    format!(
        "if you know the format, name it: --trace-format {closest}, or with other units \
         --trace-format mqsim:time=us; docs/traces.md has all"
    )
}

/// What can be done about records that cannot be read.
fn mend(error: &ReadError) -> String {
    if let Some(bytes) = error.whole_bytes() {
        return format!(
            "copy the file again. What lies before the damage is a whole recording: \
             `head -c {bytes} FILE > part.oft`, of a compressed file `zstd -dc FILE | head -c {bytes} > part.oft`"
        );
    }
    let help = match error {
        _ if error.can_be_skipped() => {
            "if the format is right, --on-bad-line skip leaves such lines out and counts them"
        }
        ReadError::NoReadWriteFlag => "--cache-study allows it",
        ReadError::LineTooLong { .. } => {
            "if the format is another one, name it with --trace-format"
        }
        _ => "copy the file again, or record it again",
    };
    help.to_owned()
}
