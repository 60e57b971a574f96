//! Passes over a trace: as many as asked, or until write amplification stays.

use std::fmt::Write;

use crate::common::{sets, setup};
use onefold_config::Load;
use onefold_sim::result::RunResult;
use onefold_sim::{Control, simulate};
use onefold_units::Rng;

/// A drive of 61 MiB, alone and under a volume.
const SMALL: [&str; 4] =
    ["geometry.channels=1", "geometry.ways=1", "geometry.blocks=280", "geometry.pages=64"];
const LAYERS: [&str; 2] = ["volume.mode=none", "volume.mode=log"];

/// 3,000 writes of 4 KiB at random in 40 MiB, one at a time, with a flush after each eighth.
fn trace() -> String {
    let mut rng = Rng::new(5);
    let mut text = "t_ns,op,sector512,nsect,flags,lat_ns\n".to_owned();
    for number in 0..3_000 {
        let (at, sector) = (number * 100_000, rng.below(10_240) * 8);
        let flush = number % 8 == 7;
        let request = if flush { "F,0,0".to_owned() } else { format!("W,{sector},8") };
        let _ = writeln!(text, "{at},{request},,60000");
    }
    text
}

fn run(more: &[&str]) -> RunResult {
    run_trace(&trace(), more)
}

fn run_trace(text: &str, more: &[&str]) -> RunResult {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("load.csv");
    std::fs::write(&path, text).unwrap();
    let setup = setup("s1", &sets(&[&SMALL[..], more].concat()), &Load::Trace(path));
    simulate(&setup, &Control::default()).unwrap_or_else(|error| panic!("{more:?}: {error}"))
}

#[test]
fn a_trace_is_replayed_as_often_as_asked() {
    for layer in LAYERS {
        for mode in ["run.mode=dependencies", "run.mode=closed", "run.mode=open"] {
            let fill = "precondition.fill=0";
            let (once, thrice) =
                (run(&[layer, mode, fill]), run(&[layer, mode, fill, "run.repeat=3"]));
            let passes = |result: &RunResult| result.trace.as_ref().unwrap().passes;
            assert_eq!((passes(&once), passes(&thrice)), (1, 3));
            assert_eq!(thrice.host.requests(), 3 * once.host.requests(), "{layer} {mode}");
            assert_eq!(thrice.host.write_pages, 3 * once.host.write_pages);
            let ratio = f64::from(u32::try_from(thrice.virtual_ns / 1000).unwrap())
                / f64::from(u32::try_from(once.virtual_ns / 1000).unwrap());
            assert!((2.5..4.5).contains(&ratio), "{layer} {mode}: {ratio} times as long");
        }
    }
}

/// A new drive fills before it is steady, and what is told is the last pass.
#[test]
fn the_last_pass_of_a_steady_drive_is_measured() {
    for layer in LAYERS {
        let used = ["precondition.range=0.8", "precondition.overwrite=1"];
        let empty = [layer, "precondition.fill=0"];
        let settled = run(&[&empty[..], &["run.until=steady"]].concat());
        let passes = settled.trace.as_ref().unwrap().passes;
        assert!((6..1000).contains(&passes), "{layer}: {passes} passes");
        let once = run(&empty);
        assert_eq!(settled.host.requests(), once.host.requests(), "{layer}: one pass is told");
        assert!(settled.flash.erases > 0 && once.flash.erases == 0, "{layer}");
        let aged = run(&[&[layer], &used[..], &["run.until=steady"]].concat());
        assert!(aged.trace.as_ref().unwrap().passes < 1000, "{layer}");
    }
}

/// `run.align=drop` was said to count what it leaves out, and no result had the number.
#[test]
fn requests_that_are_left_out_are_counted() {
    // Two of four writes are off the grid of 4 KiB, by their begin and by their end.
    let text = "t_ns,op,sector512,nsect,flags,lat_ns\n0,W,0,8,,9\n10,W,9,8,,9\n20,W,16,7,,9\n30,W,24,8,,9\n";
    for layer in LAYERS {
        let skipped = |more: &[&str]| {
            let result = run_trace(text, &[&[layer, "run.mode=open"], more].concat());
            (result.host.write_requests, result.trace.unwrap().skipped)
        };
        assert_eq!(skipped(&["run.align=drop"]), (2, 2), "{layer}");
        assert_eq!(skipped(&["run.align=drop", "run.repeat=3"]), (6, 6), "{layer}");
        assert_eq!(skipped(&["run.align=round"]), (4, 0), "{layer}");
    }
}
