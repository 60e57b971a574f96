//! What `onefold crash explore` found, for people and machines.

use std::fmt::Write;

use onefold_crash::Kind;
use onefold_try::explore::{Cause, Checks, Failing, Finding, Lost, Report, Shard};
use serde_json::{Value, json};

use super::Opened;
use crate::output::Global;

/// What was explored.
pub(super) struct Context<'a> {
    pub(super) opened: &'a Opened,
    pub(super) checks: &'a Checks,
    pub(super) shard: Shard,
}

fn tried(report: &Report) -> u64 {
    report.checked.iter().sum()
}

/// States a minute.
fn rate(report: &Report) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "shown with no digit behind the point")]
    let tried = tried(report) as f64;
    tried * 60.0 / report.seconds.max(0.001)
}

/// For people.
pub(super) fn table(report: &Report, context: &Context<'_>) -> String {
    let kinds = Kind::ALL.iter().zip(report.checked).filter(|(_, count)| *count > 0);
    let kinds: Vec<_> = kinds.map(|(kind, count)| format!("{count} {}", kind.name())).collect();
    let mut text = format!(
        "{} states tried in {:.1} s, {:.0} a minute ({}); {} had the content of another\n",
        tried(report),
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
    for (number, finding) in (1..).zip(&report.findings) {
        let _ = writeln!(text, "\n{number}. {}", finding.sentence());
        let _ = writeln!(
            text,
            "   in {} states; look: onefold crash shell {} {}",
            finding.states.len(),
            context.opened.named,
            finding.state
        );
    }
    let unexplained = unexplained(report).count();
    if unexplained > 0 {
        let _ = writeln!(text, "\n{unexplained} more states fail, which are not explained");
    }
    text
}

/// Failing states without a finding.
fn unexplained(report: &Report) -> impl Iterator<Item = &Failing> {
    report.failing.iter().filter(|failing| failing.finding.is_none())
}

/// For machines. Reports of shards merge: numbers of states are the same in all of them.
pub(super) fn json(report: &Report, context: &Context<'_>, global: &Global) -> String {
    let log = &context.opened.log;
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
    let all = json!({
        "schema": "onefold.crash.explore/1",
        "version": env!("CARGO_PKG_VERSION"),
        "seed": global.seed,
        "entries": log.events().last().map_or(0, |event| event.entry),
        "unit_bytes": log.unit_bytes(),
        "is_cut_short": log.is_cut_short(),
        "file_system": context.checks.fs.name(),
        "mount": context.checks.mount,
        "check": context.checks.command,
        "shard": {"part": part, "parts": parts},
        "states": {
            "numbered": report.states,
            "tried": tried(report),
            "kinds": kinds,
            "repeated": report.repeated,
            "failing": report.failing.len(),
        },
        "is_interrupted": report.is_interrupted,
        "seconds": report.seconds,
        "findings": report.findings.iter().map(finding).collect::<Vec<_>>(),
        "failing": failing,
    });
    format!("{all:#}\n")
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

/// For CI: a test for each finding, and one for all states that are good.
pub(super) fn junit(report: &Report) -> String {
    let unexplained: Vec<_> = unexplained(report).collect();
    let failures = report.findings.len() + usize::from(!unexplained.is_empty());
    let (tests, seconds) = (failures + 1, report.seconds);
    let counts = format!("tests=\"{tests}\" failures=\"{failures}\" time=\"{seconds:.3}\"");
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuites name=\"onefold crash explore\" {counts}>\n\
         \x20 <testsuite name=\"power cuts\" {counts}>\n"
    );
    let good = tried(report).saturating_sub(u64::try_from(report.failing.len()).unwrap_or(0));
    let _ = writeln!(
        text,
        "    <testcase classname=\"onefold.crash\" name=\"{good} states that are good\" time=\"{seconds:.3}\"/>"
    );
    let mut failure = |name: &str, message: &str, output: &str| {
        let (name, message, output) = (escaped(name), escaped(message), escaped(output));
        let _ = write!(
            text,
            "    <testcase classname=\"onefold.crash\" name=\"{name}\" time=\"0\">\n\
             \x20     <failure message=\"{message}\">{output}</failure>\n\
             \x20   </testcase>\n"
        );
    };
    for finding in &report.findings {
        let output = format!("{}\nstates: {}", finding.problem.output, finding.states.join(" "));
        failure(&finding.state, &finding.sentence(), &output);
    }
    if let Some(first) = unexplained.first() {
        let message = format!("{} states fail, which are not explained", unexplained.len());
        failure("more states", &message, &first.problem.output);
    }
    text.push_str("  </testsuite>\n</testsuites>\n");
    text
}

/// A text as XML has it. What no document may have is left out.
fn escaped(text: &str) -> String {
    let mut all = String::new();
    for character in text.chars() {
        match character {
            '&' => all.push_str("&amp;"),
            '<' => all.push_str("&lt;"),
            '>' => all.push_str("&gt;"),
            '"' => all.push_str("&quot;"),
            '\n' => all.push_str("&#10;"),
            '\t' => all.push(character),
            _ if character.is_control() || ('\u{fffe}'..='\u{ffff}').contains(&character) => {}
            _ => all.push(character),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn texts_are_escaped() {
        assert_eq!(
            escaped("a<b> & \"c\"\u{1}\u{1b}[0m\n"),
            "a&lt;b&gt; &amp; &quot;c&quot;[0m&#10;"
        );
    }
}
