//! What the CPU seconds of rows add up to: a cell takes a second for each block (see `cpu`), so that they
//! count the blocks that were run.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

use super::{Control, Options, Progress, run};
use crate::{Program, Row, Study};

/// Warm-ups of several blocks each, equal for A to D, of which C has one size only and D is B by another
/// name; E warms up longer, by itself.
fn study() -> Study {
    let head = r#"
        schema = "onefold.study/1"
        name = "shared"
        device = "1GiB"
        sizes = ["256KiB", "1MiB"]
        policies = ["lru", "arc"]
        bounds = ["alone"]
        "#;
    let workload = |(name, share, warm_up, more)| {
        format!(
            r#"
            [[workload]]
            name = "{name}"
            {more}
            source = [
                {{ workload = "randwrite,requests=300k", share = {share}, warm_up = "{warm_up}", size = "512MiB" }},
                {{ workload = "randread,requests=40k", share = 1, offset = "512MiB", role = "target" }},
            ]
            "#
        )
    };
    let workloads = [
        ("A", 9, "600MiB", ""),
        ("B", 5, "600MiB", ""),
        ("C", 2, "600MiB", "sizes = [\"1MiB\"]"),
        ("D", 5, "600MiB", ""),
        ("E", 5, "700MiB", ""),
    ];
    let text = head.to_owned() + &workloads.map(workload).concat();
    Study::parse(Path::new("shared.toml"), &text).unwrap()
}

/// Blocks of a warm-up and of what is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Blocks {
    warm_up: f64,
    counted: f64,
}

/// Runs some of the workloads; the rows, and the blocks that were run for each workload by its place.
fn watched(folder: &Path, only: &[&str]) -> (Vec<Row>, BTreeMap<usize, Blocks>) {
    let blocks = RefCell::new(BTreeMap::<usize, Blocks>::new());
    let watch = |progress: &Progress<'_>| {
        let mut blocks = blocks.borrow_mut();
        let of = blocks.entry(progress.number).or_default();
        *(if progress.bytes == 0 { &mut of.warm_up } else { &mut of.counted }) += 1.0;
    };
    let options = Options {
        threads: 2,
        only: only.iter().map(|name| (*name).to_owned()).collect(),
        policies: Vec::new(),
        scale: 1.0,
        memory_bytes: 1 << 30,
        folder: folder.to_path_buf(),
        program: Program::default(),
    };
    let control = Control { interrupt: None, progress: Some(&watch) };
    let rows = run(&study(), &options, &control).unwrap().rows;
    (rows, blocks.into_inner())
}

/// Seconds of the rows of a workload, by size: those of its policies and of its bound are equal.
fn seconds(rows: &[Row], workload: &str, size: u64) -> f64 {
    let of: Vec<f64> = rows
        .iter()
        .filter(|row| row.workload == workload && row.size_bytes == size)
        .map(|row| row.cpu_s)
        .collect();
    assert_eq!(of.len(), 3, "{workload}");
    assert!(of.iter().all(|cpu_s| (cpu_s - of[0]).abs() < 1e-6), "{workload}: {of:?}");
    of[0]
}

fn assert_near(found: f64, expected: f64, what: &str) {
    assert!((found - expected).abs() < 1e-6, "{what}: {found} s, expected {expected}");
}

const SMALL: u64 = 256 << 10;
const LARGE: u64 = 1 << 20;

#[test]
fn a_shared_warm_up_is_counted_once_over_the_rows_that_share_it() {
    let folder = tempfile::tempdir().unwrap();
    let (rows, blocks) = watched(folder.path(), &[]);
    // Only A and E warm up, and D has the rows of B.
    assert!(blocks[&1].warm_up >= 4.0 && blocks[&5].warm_up >= 4.0, "{blocks:?}");
    assert_eq!((blocks[&2].warm_up, blocks[&3].warm_up), (0.0, 0.0));
    assert!(!blocks.contains_key(&4), "{blocks:?}");

    let warm = blocks[&1].warm_up;
    for (size, sharers, of) in [(SMALL, 2.0, &["A", "B"][..]), (LARGE, 3.0, &["A", "B", "C"])] {
        let mut sum = 0.0;
        for (name, number) in of.iter().zip(1..) {
            let found = seconds(&rows, name, size);
            assert_near(found, warm / sharers + blocks[&number].counted, name);
            sum += found;
        }
        let counted: f64 = (1..=of.len()).map(|number| blocks[&number].counted).sum();
        assert_near(sum, warm + counted, "the warm-up once");
        assert_near(seconds(&rows, "D", size), seconds(&rows, "B", size), "D is B");
        assert_near(seconds(&rows, "E", size), blocks[&5].warm_up + blocks[&5].counted, "E");
    }
}

#[test]
fn a_warm_up_that_is_run_again_is_counted_again() {
    let folder = tempfile::tempdir().unwrap();
    let (first, before) = watched(folder.path(), &["B"]);
    let (rows, after) = watched(folder.path(), &["A", "B", "C"]);
    // B is alone at first, then found.
    let alone = before[&1].warm_up + before[&1].counted;
    for size in [SMALL, LARGE] {
        assert_near(seconds(&first, "B", size), alone, "B alone");
        assert_near(seconds(&rows, "B", size), alone, "B found");
    }
    let (a, c) = (after[&1], after[&3]);
    assert!(!after.contains_key(&2) && c.warm_up == 0.0, "{after:?}");
    assert_near(seconds(&rows, "A", SMALL), a.warm_up + a.counted, "A, small");
    assert_near(seconds(&rows, "A", LARGE), a.warm_up / 2.0 + a.counted, "A, large");
    assert_near(seconds(&rows, "C", LARGE), a.warm_up / 2.0 + c.counted, "C");
}
