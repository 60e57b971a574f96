//! An advice as text and as JSON.

use std::fmt::Write as _;

use onefold_sim::result::{RunResult, duration};
use onefold_units::PAGE_BYTES;
use onefold_units::convert::float;
use serde_json::{Value, json};

use super::Tried;
use super::compare::{Compared, STREAMS, State};
use super::load::Load;
use super::look::{Seen, Sourced};
use super::model::Model;
use super::verdict::MARGIN;
use crate::cmd::ssd::render;
use crate::error::CliError;
use crate::output::Format;

/// Everything that is told.
pub(super) struct Advice {
    pub(super) subject: String,
    pub(super) model: Model,
    pub(super) seen: Option<Seen>,
    pub(super) unit: Option<Sourced>,
    pub(super) load: Load,
    /// The state that was asked for.
    pub(super) asked: Compared,
    pub(super) others: Vec<Tried>,
}

impl Advice {
    pub(super) fn text(&self, format: Format) -> Result<String, CliError> {
        Ok(match format {
            Format::Json => format!("{:#}\n", self.to_json()?),
            Format::Table => self.table()?,
        })
    }

    fn table(&self) -> Result<String, CliError> {
        let judgement = &self.asked.judgement;
        let mut text = format!(
            "{}: {}\n  why: {}\n  would change it: {}\n",
            self.subject,
            judgement.verdict.name(),
            judgement.why,
            self.changes(),
        );
        // Writing to a string cannot fail.
        let mut line = |name: &str, value: &str| _ = writeln!(text, "{name:<28} {value}");
        let row = |alone: String, with: String, end: &str| {
            format!("{alone:<12} {with:<12} {end}").trim_end().to_owned()
        };
        line("", &row("alone".into(), "with volume".into(), ""));
        line("programmed / written bytes", &self.compared(&self.asked));
        for (name, of) in FIGURES {
            let alone = self.asked.alone.as_ref().map_or_else(|| "refused".to_owned(), of);
            line(name, &row(alone, of(&self.asked.with), ""));
        }
        for (state, tried) in &self.others {
            let value = match tried {
                Ok(compared) => self.compared(compared),
                Err(error) => format!("not simulated: {}", error.message()),
            };
            line(&format!("  {}", in_words(*state, self.asked.state)), &value);
        }
        if let Some((run, judgement)) = &self.asked.streams {
            line("streams of the drive", judgement.verdict.name());
            line("  why", &judgement.why);
            line("  programmed / written bytes", &format!("{:.2}", run.waf));
            line("  keys", &STREAMS.join(", "));
        }
        line("state before", &self.state());
        line("load", &self.load.described());
        line("  simulated", &self.ran());
        line("drive", &self.model.described()?);
        if let Some((bytes, from)) = self.unit {
            line("indirection unit", &format!("{}, {from}", render::size(bytes)));
        }
        line("volume", &self.volume());
        for (name, value) in self.seen.iter().flat_map(Seen::lines) {
            line(&name, &value);
        }
        for doubt in self.doubts() {
            line("doubt", &doubt);
        }
        Ok(text)
    }

    /// Both amplifications, and the verdict.
    fn compared(&self, compared: &Compared) -> String {
        let alone = compared.alone.as_ref();
        let alone = alone.map_or_else(|| "refused".to_owned(), |run| format!("{:.2}", run.waf));
        let is_other = compared.state != self.asked.state;
        let verdict = if is_other { compared.judgement.verdict.name() } else { "" };
        format!("{alone:<12} {:<12.2} {verdict}", compared.with.waf).trim_end().to_owned()
    }

    /// The states with another verdict.
    fn changes(&self) -> String {
        if self.others.is_empty() {
            return "not simulated, as the drive is large: try --utilisation and --overwritten"
                .to_owned();
        }
        let asked = &self.asked;
        let other = |(state, tried): &Tried| {
            let verdict = tried.as_ref().ok()?.judgement.verdict;
            let words = in_words(*state, asked.state);
            (verdict != asked.judgement.verdict).then(|| format!("{words}: {}", verdict.name()))
        };
        let changed: Vec<String> = self.others.iter().filter_map(other).collect();
        if changed.is_empty() {
            "none of the other states below".to_owned()
        } else {
            changed.join("; ")
        }
    }

    fn state(&self) -> String {
        let Compared { state, data_bytes, .. } = &self.asked;
        format!(
            "{:.0} % of the log in use: {} of data, overwritten {} times at random",
            state.utilisation * 100.0,
            render::size(*data_bytes),
            state.overwritten
        )
    }

