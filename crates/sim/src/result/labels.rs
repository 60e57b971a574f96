//! Short names that tell runs apart.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::RunResult;

/// Longest label, in characters.
const LABEL_MAX: usize = 32;

/// Keys that say more than others, the best first.
const TELLING: [&str; 6] =
    ["volume.mode", "zoned.policy", "buffer.policy", "run.mode", "ftl.victim", "capacity.logical"];

/// Most keys in a label.
const KEYS_MAX: usize = 3;

/// One short label per run, all different: the device if that tells the runs apart, else what
/// drove them, else the device and its victim policy, its buffer policy or what drove it, else the
/// values of the keys by which the configurations differ, else a number in front of these.
#[must_use]
pub fn labels(runs: &[RunResult]) -> Vec<String> {
    let candidates: [fn(&RunResult) -> String; 5] = [
        |run| run.device_name().to_owned(),
        RunResult::source_name,
        |run| format!("{}, {}", run.device_name(), run.ftl.victim),
        |run| format!("{}, {}", run.device_name(), run.buffer.policy),
        |run| format!("{}, {}", run.device_name(), run.source_name()),
    ];
    let shortened =
        candidates.into_iter().map(|of| runs.iter().map(|run| shorten(&of(run))).collect());
    let differing = differences(runs);
    let by_keys = differing.iter().map(|text| shorten(text)).collect();
    let told = |labels: &Vec<String>| distinct(labels) == runs.len();
    shortened.chain([by_keys]).find(told).unwrap_or_else(|| {
        let named = runs.iter().zip(differing).map(|(run, differing)| {
            if differing.is_empty() { run.device_name().to_owned() } else { differing }
        });
        (1..).zip(named).map(|(n, name)| shorten(&format!("{n}: {name}"))).collect()
    })
}

/// How many of the texts differ.
fn distinct(texts: &[String]) -> usize {
    texts.iter().collect::<BTreeSet<_>>().len()
}

/// The keys that tell most of the runs apart, as `buffer.size=1MiB, seed=2`, behind devices that differ; empty
/// where nothing does.
fn differences(runs: &[RunResult]) -> Vec<String> {
    let settings: Vec<BTreeMap<String, String>> = runs.iter().map(settings).collect();
    let rank = |key: &str| TELLING.iter().position(|telling| *telling == key);
    let all: BTreeSet<&str> =
        settings.iter().flat_map(BTreeMap::keys).map(String::as_str).collect();
    let mut keys: Vec<&str> = all.into_iter().collect();
    keys.sort_by_key(|key| rank(key).unwrap_or(TELLING.len()));
    let devices: Vec<String> = runs.iter().map(|run| run.device_name().to_owned()).collect();
    let mut chosen = if distinct(&devices) > 1 { devices } else { vec![String::new(); runs.len()] };
    for _ in 0..KEYS_MAX {
        let with = |key: &&str| -> Vec<String> {
            let pairs = chosen.iter().zip(&settings);
            let text = |(chosen, of): (&String, &BTreeMap<String, String>)| {
                let value = of.get(*key).map_or("-", String::as_str);
                let gap = if chosen.is_empty() { "" } else { ", " };
                format!("{chosen}{gap}{key}={value}")
            };
            pairs.map(text).collect()
        };
        // The first of equals.
        let best = keys.iter().map(with).rev().max_by_key(|texts| distinct(texts));
        match best {
            Some(best) if distinct(&best) > distinct(&chosen) => chosen = best,
            _ => break,
        }
    }
    chosen
}

/// What was set for a run: keys of its configuration, its seed, and what drove it.
fn settings(run: &RunResult) -> BTreeMap<String, String> {
    let mut settings = BTreeMap::new();
    collect(&run.config, "", &mut settings);
    for of_load in ["name", "trace", "workload"] {
        settings.remove(of_load);
    }
    settings.insert("seed".to_owned(), run.seed.to_string());
    settings.insert("load".to_owned(), run.source_name());
    settings
}

fn collect(value: &Value, key: &str, settings: &mut BTreeMap<String, String>) {
    let Value::Object(fields) = value else {
        let text = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
        settings.insert(key.to_owned(), text);
        return;
    };
    for (name, value) in fields {
        let key = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
        collect(value, &key, settings);
    }
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
        other.seed += 1;
        let seeds = [sample().seed, other.seed].map(|seed| format!("seed={seed}"));
        assert_eq!(labels(&[sample(), other.clone()]), seeds);
        other.config = serde_json::json!({"run": {"mode": "open"}});
        assert!(
            labels(&[sample(), other.clone()])[1].starts_with("run.mode=open"),
            "{:?}",
            labels(&[sample(), other])
        );
        let mut other = sample();
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
