//! Running studies: the numbers, and that nothing but the study decides them.

use std::cell::Cell;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{SMALL, options, row, run_in, study, timeless};
use onefold_study::{Control, Program, Results, Row, StudyError, run, status};

#[test]
fn the_number_of_threads_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let runs = [1, 2, 5].map(|threads| {
        let summary = run_in(&folder.path().join(threads.to_string()), SMALL, threads);
        assert_eq!((summary.rows.len(), summary.computed, summary.partial), (8, 8, false));
        timeless(&summary.rows)
    });
    assert_eq!(runs[0], runs[1]);
    assert_eq!(runs[0], runs[2]);
    assert!(runs[0].iter().all(|row| row.error.is_none() && row.requests > 1000));
}

/// Sequential writes, then the same addresses again: LRU of a quarter of them never hits, and every
/// page but those still buffered is programmed once per pass.
#[test]
fn numbers_that_can_be_computed_by_hand() {
    let text = r#"
        schema = "onefold.study/1"
        name = "loop"
        device = "16MiB"
        flash_page = "16KiB"
        sizes = ["1MiB", "8MiB"]
        policies = ["lru"]
        [[workload]]
        name = "W"
        [[workload.source]]
        workload = "write,bs=64KiB,bytes=8MiB"
        size = "4MiB"
    "#;
    let folder = tempfile::tempdir().unwrap();
    let rows = run_in(folder.path(), text, 2).rows;
    let small = &row(&rows, "W", "lru", 1 << 20).tenants[0];
    assert_eq!((small.writes.requests, small.writes.pages, small.writes.hits), (128, 2048, 0));
    assert_eq!((small.pages_programmed, small.programs, small.dirty), (2048 - 256, 448, 256));
    // 16 pages of DRAM for each; all but the first 16 requests wait for 4 victims of 16 KiB, on
    // four channels at once: 200 us and 41 us of transfer at 400 MB/s.
    let wait = 112 * (200_000 + 40_960);
    assert_eq!(small.latency_ns.write.sum, 128 * 16_000 + wait);
    let large = &row(&rows, "W", "lru", 8 << 20).tenants[0];
    assert_eq!((large.writes.hits, large.writes.full_hits, large.overwritten), (1024, 64, 1024));
    assert_eq!((large.pages_programmed, large.dirty), (0, 1024));
    assert_eq!(large.writes.bytes_hit, 4 << 20);
}

#[test]
fn the_target_alone_is_the_target_without_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let mixed = run_in(&folder.path().join("mixed"), SMALL, 2).rows;
    let alone = row(&mixed, "A", "alone", 1 << 20);
    assert!(alone.bound && alone.tenants[0].writes.pages == 0);
    let lru = row(&mixed, "A", "lru", 1 << 20);
    assert_eq!(alone.tenants[1].reads.pages, lru.tenants[1].reads.pages);
    assert!(alone.tenants[1].reads.hits > lru.tenants[1].reads.hits);
    // Every prefix of the mix keeps 9:1, so all of it does.
    let pages = |row: &Row, at: usize| row.tenants[at].reads.pages + row.tenants[at].writes.pages;
    assert!(pages(lru, 0).abs_diff(9 * pages(lru, 1)) <= 16);
}

