//! The numbers of a result by the names that they have in its JSON, such as `latency_ns.write.p99`: the columns of tables over
//! many runs.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use onefold_units::{CauseCounts, ZoneState};
use onefold_volume::Sent;
use onefold_zoned::{Action, WaitReason};
use serde_json::{Map, Value};

use super::{
    ByCause, Checks, Conventional, Faults, LatencySummary, LittlesLaw, MapCache, Precondition,
    Reclaims, Recovery, Remap, RunResult, TraceSource, Volume, Waits, Zoned, ZonedVolume,
};

/// What a table has of a result elsewhere, or not at all: the program, the seed and the configuration.
const LEFT_OUT: &[&str] =
    &["schema", "onefold", "seed", "partial", "config", "config_sha256", "superblocks"];

/// One number or text of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its keys in the JSON, with points between them.
    pub name: String,
    /// What it is.
    pub kind: ColumnKind,
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Texts.
    Text,
    /// Whole numbers from 0.
    Count,
    /// Numbers with a point.
    Real,
    /// Truth values.
    Flag,
}

/// Every column, by name.
pub fn columns() -> &'static [Column] {
    static COLUMNS: OnceLock<Vec<Column>> = OnceLock::new();
    COLUMNS.get_or_init(|| {
        let column = |(name, value): (String, Value)| Column { name, kind: kind(&value) };
        leaves(&whole()).into_iter().map(column).collect()
    })
}

/// The column called `name`.
#[must_use]
pub fn column(name: &str) -> Option<&'static Column> {
    let at = columns().binary_search_by(|column| column.name.as_str().cmp(name));
    at.ok().map(|at| &columns()[at])
}

/// What a run measured, by name. What it did not measure is absent: latencies of no request, ratios to nothing, a buffer that is
/// not there.
#[must_use]
pub fn measured(run: &RunResult) -> BTreeMap<String, Value> {
    let mut leaves = leaves(run);
    let absent: Vec<String> =
        leaves.keys().filter(|name| !is_measured(&leaves, name)).cloned().collect();
    for name in absent {
        leaves.remove(&name);
    }
    leaves
}

/// Counts that say whether a ratio beside them means anything: the name of the ratio, and counts of which one has to be above 0.
const DENOMINATORS: &[(&str, &[&str])] = &[
    ("waf", &["host.write_pages"]),
    ("volume.waf_host", &["host.write_pages"]),
    ("volume.waf_device", &["volume.device.write_pages"]),
    ("zoned_volume.phys_per_user", &["host.write_pages"]),
    ("remap.waf_logical", &["host.write_pages", "host.remap_pages"]),
    ("bandwidth", &["virtual_ns"]),
    ("buffer.hit_ratio", &["host.read_pages", "host.write_pages"]),
    ("buffer.read_hit_ratio", &["host.read_pages"]),
    ("buffer.read_request_hit_ratio", &["host.read_pages"]),
    ("buffer.read_byte_hit_ratio", &["host.read_pages"]),
    ("buffer.write_hit_ratio", &["host.write_pages"]),
    ("buffer.write_request_hit_ratio", &["host.write_pages"]),
    ("buffer.write_byte_hit_ratio", &["host.write_pages"]),
    ("buffer.absorption", &["host.write_pages"]),
];

fn is_measured(leaves: &BTreeMap<String, Value>, name: &str) -> bool {
    let is_positive = |name: &str| {
        let number = leaves.get(name).and_then(Value::as_f64);
        number.is_some_and(|number| number > 0.0)
    };
    let (group, last) = name.rsplit_once('.').unwrap_or(("", name));
    if group.starts_with("latency_") {
        return last == "count" || is_positive(&format!("{group}.count"));
    }
    if name.starts_with("buffer.") {
        let policy = leaves.get("buffer.policy").and_then(Value::as_str).unwrap_or_default();
        if matches!(policy, "" | "none") {
            return name == "buffer.policy";
        }
    }
    if group == "ftl" {
        return is_positive("ftl.superblocks");
    }
    let denominator = DENOMINATORS.iter().find(|(ratio, _)| *ratio == name);
    denominator.is_none_or(|(_, counts)| counts.iter().any(|count| is_positive(count)))
}

