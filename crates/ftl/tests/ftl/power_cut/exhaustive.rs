//! Every cut of every short history on tiny devices.

use onefold_ftl::FtlConfig;
use onefold_nand::{GeometrySpec, Span};
use onefold_testkit::{Power, budget};
use onefold_units::Rng;

use super::rig::{CUTS, Rig};
use crate::common::{Op, Setup, plain_config, spec, victim};

/// The devices of the exhaustive test: every way in which programs, metadata and frontiers differ.
fn small_devices() -> Vec<Setup> {
    let one = spec(12, 8, 4096, 4096);
    let two_dies = GeometrySpec { channels: 2, pages: 4, ..one };
    let per_die = GeometrySpec { channels: 2, blocks: 10, span: Span::Die, ..one };
    let wide = spec(12, 6, 8192, 4096);
    let wider = spec(14, 4, 16384, 4096);
    let plain = FtlConfig { gc_pacing: false, ..plain_config() };
    let pages = FtlConfig { metadata_pages: true, ..plain_config() };
    let shared = FtlConfig { separate_gc: false, ..plain_config() };
    let streams = FtlConfig { streams: 2, checkpoint: 0.1, ..plain };
    let small_cache = FtlConfig { map_cache_bytes: Some(4096), victim: victim("fifo"), ..shared };
    let devices = [
        (one, plain),
        (two_dies, pages),
        (per_die, small_cache),
        (one, FtlConfig { metadata_pages: true, ..streams }),
        (wide, pages),
        (wide, shared),
        (wider, plain),
        (wide, streams),
    ];
    let setups = devices.map(|(spec, config)| Setup::new(spec, config, 0.9).unwrap());
    setups.to_vec()
}

/// Every sequence of three operations, a cut at every media operation of them, in every way; then on,
/// and a second cut close after.
#[test]
fn every_cut_of_every_short_history() {
    let a = Op::Write { lpn: 0, stream: 0 };
    let b = Op::Write { lpn: 3, stream: 1 };
    let ops = [a, b, Op::Trim { lpn: 0, count: 2 }, Op::Flush, Op::Checkpoint];
    let mut rng = Rng::new(1);
    for setup in small_devices() {
        // Collection is at different places when the history begins.
        for overwrites in [0, 7] {
            let mut begin = Rig::new(&setup, Power::Device, 5);
            begin.fill();
            begin.overwrite(&mut rng, setup.units() + overwrites);
            assert!(begin.run(Op::Flush));
            // A small budget for the random tests thins this one out, too.
            let step = if budget(10_000) < 10_000 { 9 } else { 1 };
            for history in (0..ops.len().pow(3)).step_by(step) {
                let n = ops.len();
                let history = [ops[history % n], ops[history / n % n], ops[history / n / n]];
                cut_everywhere(&begin, &history, &mut rng);
            }
        }
    }
}

fn cut_everywhere(begin: &Rig, history: &[Op; 3], rng: &mut Rng) {
    for cut in CUTS {
        for after in 0.. {
            let mut rig = begin.clone();
            rig.arm(after, cut);
            let held = history.iter().all(|op| rig.run(*op));
            // In turn, power also fails in what comes first after recovery.
            let mut rig = rig.recover(rng, u32::from(after % 3 == 0));
            rig.arm(after % 5, CUTS[usize::from(after % 2 == 0)]);
            for lpn in 1..4 {
                if !rig.run(Op::Write { lpn, stream: 0 }) {
                    break;
                }
            }
            rig.recover(rng, 0);
            if held {
                break;
            }
        }
    }
}
