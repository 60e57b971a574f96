//! Study files: a text is refused with a message, or it makes a grid whose sources can be checked and
//! whose report can be drawn, whatever numbers it is about. Nothing is run. The last byte chooses the
//! numbers.
#![no_main]

use std::path::{Path, PathBuf};

use libfuzzer_sys::fuzz_target;
use onefold_study::report::{Report, checks_text, html, text};
use onefold_study::{Input, Options, Program, Row, Source, Study, TenantRow, status};
use onefold_trace::workload::Workload;

/// Grids that are drawn: larger ones take longer and show nothing new.
const POINTS_MOST: usize = 200;
/// Devices whose patterns with trims keep little memory: a bit per unit.
const TRIMMED_MOST: u64 = 1 << 34;

fuzz_target!(|data: &[u8]| {
    let Some((seed, toml)) = data.split_last() else { return };
    let Ok(toml) = std::str::from_utf8(toml) else { return };
    let study = match Study::parse(Path::new("fuzz.toml"), toml) {
        Ok(study) => study,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let sources = || study.workloads.iter().flat_map(|workload| &workload.sources);
    if sources().count() <= 8 && sources().all(|source| is_cheap(source, &study)) {
        open(&study);
    }
    let points: usize = study.workloads.iter().map(|workload| study.points(workload).len()).sum();
    let figures = study.figures.len() + study.headlines.len() + study.checks.len();
    if points <= POINTS_MOST && figures <= 16 {
        draw(&study, u64::from(*seed));
    }
});

/// Whether it can be opened again and again: a generator, of some megabytes.
fn is_cheap(source: &Source, study: &Study) -> bool {
    match &source.input {
        Input::Workload(spec) => match &**spec {
            Workload::Pattern(spec) => {
                !spec.to_string().contains("trim_share") || study.device_bytes <= TRIMMED_MOST
            }
            _ => true,
        },
        Input::Trace { .. } => false,
    }
}

/// Checks sizes and addresses as a run does before it starts.
fn open(study: &Study) {
    let options = Options {
        threads: 1,
        only: Vec::new(),
        policies: Vec::new(),
        scale: 1.0,
        memory_bytes: 1 << 20,
        folder: PathBuf::from("/nonexistent"),
        program: Program::default(),
    };
    match status(study, &options) {
        Ok(status) => {
            for (status, workload) in status.workloads.iter().zip(&study.workloads) {
                assert_eq!(status.left, study.points(workload).len());
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// A report about rows of any numbers, some missing and some failed.
fn draw(study: &Study, seed: u64) {
    let mut state = seed;
    let rows: Vec<Row> = study
        .workloads
        .iter()
        .flat_map(|workload| {
            study.points(workload).into_iter().map(move |(subject, size)| (workload, subject, size))
        })
        .filter_map(|(workload, subject, size_bytes)| {
            let kind = number(&mut state) % 8;
            let tenants = workload.sources.iter().map(|source| tenant(source, &mut state));
            let row = Row {
                workload: workload.name.clone(),
                policy: subject.to_string(),
                label: study.label(&subject),
                bound: subject.is_bound(),
                size_bytes,
                error: (kind == 1).then(|| "<no> & \"none\"".to_owned()),
                tenants: tenants.collect(),
                ..Row::default()
            };
            (kind > 0).then_some(row)
        })
        .collect();
    let report = Report::new(study, &rows);
    assert_eq!(report.checks.len(), study.checks.len());
    let _ = (text(&report), checks_text(&report.checks));
    assert!(html(study, &rows, &report).trim_end().ends_with("</html>"));
    for check in &report.checks {
        let _ = (check.summary(), check.is_as_expected());
    }
}

fn tenant(source: &Source, state: &mut u64) -> TenantRow {
    let mut row =
        TenantRow { name: source.name.clone(), target: source.is_target, ..TenantRow::default() };
    for access in [&mut row.reads, &mut row.writes] {
        (access.pages, access.hits) = (number(state), number(state));
    }
    row.pages_programmed = number(state);
    for latency in [&mut row.latency_ns.read, &mut row.latency_ns.write] {
        (latency.requests, latency.sum) = (number(state), number(state));
    }
    row
}

/// Zero, small, large or the largest number.
fn number(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let drawn = *state >> 33;
    match drawn % 8 {
        0 => 0,
        1 => u64::MAX,
        2..=4 => drawn % 100,
        _ => drawn,
    }
}
