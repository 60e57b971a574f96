//! `onefold trace generate`.

use std::process::ExitCode;

use clap::Args;
use onefold_trace::workload::{Pacing, Request, Workload, WorkloadError};
use onefold_trace::{Flags, Record, TraceOp};
use onefold_tracefile::{Meta, create};
use onefold_units::Op;

use super::convert::{Target, output, report};
use super::trace_error;
use crate::cmd::ssd::render;
use crate::error::{CliError, Exit};
use crate::output::{Format, Global};
use crate::replace::part_of;

/// Requests generated at once.
const BATCH: usize = 4_096;

/// Options of `trace generate`.
#[derive(Debug, Args)]
pub(crate) struct Generate {
    /// Workload, such as `randwrite,bs=4KiB,rate=10000,requests=1M` or `like-hm_0,requests=200k`;
    /// patterns without `rate` put all requests at time 0, which makes sense in a closed loop only
    #[arg(value_name = "SPEC", required_unless_present = "list")]
    spec: Option<String>,
    /// List what a workload can begin with, and what each is
    #[arg(long)]
    list: bool,
    /// Size of the device, such as 4GiB [default: what the workload is made for, 1GiB for patterns]
    #[arg(long, value_name = "SIZE", value_parser = render::parse_size)]
    size: Option<u64>,
    /// Format to write, as for `convert`
    #[arg(long, value_name = "FORMAT", default_value = "oft")]
    to: String,
}

/// Size of the device where neither the user nor the workload names one.
const DEVICE_BYTES: u64 = 1 << 30;

impl Generate {
    /// Whether it prints a list and makes no trace.
    pub(super) const fn prints(&self) -> bool {
        self.list || self.spec.is_none()
    }

    pub(crate) fn run(self, global: &Global) -> Result<ExitCode, CliError> {
        match &self.spec {
            Some(spec) if !self.list => self.generate(spec, global),
            _ => {
                global.emit(&list(global.format()))?;
                Ok(ExitCode::SUCCESS)
            }
        }
    }

    fn generate(&self, spec: &str, global: &Global) -> Result<ExitCode, CliError> {
        let format = Target::named(&self.to)?;
        let workload = Workload::parse(spec).map_err(|error| wrong(&error))?;
        let path = output(global)?;
        let bytes = match self.size {
            Some(bytes) => bytes,
            None => workload.natural_bytes().unwrap_or(DEVICE_BYTES),
        };
        let mut generator =
            workload.instantiate(bytes, global.seed).map_err(|error| wrong(&error))?;
        if matches!(workload.pacing(), Pacing::Closed { .. }) {
            global.say("the workload has no rate: all requests are at time 0");
        }
        let words = format!("size={bytes} seed={}", global.seed);
        let failed = |error| trace_error(&error);
        let mut writer = create(path, format, &Meta::generated(spec), &words).map_err(failed)?;
        let _unfinished = global.interrupt.unfinished(&part_of(path));
        global.interrupt.leaves("the trace was not whole and is gone");
        let mut requests = 0_u64;
        let mut batch = vec![Request::EMPTY; BATCH];
        while let made @ 1.. = generator.fill(&mut batch) {
            for request in batch.iter().take(made) {
                writer.push(&record(request)).map_err(failed)?;
                requests += 1;
            }
        }
        let losses = writer.finish().map_err(failed)?;
        report(global, path, requests, &losses);
        global.say(format_args!("seed {}", global.seed));
        Ok(ExitCode::SUCCESS)
    }
}

/// Every workload's name and description.
fn list(format: Format) -> String {
    let described = Workload::names().filter_map(|name| Some((name, Workload::describe(name)?)));
    match format {
        Format::Table => {
            let lines: Vec<_> =
                described.map(|(name, text)| format!("{name:16} {text}\n")).collect();
            lines.concat()
        }
        Format::Json => {
            let workloads: Vec<_> = described
                .map(|(name, text)| serde_json::json!({"name": name, "description": text}))
                .collect();
            let list = serde_json::json!({"schema": "onefold.workloads/1", "workloads": workloads});
            format!("{list:#}\n")
        }
    }
}

fn record(request: &Request) -> Record {
    let op = match request.op {
        _ if request.remap.is_some() => TraceOp::Remap,
        Op::Read => TraceOp::Read,
        Op::Write => TraceOp::Write,
        Op::Flush => TraceOp::Flush,
        Op::Trim => TraceOp::Trim,
        Op::WriteZeroes => TraceOp::WriteZeroes,
    };
    let t_ns = request.at.map_or(0, onefold_units::Nanos::get);
    let mut record = Record::new(t_ns, op, request.offset, u64::from(request.len));
    if request.fua {
        record.flags = Flags::FUA;
    }
    if let Some(from) = request.remap {
        record.aux = from.offset;
        record.flags = if from.moves { Flags::MOVE } else { Flags::NONE };
    }
    record
}

fn wrong(error: &WorkloadError) -> CliError {
    CliError::new(Exit::Usage, "usage::workload", error)
}