#[test]
fn bounds_bound() {
    let text = SMALL
        .replace(r#"["alone"]"#, r#"["alone", "min-alone", "min", "min-bypass", "min-w"]"#)
        .replace(r#"["lru"]"#, r#"["lru", "sieve"]"#)
        .replace("role = \"target\"", "role = \"target\"\nwarm_up = \"1MiB\"");
    let folder = tempfile::tempdir().unwrap();
    let [one, two] = [1, 2].map(|threads| {
        timeless(&run_in(&folder.path().join(threads.to_string()), &text, threads).rows)
    });
    assert_eq!(one, two);
    assert_eq!(one.len(), 2 * 2 * 7);
    for workload in ["A", "B"] {
        for size in [1 << 18, 1 << 20] {
            let of = |policy: &str| row(&one, workload, policy, size);
            let hits = |policy: &str| -> u64 {
                of(policy).tenants.iter().map(|t| t.reads.hits + t.writes.hits).sum()
            };
            let programmed = |policy: &str| -> u64 {
                of(policy).tenants.iter().map(|t| t.pages_programmed).sum()
            };
            let target = |policy: &str| {
                let tenant = of(policy).tenants.iter().find(|tenant| tenant.target).unwrap();
                (tenant.reads.hits + tenant.writes.hits, tenant.reads.pages + tenant.writes.pages)
            };
            for policy in ["lru", "sieve"] {
                assert!(hits(policy) < hits("min") && hits("min") <= hits("min-bypass"));
                assert!(target(policy).0 <= target("min-alone").0);
                assert!(programmed(policy) >= programmed("min-w") && programmed("min-w") > 0);
                assert_eq!(target(policy).1, target("min-alone").1);
            }
            assert!(target("alone").0 < target("min-alone").0);
        }
    }
}

#[test]
fn a_bound_that_needs_too_much_memory_is_a_row() {
    let text = SMALL.replace(r#"["alone"]"#, r#"["min"]"#);
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(folder.path(), 2);
    options.memory_bytes = 1 << 20;
    let rows = run(&study(&text), &options, &Control::default()).unwrap().rows;
    let error = row(&rows, "B", "min", 1 << 20).error.clone().unwrap();
    assert!(error.contains("expected at most 1MiB; raise --memory"), "{error}");
    assert!(row(&rows, "B", "lru", 1 << 20).error.is_none());
    // With more memory only the bounds that failed are computed.
    options.memory_bytes = 1 << 30;
    let again = run(&study(&text), &options, &Control::default()).unwrap();
    assert_eq!(again.found + again.computed, 8);
    assert!(again.rows.iter().all(|row| row.error.is_none()));
}

#[test]
fn a_warm_up_fills_the_buffer_and_counts_nothing() {
    let text = |warm_up: &str| {
        format!(
            r#"
            schema = "onefold.study/1"
            name = "warm"
            device = "16MiB"
            sizes = ["4MiB"]
            policies = ["lru", {{ policy = "lru", empty = true }}]
            [[workload]]
            name = "W"
            [[workload.source]]
            workload = "write,bs=64KiB,bytes=8MiB"
            size = "4MiB"
            warm_up = "{warm_up}"
            "#
        )
    };
    let folder = tempfile::tempdir().unwrap();
    let cold = run_in(&folder.path().join("cold"), &text("0"), 1).rows;
    let warm = run_in(&folder.path().join("warm"), &text("4MiB"), 1).rows;
    assert_eq!((cold[0].tenants[0].writes.pages, cold[0].tenants[0].writes.hits), (2048, 1024));
    assert_eq!((warm[0].tenants[0].writes.pages, warm[0].tenants[0].writes.hits), (1024, 1024));
    assert_eq!((warm[0].requests, warm[0].tenants[0].latency_ns.write.requests), (64, 64));
    assert_eq!(warm[1].policy, "lru, empty");
    assert_eq!((warm[1].tenants[0].writes.pages, warm[1].tenants[0].writes.hits), (1024, 0));
    assert_eq!(cold[1].tenants, cold[0].tenants, "nothing was there to be lost");
}

#[test]
fn a_point_that_cannot_be_built_is_a_row_and_the_rest_goes_on() {
    let text = SMALL
        .replace(r#"sizes = ["256KiB""#, r#"sizes = ["4KiB""#)
        .replace("device =", "flash_page = \"16KiB\"\ndevice =");
    let folder = tempfile::tempdir().unwrap();
    let summary = run_in(folder.path(), &text, 2);
    let failed: Vec<&Row> = summary.rows.iter().filter(|row| row.error.is_some()).collect();
    assert_eq!((summary.rows.len(), failed.len()), (8, 4));
    let error = failed[0].error.clone().unwrap();
    assert!(error.contains("4096 B") && error.contains("at least 16384 B"), "{error}");
    assert!(row(&summary.rows, "B", "lru", 1 << 20).requests > 0);
    let stored = fs::read(folder.path().join("results.jsonl")).unwrap();
    let again = run_in(folder.path(), &text, 2);
    assert_eq!((again.computed, again.found, again.rows), (4, 4, summary.rows));
    assert_eq!(fs::read(folder.path().join("results.jsonl")).unwrap(), stored);
    let status = status(&study(&text), &options(folder.path(), 1)).unwrap();
    assert_eq!((status.workloads[0].done, status.workloads[0].failed), (2, 2));
}

/// Lines of the results without CPU times.
fn lines(folder: &std::path::Path) -> Vec<Row> {
    let text = fs::read_to_string(folder.join("results.jsonl")).unwrap();
    let rows: Vec<Row> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    timeless(&rows)
}

#[test]
fn a_killed_study_goes_on_and_ends_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, killed) = (folder.path().join("whole"), folder.path().join("killed"));
    run_in(&whole, SMALL, 2);
    let (interrupt, last) = (AtomicBool::new(false), Cell::new(0));
    let stop = |progress: &onefold_study::Progress<'_>| {
        last.set(progress.number);
        interrupt.store(progress.number == 2, Ordering::Relaxed);
    };
    let control = Control { interrupt: Some(&interrupt), progress: Some(&stop) };
    let partial = run(&study(SMALL), &options(&killed, 2), &control).unwrap();
    assert_eq!((partial.partial, partial.computed, partial.left, last.get()), (true, 4, 4, 2));
    let json: serde_json::Value =
        serde_json::from_slice(&fs::read(killed.join("results.json")).unwrap()).unwrap();
    assert_eq!((&json["partial"], json["rows"].as_array().unwrap().len()), (&true.into(), 4));
    // What a kill in the middle of a write leaves.
    let path = killed.join("results.jsonl");
    let mut torn = fs::read_to_string(&path).unwrap();
    torn.push_str(r#"{"key":"012345","workl"#);
    fs::write(&path, torn).unwrap();
    let at_half = status(&study(SMALL), &options(&killed, 1)).unwrap();
    let left: Vec<usize> = at_half.workloads.iter().map(|workload| workload.left).collect();
    assert_eq!(left, [0, 4]);
    assert!(at_half.workloads[1].left_cpu_s.is_some());
    let summary = run_in(&killed, SMALL, 1);
    assert_eq!((summary.found, summary.computed), (4, 4));
    assert_eq!(lines(&killed), lines(&whole));
}

#[test]
fn labels_can_change_and_numbers_cannot() {
    let folder = tempfile::tempdir().unwrap();
    let first = run_in(folder.path(), SMALL, 2);
    let labels = SMALL
        .replace(r#"["lru"]"#, r#"[{policy = "lru", label = "LRU"}]"#)
        .replace("name = \"A\"", "name = \"W1\"");
    let second = run_in(folder.path(), &labels, 2);
    assert_eq!((second.found, second.computed), (8, 0));
    assert_eq!((second.rows[0].label.as_str(), second.rows[0].workload.as_str()), ("LRU", "W1"));
    assert_eq!(first.rows[0].tenants, second.rows[0].tenants);
    let changes = [
        "seed = 4",
        "seed = 3\nvolatile = true",
        "seed = 3\nlook_up = \"1us\"",
        "seed = 3\ncharge = \"none\"",
        "seed = 3\nentry = \"8KiB\"",
    ];
    for change in changes {
        let other = run_in(folder.path(), &SMALL.replace("seed = 3", change), 2);
        assert_eq!((other.found, other.computed), (0, 8), "{change}");
    }
    let status = status(&study(SMALL), &options(folder.path(), 1)).unwrap();
    assert_eq!((status.strangers, status.workloads[0].done), (40, 4));
}

/// Another version may compute other numbers; another commit of the same version must not.
#[test]
fn results_of_another_version_are_computed_again() {
    let folder = tempfile::tempdir().unwrap();
    run_in(folder.path(), SMALL, 2);
    for (version, commit, computed) in [("0.0.1", "def", 0), ("0.0.2", "abc", 8)] {
        let mut options = options(folder.path(), 2);
        options.program = Program { version: version.to_owned(), commit: commit.to_owned() };
        let summary = run(&study(SMALL), &options, &Control::default()).unwrap();
        assert_eq!(summary.computed, computed, "{version} {commit}");
    }
}

#[test]
fn a_part_of_a_workload_has_its_own_results() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(folder.path(), 2);
    options.scale = 0.1;
    options.only = vec!["A".to_owned()];
    let part = run(&study(SMALL), &options, &Control::default()).unwrap().rows;
    let whole = run_in(folder.path(), SMALL, 2).rows;
    let bytes = |row: &Row| row.tenants.iter().map(|t| t.reads.bytes + t.writes.bytes).sum::<u64>();
    let (part, whole) = (bytes(&part[0]), bytes(&whole[0]));
    assert!(part.abs_diff(whole / 10) <= 65_536, "{part} of {whole}");
}

#[test]
fn two_runs_do_not_write_one_folder() {
    let folder = tempfile::tempdir().unwrap();
    run_in(folder.path(), SMALL, 2);
    let file = fs::File::open(folder.path().join("results.jsonl")).unwrap();
    file.lock().unwrap();
    let second = run(&study(SMALL), &options(folder.path(), 1), &Control::default());
    assert!(matches!(second, Err(StudyError::Busy { .. })));
    drop(file);
    fs::write(folder.path().join("results.jsonl"), "{\"key\": 7}\n").unwrap();
    let damaged = Results::read(folder.path()).unwrap_err();
    assert!(damaged.to_string().contains("line 1") && damaged.help().is_some());
}

#[test]
fn parquet_has_a_row_per_point_and_tenant() {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    let folder = tempfile::tempdir().unwrap();
    run_in(folder.path(), SMALL, 2);
    let file = fs::File::open(folder.path().join("results.parquet")).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    assert_eq!(reader.metadata().file_metadata().num_rows(), 4 * 2 + 4);
    let first = reader.get_row_iter(None).unwrap().next().unwrap().unwrap();
    let of = |name: &str| {
        let field = first.get_column_iter().find(|(column, _)| *column == name).unwrap().1;
        field.to_string()
    };
    assert_eq!([of("workload"), of("tenant")], ["\"A\"", "\"stream\""]);
    assert_eq!(of("size_bytes"), "262144");
}
