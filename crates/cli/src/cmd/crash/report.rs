//! What was found in the states after power cuts, for people and machines.

use std::fmt::Write;

use onefold_crash::{Kind, Log};
use onefold_try::explore::{Cause, Checks, Finding, Lost, Report, Shard};
use serde_json::{Value, json};

/// What was explored.
pub(crate) struct Context<'a> {
    pub(crate) log: &'a Log,
    /// What names the log in commands that look at a state; `None` if it is gone afterwards.
    pub(crate) named: Option<&'a str>,
    pub(crate) checks: &'a Checks,
    pub(crate) shard: Shard,
    pub(crate) seed: u64,
}

/// States a minute.
fn rate(report: &Report) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "shown with no digit behind the point")]
    let tried = report.tried() as f64;
    tried * 60.0 / report.seconds.max(0.001)
}

/// For people.
pub(crate) fn table(report: &Report, context: &Context<'_>) -> String {
    let kinds = Kind::ALL.iter().zip(report.checked).filter(|(_, count)| *count > 0);
    let kinds: Vec<_> = kinds.map(|(kind, count)| format!("{count} {}", kind.name())).collect();
    let mut text = format!(
        "{} states tried in {:.1} s, {:.0} a minute ({}); {} had the content of another\n",
        report.tried(),
        report.seconds,
        rate(report),
        kinds.join(", "),
        report.repeated
    );
    if report.is_interrupted {
        text.push_str("interrupted: not all states were tried\n");
    }
    if report.failing.is_empty() {
        text.push_str("none of them fails\n");
        return text;
    }
    // Writing to a string cannot fail.
    let (failing, findings) = (report.failing.len(), report.findings.len());
    let _ = writeln!(text, "{failing} of them fail; findings: {findings}");
    for (number, (finding, more)) in (1..).zip(report.groups()) {
        let _ = writeln!(text, "\n{number}. {}", finding.sentence());
        let count = finding.states.len();
        let _ = write!(text, "   in {count} {}", if count == 1 { "state" } else { "states" });
        if more > 0 {
            let _ = write!(text, ", and {more} more findings like this");
        }
        let _ = match context.named {
            Some(log) => writeln!(text, "; look: onefold crash shell {log} {}", finding.state),
            None => writeln!(text, ", as {}", finding.state),
        };
    }
    let unexplained = report.unexplained().count();
    if unexplained > 0 {
        let _ = writeln!(text, "\n{unexplained} more states fail, which are not explained");
    }
    text
}

/// For machines. Reports of shards merge: numbers of states are the same in all of them.
pub(crate) fn json(report: &Report, context: &Context<'_>) -> Value {
    let log = context.log;
    let kinds = Kind::ALL.iter().zip(report.checked);
    let kinds: serde_json::Map<_, _> =
        kinds.map(|(kind, count)| (kind.name().to_owned(), json!(count))).collect();
    let failing: Vec<_> = report
        .failing
        .iter()
        .map(|failing| {
            json!({
                "number": failing.number,
                "state": failing.state.name(log),
                "problem": failing.problem.kind.name(),
                "exit_code": failing.problem.code,
                "output": failing.problem.output,
                "finding": failing.finding,
            })
        })
        .collect();
    let (part, parts) = context.shard.parts();
    json!({
        "schema": "onefold.crash.explore/1",
        "version": env!("CARGO_PKG_VERSION"),
        "seed": context.seed,
        "entries": log.events().last().map_or(0, |event| event.entry),
        "unit_bytes": log.unit_bytes(),
        "is_cut_short": log.is_cut_short(),
        "file_system": context.checks.fs.name(),
        "mount": context.checks.mount,
        "check": context.checks.command,
        "shard": {"part": part, "parts": parts},
        "states": {
            "numbered": report.states,
            "tried": report.tried(),
            "kinds": kinds,
            "repeated": report.repeated,
            "failing": report.failing.len(),
        },
        "is_interrupted": report.is_interrupted,
        "seconds": report.seconds,
        "findings": report.findings.iter().map(finding).collect::<Vec<_>>(),
        "failing": failing,
    })
}

fn finding(finding: &Finding) -> Value {
    let lost = |lost: &Lost| {
        json!({
            "entry": lost.entry,
            "offset": lost.offset,
            "bytes": lost.bytes,
            "file": lost.file,
        })
    };
    let (cause, requests) = match &finding.cause {
        Cause::Lost(all) => ("lost", all.iter().map(lost).collect()),
        Cause::Late(late) => ("late", vec![lost(late)]),
        Cause::Unsteady => ("unsteady", Vec::new()),
    };
    let after = finding.after.as_ref();
    json!({
        "sentence": finding.sentence(),
        "cause": cause,
        "requests": requests,
        "after": after.map(|after| json!({"entry": after.entry, "text": after.text})),
        "behind_entry": finding.behind,
        "state": finding.state,
        "problem": finding.problem.kind.name(),
        "exit_code": finding.problem.code,
        "output": finding.problem.output,
        "states": finding.states,
    })
}