/// A result with every part that one can have.
fn whole() -> RunResult {
    let by_cause = || ByCause::from(&CauseCounts::default());
    let mut run = RunResult {
        trace: Some(TraceSource::default()),
        workload: Some(String::new()),
        precondition: Some(Precondition::default()),
        map_cache: Some(MapCache::default()),
        faults: Some(Faults::default()),
        remap: Some(Remap::default()),
        recovery: Some(Recovery::default()),
        checks: Checks { littles_law: Some(LittlesLaw::default()) },
        volume: Some(Volume {
            sent_pages: Sent::ALL.map(|cause| (cause.name().to_owned(), 0)).into(),
            ..Volume::default()
        }),
        zoned: Some(Zoned {
            max_open: Some(0),
            max_active: Some(0),
            zones: ZoneState::ALL.map(|state| (state.name().to_owned(), 0)).into(),
            conventional: Some(Conventional {
                program_pages: by_cause(),
                ..Conventional::default()
            }),
            ..Zoned::default()
        }),
        zoned_volume: Some(ZonedVolume {
            reclaims: Action::ALL.map(|one| (one.name().to_owned(), Reclaims::default())).into(),
            waits: WaitReason::ALL.map(|one| (one.name().to_owned(), Waits::default())).into(),
            ..ZonedVolume::default()
        }),
        ..RunResult::default()
    };
    run.device.preset = Some(String::new());
    run.latency_ns.remap = Some(LatencySummary::default());
    run.flash.program_pages = by_cause();
    run.flash.read_pages = by_cause();
    run
}

/// The numbers and texts of a result, by name; a list of texts as one text, other lists not at all.
fn leaves(run: &RunResult) -> BTreeMap<String, Value> {
    let mut leaves = BTreeMap::new();
    // A result has only string keys, so it has a JSON form.
    if let Ok(Value::Object(parts)) = serde_json::to_value(run) {
        let kept = parts.into_iter().filter(|(name, _)| !LEFT_OUT.contains(&name.as_str()));
        gather("", kept.collect(), &mut leaves);
    }
    leaves
}

fn gather(prefix: &str, parts: Map<String, Value>, leaves: &mut BTreeMap<String, Value>) {
    for (name, value) in parts {
        let name = format!("{prefix}{name}");
        match value {
            Value::Object(parts) => gather(&format!("{name}."), parts, leaves),
            Value::Array(items) if name == "warnings" => {
                let texts: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
                leaves.insert(name, texts.join(" | ").into());
            }
            Value::Null | Value::Array(_) => {}
            value => _ = leaves.insert(name, value),
        }
    }
}

fn kind(value: &Value) -> ColumnKind {
    match value {
        Value::Bool(_) => ColumnKind::Flag,
        Value::Number(number) if number.is_f64() => ColumnKind::Real,
        Value::Number(_) => ColumnKind::Count,
        _ => ColumnKind::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::{ColumnKind, column, columns, kind, leaves, measured};
    use crate::result::tests::sample;
    use crate::result::{LatencySummary, RunResult};

    /// A number that a result can have and no table shows would be lost.
    #[test]
    fn every_number_of_a_result_has_a_column() {
        for (name, value) in leaves(&sample()) {
            let column = column(&name).unwrap_or_else(|| panic!("{name} has no column"));
            assert_eq!(column.kind, kind(&value), "{name}");
        }
        assert!(columns().is_sorted_by(|a, b| a.name < b.name));
        assert_eq!(column("latency_ns.write.p99").unwrap().kind, ColumnKind::Count);
        assert_eq!(column("waf").unwrap().kind, ColumnKind::Real);
    }

    /// 0 is a measurement; what was not measured is absent.
    #[test]
    fn what_was_not_measured_is_absent() {
        let all = measured(&sample());
        assert!(all.contains_key("waf") && all.contains_key("latency_ns.write.p99"));
        let mut reads = sample();
        reads.host.write_pages = 0;
        reads.latency_ns.write = LatencySummary::default();
        let some = measured(&reads);
        assert!(!some.contains_key("waf") && !some.contains_key("latency_ns.write.p99"));
        assert_eq!(some["latency_ns.write.count"], 0);
        let nothing = measured(&RunResult::default());
        assert!(!nothing.contains_key("ftl.rho") && !nothing.contains_key("buffer.read_hits"));
        assert_eq!(nothing["flash.erases"], 0);
    }
}
