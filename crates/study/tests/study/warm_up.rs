//! Warm-ups that several workloads share change no number.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{options, run_in, study, timeless};
use onefold_study::{Control, Options, Progress, Row, run};

/// A store or a stream, warmed up, beside another volume in each workload; `D` warms up longer.
/// AOI asks what is mapped, and its small chunks do not fit the small buffer.
fn text(warming: &str, warm_up: &str, longer: &str) -> String {
    let workload = |(name, share, volume, warm_up)| {
        format!(
            r#"
            [[workload]]
            name = "{name}"
            source = [
                {{ workload = "{warming}", share = {share}, warm_up = {warm_up}, size = "282GiB" }},
                {{ workload = "{volume}", share = 1, offset = "282GiB", size = "8GiB", role = "target" }},
            ]
            "#
        )
    };
    let head = r#"
        schema = "onefold.study/1"
        name = "shared"
        device = "300GiB"
        sizes = ["1MiB", "8MiB"]
        policies = ["lru", "arc", "s3-fifo", "aoi", "aoi:chunk=4KiB"]
        bounds = ["alone", "min-alone", "min", "min-w"]
        "#;
    let workloads = [
        ("A", 9, "like-prxy_0-pages,bytes=1GiB", warm_up),
        ("B", 5, "like-hm_0-pages,bytes=1GiB", warm_up),
        ("C", 3, "randrw,bs=4KiB,dist=zipf:1.0,requests=3k", warm_up),
        ("D", 3, "like-hm_0-pages,bytes=1GiB", longer),
    ];
    head.to_owned() + &workloads.map(workload).concat()
}

const STREAM: &str = "randrw,bs=64KiB,dist=zipf:1.0,range=0-64MiB,requests=4k";

/// On a small device, whose bounds take little time.
fn stream() -> String {
    text(STREAM, r#""96MiB""#, r#""100MiB""#)
        .replace("300GiB", "1GiB")
        .replace("\"1MiB\"", "\"64KiB\"")
        .replace("282GiB", "512MiB")
        .replace("8GiB", "256MiB")
        .replace("like-prxy_0-pages,bytes=1GiB", "randrw,bs=8KiB,dist=zipf:1.0,requests=8k")
        .replace("like-hm_0-pages,bytes=1GiB", "randrw,bs=4KiB,requests=9k")
}

/// The rows of workloads that are run one by one.
fn alone(folder: &Path, text: &str, names: &[&str]) -> Vec<Row> {
    let one = |name: &&str| {
        let only = vec![(*name).to_owned()];
        let options = Options { only, ..options(&folder.join(name), 2) };
        run(&study(text), &options, &Control::default()).unwrap().rows
    };
    names.iter().flat_map(one).collect()
}

#[test]
fn sharing_a_warm_up_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let text = stream();
    let alone = timeless(&alone(folder.path(), &text, &["A", "B", "C", "D"]));
    assert_eq!(alone.len(), 4 * 2 * 9);
    assert!(alone.iter().any(|row| row.error.is_some()));
    for threads in [1, 2, 5] {
        let folder = folder.path().join(threads.to_string());
        assert!(timeless(&run_in(&folder, &text, threads).rows) == alone, "{threads} threads");
    }
}

/// The same generator warms up at the start of the device, behind its neighbour, and as the target.
#[test]
fn warm_ups_that_differ_in_place_or_target_are_not_shared() {
    let workload = |(name, (at, role), (other_at, other_role))| {
        format!(
            r#"
            [[workload]]
            name = "{name}"
            source = [
                {{ workload = "{STREAM}", share = 3, warm_up = "96MiB", offset = "{at}", size = "512MiB", role = "{role}" }},
                {{ workload = "randrw,bs=4KiB,dist=zipf:1.0,scatter=false,requests=3k", share = 1, offset = "{other_at}", size = "512MiB", role = "{other_role}" }},
            ]
            "#
        )
    };
    let head = r#"
        schema = "onefold.study/1"
        name = "places"
        device = "1GiB"
        sizes = ["1MiB"]
        policies = ["lru", "aoi:chunk=64KiB"]
        bounds = ["alone", "min-alone"]
        "#;
    let workloads = [
        ("A", ("0B", "background"), ("512MiB", "target")),
        ("place", ("512MiB", "background"), ("0B", "target")),
        ("target", ("0B", "target"), ("512MiB", "background")),
    ];
    let text = head.to_owned() + &workloads.map(workload).concat();
    let folder = tempfile::tempdir().unwrap();
    let alone = timeless(&alone(folder.path(), &text, &workloads.map(|(name, ..)| name)));
    assert_eq!(alone.len(), 3 * 4);
    assert!(timeless(&run_in(&folder.path().join("together"), &text, 2).rows) == alone);
}

#[test]
fn a_load_phase_is_shared() {
    let folder = tempfile::tempdir().unwrap();
    let load = text("lsm-run,bytes=256MiB,warmup=4GiB", r#""load""#, r#""1GiB""#)
        .replace(r#"["lru", "arc", "s3-fifo", "aoi", "aoi:chunk=4KiB"]"#, r#"["aoi"]"#)
        .replace(r#"["1MiB", "8MiB"]"#, r#"["8MiB"]"#)
        .replace(r#"["alone", "min-alone", "min", "min-w"]"#, r#"["alone", "min"]"#);
    let alone = timeless(&alone(folder.path(), &load, &["A", "B", "C", "D"]));
    let together = timeless(&run_in(&folder.path().join("together"), &load, 2).rows);
    assert!(together == alone);
    assert!(together.iter().all(|row| row.error.is_none() && row.requests > 1000));
}

/// The first of three workloads with one warm-up has ended when the run is interrupted: it stays, and the others go on from a new
/// warm-up. The second one gives up the block that it is in, so that the run ends soon.
#[test]
fn an_interrupted_study_warms_up_again_and_ends_the_same() {
    let folder = tempfile::tempdir().unwrap();
    // Without points that fail: they are tried again, by the first workload, too.
    let text = stream().replace("\"64KiB\"", "\"1MiB\"");
    let (interrupt, warming) = (AtomicBool::new(false), RefCell::new(BTreeSet::new()));
    let watch = |progress: &Progress<'_>| {
        if progress.bytes == 0 {
            warming.borrow_mut().insert(progress.number);
        }
    };
    let stop = |progress: &Progress<'_>| {
        watch(progress);
        interrupt.store(progress.number == 2 && progress.bytes > 0, Ordering::Relaxed);
    };
    let (killed, options) = (folder.path().join("killed"), |at: &Path| options(at, 2));
    let control = Control { interrupt: Some(&interrupt), progress: Some(&stop) };
    let partial = run(&study(&text), &options(&killed), &control).unwrap();
    assert_eq!((partial.computed, partial.left, partial.partial), (18, 54, true));
    let control = Control { interrupt: None, progress: Some(&watch) };
    let rest = run(&study(&text), &options(&killed), &control).unwrap();
    let whole = run(&study(&text), &options(&folder.path().join("whole")), &control).unwrap();
    assert!(timeless(&rest.rows) == timeless(&whole.rows));
    // C is never warmed up by itself, and D is not like the others.
    assert_eq!(*warming.borrow(), BTreeSet::from([1, 2, 4]));
}
