//! `onefold crash list`.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use onefold_crash::{Digest, Kind, State, States, What};
use serde_json::json;

use super::{LogArgs, Opened};
use crate::error::CliError;
use crate::output::{Format, Global};

/// Options of `onefold crash list`.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// The tape
    #[arg(value_name = "TAPE", required_unless_present = "log", conflicts_with = "log")]
    tape: Option<PathBuf>,
    #[command(flatten)]
    log: LogArgs,
}

/// The states of a log but those by chance, and how many had the content of another.
pub(super) fn states(
    opened: &Opened,
    most: usize,
) -> Result<(Vec<(State, Digest)>, u64), CliError> {
    let mut states = States::new(&opened.log, 0).with_promises(opened.promises()?.positions());
    let mut list = Vec::new();
    while list.len() < most
        && let Some(state) = states.next_new()?
    {
        list.push(state);
    }
    Ok((list, states.repeated()))
}

impl List {
    pub(super) fn run(&self, global: &Global) -> Result<ExitCode, CliError> {
        let opened = self.log.open(self.tape.as_ref(), global)?;
        let log = &opened.log;
        let (states, repeated) = states(&opened, usize::MAX)?;
        let count = |kind: Kind| states.iter().filter(|(state, _)| state.kind() == kind).count();
        let kinds = Kind::ALL.map(|kind| (kind.name(), count(kind)));
        let flushes = log.events().iter().filter(|event| event.what == What::Flush).count();
        let entries = log.events().last().map_or(0, |event| event.entry);
        let text = if global.format() == Format::Json {
            let kinds: serde_json::Map<_, _> =
                kinds.iter().map(|(name, count)| ((*name).to_owned(), json!(count))).collect();
            let list: Vec<_> = (0..)
                .zip(&states)
                .map(|(number, (state, digest)): (u64, _)| {
                    let (name, kind) = (state.name(log), state.kind().name());
                    json!({"number": number, "name": name, "kind": kind, "digest": digest.to_string()})
                })
                .collect();
            let all = json!({
                "schema": "onefold.crash.list/1",
                "entries": entries,
                "flushes": flushes,
                "unit_bytes": log.unit_bytes(),
                "is_cut_short": log.is_cut_short(),
                "kinds": kinds,
                "repeated": repeated,
                "states": list,
            });
            format!("{all:#}\n")
        } else {
            let mut text = format!(
                "{entries} entries, {flushes} flushes; units of {} bytes are there or not\n",
                log.unit_bytes()
            );
            // Those by chance have no end.
            for (name, count) in kinds.iter().filter(|(name, _)| *name != Kind::Random.name()) {
                let _ = writeln!(text, "{name:8} {count:8}");
            }
            let _ = writeln!(text, "{:8} {repeated:8}  (the content of another state)", "repeated");
            for (state, _) in &states {
                let _ = writeln!(text, "{}", state.name(log));
            }
            text
        };
        global.emit(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}
