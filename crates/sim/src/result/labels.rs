//! Short names that tell runs apart.

use std::collections::BTreeSet;

use super::RunResult;

/// Longest label, in characters.
const LABEL_MAX: usize = 32;

/// One short label per run, all different: the device if that tells the runs apart, else what
/// drove them, else the device with its victim policy, its buffer policy or what drove it, else a
/// number in front.
#[must_use]
pub fn labels(runs: &[RunResult]) -> Vec<String> {
    let candidates: [fn(&RunResult) -> String; 5] = [
        |run| run.device_name().to_owned(),
        RunResult::source_name,
        |run| format!("{}, {}", run.device_name(), run.ftl.victim),
        |run| format!("{}, {}", run.device_name(), run.buffer.policy),
        |run| format!("{}, {}", run.device_name(), run.source_name()),
    ];
    for candidate in candidates {
        let labels: Vec<String> = runs.iter().map(|run| shorten(&candidate(run))).collect();
        if labels.iter().collect::<BTreeSet<_>>().len() == runs.len() {
            return labels;
        }
    }
    let numbered = (1..).zip(runs);
    numbered.map(|(n, run)| shorten(&format!("{n}: {}", run.device_name()))).collect()
}

/// Cuts a label to [`LABEL_MAX`], and marks the cut.
fn shorten(text: &str) -> String {
    let visible: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if visible.chars().count() <= LABEL_MAX {
        return visible;
    }
    let mut short: String = visible.chars().take(LABEL_MAX - 2).collect();
    short.push_str("..");
    short
}

#[cfg(test)]
mod tests {
    use super::{LABEL_MAX, labels};
    use crate::result::tests::sample;

    #[test]
    fn labels_differ_whatever_the_runs_share() {
        let mut other = sample();
        assert_eq!(labels(&[sample(), other.clone()]), ["1: s1", "2: s1"]);
        other.ftl.victim = "fifo".to_owned();
        assert_eq!(labels(&[sample(), other.clone()]), ["s1, greedy", "s1, fifo"]);
        other.ftl.victim = "greedy".to_owned();
        other.buffer.policy = "sieve".to_owned();
        assert_eq!(labels(&[sample(), other.clone()]), ["s1, pt-lru:p=1/2", "s1, sieve"]);
        other.workload = Some("x".repeat(100));
        other.trace = None;
        let found = labels(&[sample(), other.clone()]);
        assert_eq!(found[0], "trace.csv");
        assert_eq!(found[1].chars().count(), LABEL_MAX);
        other.device.name = "tlc".to_owned();
        assert_eq!(labels(&[sample(), other]), ["s1", "tlc"]);
    }
}