    /// How much of the load was run.
    fn ran(&self) -> String {
        let with = &self.asked.with;
        let written = render::size(with.host.write_pages * PAGE_BYTES);
        let cut = if with.partial { ", then cut off" } else { "" };
        match (&self.load, &with.trace) {
            (Load::Trace(trace), Some(ran)) => format!(
                "{} requests of {} in {} passes, {written} written{cut}; replay: {}",
                with.host.requests(),
                trace.requests(),
                ran.passes,
                ran.replay
            ),
            _ => format!("{} requests, {written} written{cut}", with.host.requests()),
        }
    }

    /// The volume, as it would be made.
    fn volume(&self) -> String {
        let planned = &self.asked.planned;
        let blocks = |blocks: u32| u64::from(blocks) * PAGE_BYTES;
        let in_use = self
            .asked
            .with
            .volume
            .as_ref()
            .map_or(0.0, |volume| float(volume.live_pages) / float(volume.log_pages.max(1)));
        format!(
            "--op {:.3}, log segments of {}, batches filled up to {}; {:.0} % of the log in use at the end",
            planned.op,
            render::size(blocks(planned.geometry.segment_blocks)),
            render::size(blocks(planned.geometry.unit_blocks)),
            in_use * 100.0
        )
    }

    /// What speaks against the numbers.
    fn doubts(&self) -> Vec<String> {
        let of = |what: &str, run: &RunResult| -> Vec<String> {
            run.warnings.iter().map(|warning| format!("{what}: {warning}")).collect()
        };
        let alone = self.asked.alone.iter().flat_map(|run| of("alone", run));
        let with = of("with a volume", &self.asked.with);
        self.seen.iter().flat_map(Seen::doubts).chain(alone).chain(with).collect()
    }

    fn to_json(&self) -> Result<Value, CliError> {
        let other = |(state, tried): &Tried| match tried {
            Ok(compared) => compared.to_json(),
            Err(error) => {
                json!({"utilisation": state.utilisation, "overwritten": state.overwritten, "error": error.message()})
            }
        };
        let planned = &self.asked.planned;
        let blocks = |blocks: u32| u64::from(blocks) * PAGE_BYTES;
        let mut value = self.asked.to_json();
        let rest = json!({
            "schema": "onefold.volume.advise/1",
            "subject": self.subject,
            "why": self.asked.judgement.why,
            "margin": MARGIN,
            "others": self.others.iter().map(other).collect::<Vec<_>>(),
            "load": self.load.to_json(),
            "cut": self.asked.with.partial,
            "model": self.model.to_json()?,
            "unit": self.unit.map(|(bytes, from)| json!({"bytes": bytes, "from": from})),
            "volume": {
                "op": planned.op,
                "logical_bytes": planned.exported(),
                "segment_bytes": blocks(planned.geometry.segment_blocks),
                "unit_bytes": blocks(planned.geometry.unit_blocks),
            },
            "device": self.seen.as_ref().map(Seen::to_json),
            "doubts": self.doubts(),
        });
        if let (Value::Object(value), Value::Object(rest)) = (&mut value, rest) {
            value.extend(rest);
        }
        Ok(value)
    }
}

/// A figure of a run, in words.
type Figure = (&'static str, fn(&RunResult) -> String);

const FIGURES: [Figure; 3] = [
    ("time of the load", |run| duration(float(run.virtual_ns))),
    ("write latency, mean", |run| duration(run.latency_ns.write.mean)),
    ("flush latency, mean", |run| duration(run.latency_ns.flush.mean)),
];

/// What is another one in a state.
fn in_words(state: State, asked: State) -> String {
    if (state.utilisation - asked.utilisation).abs() > 0.0 {
        return format!("{:.0} % of the log in use", state.utilisation * 100.0);
    }
    format!("overwritten {} times before", state.overwritten)
}

impl Compared {
    fn to_json(&self) -> Value {
        let run = |run: &RunResult| {
            json!({
                "programmed_per_written": run.waf,
                "virtual_ns": run.virtual_ns,
                "write_latency_mean_ns": run.latency_ns.write.mean,
                "flush_latency_mean_ns": run.latency_ns.flush.mean,
                "requests": run.host.requests(),
                "written_bytes": run.host.write_pages * PAGE_BYTES,
                "erases": run.flash.erases,
            })
        };
        json!({
            "utilisation": self.state.utilisation,
            "overwritten": self.state.overwritten,
            "data_bytes": self.data_bytes,
            "verdict": self.judgement.verdict.name(),
            "alone": self.alone.as_ref().map(run),
            "with_volume": run(&self.with),
            "streams": self.streams.as_ref().map(|(with, judgement)| {
                json!({
                    "verdict": judgement.verdict.name(),
                    "why": judgement.why,
                    "keys": STREAMS,
                    "run": run(with),
                })
            }),
        })
    }
}
