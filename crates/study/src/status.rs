//! What of a study is done.

use serde::Serialize;

use crate::file::Study;
use crate::run::{Job, Options, jobs, stored};
use crate::{Results, Row, StudyError};

/// What of a study is done.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// Schema of this object.
    pub schema: &'static str,
    /// Name of the study.
    pub study: String,
    /// Per workload, in the order of the study.
    pub workloads: Vec<WorkloadStatus>,
    /// Stored results that belong to no point of the study as it is now; 0 for a part of the study,
    /// which does not know.
    pub strangers: usize,
    /// Stored results of this study that other commits of the program computed.
    pub other_commits: usize,
}

/// What of a workload is done.
#[derive(Clone, Debug, Serialize)]
pub struct WorkloadStatus {
    /// Name.
    pub name: String,
    /// Points with numbers.
    pub done: usize,
    /// Points with an error; they are tried again.
    pub failed: usize,
    /// Points without a result.
    pub left: usize,
    /// CPU seconds that the points left will take, by those done; `None` if none is.
    pub left_cpu_s: Option<f64>,
}

/// Compares the results in a folder with the study.
pub fn status(study: &Study, options: &Options) -> Result<Status, StudyError> {
    let jobs = jobs(study, options)?;
    let results = Results::read(&options.folder)?;
    let mut workloads: Vec<WorkloadStatus> =
        jobs.iter().map(|job| of_workload(job, &results)).collect();
    let costs: Vec<f64> = jobs.iter().flat_map(|job| costs(job, &results)).collect();
    for (status, job) in workloads.iter_mut().zip(&jobs) {
        // A workload that has not run yet is taken to be like the others.
        let own: Vec<f64> = costs_of(job, &results);
        let mean = mean(if own.is_empty() { &costs } else { &own });
        let left = onefold_units::convert::u64_from(status.left);
        status.left_cpu_s = mean.map(|mean| mean * onefold_units::convert::float(left));
    }
    let keys = || jobs.iter().flat_map(|job| job.points.iter().map(|point| point.key.as_str()));
    let own: std::collections::BTreeSet<&str> = keys().collect();
    let (mine, others): (Vec<_>, Vec<_>) =
        results.rows().partition(|row| own.contains(row.key.as_str()));
    let other_commit = |row: &&&Row| row.onefold.commit != options.program.commit;
    Ok(Status {
        schema: "onefold.study_status/1",
        study: study.name.clone(),
        workloads,
        // Results of workloads and policies that nobody asked for are no strangers.
        strangers: if options.is_part() { 0 } else { others.len() },
        other_commits: mine.iter().filter(other_commit).count(),
    })
}

/// The stored rows of the points of a study, in its order and with its names.
pub fn rows(study: &Study, options: &Options) -> Result<Vec<Row>, StudyError> {
    let jobs = jobs(study, options)?;
    Ok(stored(study, &jobs, &Results::read(&options.folder)?))
}

fn of_workload(job: &Job<'_>, results: &Results) -> WorkloadStatus {
    let rows = || job.points.iter().filter_map(|point| results.get(&point.key));
    let failed = rows().filter(|row| row.error.is_some()).count();
    let done = rows().count() - failed;
    let left = job.points.len() - done - failed;
    WorkloadStatus { name: job.workload.name.clone(), done, failed, left, left_cpu_s: None }
}

fn costs<'a>(job: &'a Job<'_>, results: &'a Results) -> impl Iterator<Item = f64> + 'a {
    let rows = job.points.iter().filter_map(|point| results.get(&point.key));
    rows.filter(|row| row.error.is_none()).map(|row| row.cpu_s)
}

fn costs_of(job: &Job<'_>, results: &Results) -> Vec<f64> {
    costs(job, results).collect()
}

fn mean(costs: &[f64]) -> Option<f64> {
    let count = onefold_units::convert::u64_from(costs.len());
    (count > 0).then(|| costs.iter().sum::<f64>() / onefold_units::convert::float(count))
}
