//! A sample of points, run again and compared with a kept table.

use std::collections::BTreeSet;

use crate::file::Study;
use crate::kept::{Table, cells, columns, timeless};
use crate::run::{Control, Job, Options, compute, jobs, stored_at};
use crate::{Results, Row, StudyError};

/// What became of a comparison.
#[derive(Clone, Debug, Default)]
pub struct Verified {
    /// Points that were run and compared.
    pub points: usize,
    /// Numbers that were compared.
    pub numbers: usize,
    /// Numbers that are not what the table says.
    pub differences: Vec<Difference>,
    /// Whether it was interrupted: some points were not run.
    pub partial: bool,
}

/// A number that is not what the table says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Workload, policy or device, size and seed.
    pub point: String,
    /// The column.
    pub name: String,
    /// What the table has; empty if nothing.
    pub kept: String,
    /// What the run has; empty if nothing.
    pub found: String,
}

/// `W3, LRU, 8MiB, seed 0: waf is 1.5 in the table and 1.6 now (+6.667 %)`.
impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { point, name, kept, found } = self;
        let or_nothing = |text: &String| if text.is_empty() { "nothing" } else { text }.to_owned();
        let (before, now) = (or_nothing(kept), or_nothing(found));
        write!(f, "{point}: {name} is {before} in the table and {now} now")?;
        match (kept.parse::<f64>(), found.parse::<f64>()) {
            (Ok(kept), Ok(found)) if kept != 0.0 => {
                write!(f, " ({:+.3} %)", (found / kept - 1.0) * 100.0)
            }
            _ => Ok(()),
        }
    }
}

/// Runs some points of a study again, in memory, and compares all their numbers with a table, exactly.
///
/// The points are the first `count` by the digest of what determines them: an arbitrary choice that is
/// always the same. All points that have numbers are run if `count` is `None`.
///
/// # Errors
/// As those of [`run`](crate::run).
pub fn verify(
    study: &Study,
    options: &Options,
    control: &Control<'_>,
    (table, count): (&Table, Option<usize>),
) -> Result<Verified, StudyError> {
    let options = timeless(options);
    let mut jobs = jobs(study, &options)?;
    let kept = |key: &str| table.rows.iter().find(|row| row.key == key && row.error.is_none());
    let keys = || jobs.iter().flat_map(|job| job.points.iter().map(|point| point.key.clone()));
    let known: BTreeSet<String> = keys().filter(|key| kept(key).is_some()).collect();
    let chosen: BTreeSet<String> = known.into_iter().take(count.unwrap_or(usize::MAX)).collect();
    let mut seen = BTreeSet::new();
    for job in &mut jobs {
        // One run may stand for several points.
        job.points.retain(|point| chosen.contains(&point.key) && seen.insert(point.key.clone()));
    }
    jobs.retain(|job: &Job<'_>| !job.points.is_empty());
    let mut results = Results::in_memory();
    let summary = compute(study, &jobs, &options, control, &mut results)?;
    let mut verified = Verified { partial: summary.partial, ..Verified::default() };
    let columns = columns(study);
    for job in &jobs {
        for (at, point) in job.points.iter().enumerate() {
            let (Some(row), Some(kept)) = (stored_at(study, job, at, &results), kept(&point.key))
            else {
                continue;
            };
            verified.points += 1;
            let (before, now) = (cells(study, &columns, kept), cells(study, &columns, &row));
            verified.numbers += now.iter().filter(|cell| !cell.is_empty()).count();
            for (column, (kept, found)) in columns.iter().zip(before.into_iter().zip(now)) {
                if kept != found && !table.absent.contains(&column.name) {
                    let (point, name) = (place(&row), column.name.clone());
                    verified.differences.push(Difference { point, name, kept, found });
                }
            }
        }
    }
    Ok(verified)
}

fn place(row: &Row) -> String {
    let size = match row.size_bytes {
        0 => String::new(),
        bytes => format!(", {}", onefold_config::size_text(bytes)),
    };
    format!("{}, {}{size}, seed {}", row.workload, row.label, row.seed)
}
