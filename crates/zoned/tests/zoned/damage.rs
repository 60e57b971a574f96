//! Damage of metadata: what is read afterwards is right or an error, and repair makes it clean.

use onefold_testkit::for_each_seed;
use onefold_units::Rng;
use onefold_units::convert::index64;
use onefold_zoned::{Failure, Finding, Geometry, JournalMode, Options, Request, inspect};

use crate::crash::{World, small_copies};
use crate::disk::{BLOCK, Disks};
use crate::oracle::{Oracle, stamp};
use crate::rig::{Rig, ZONE, formatted, one_device, two_devices};
use crate::verify::verify;

/// What came of damage.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    served: u64,
    refused: u64,
    lossless: u64,
    lossy: u64,
}

fn appended() -> Options {
    Options {
        journal: JournalMode::Set,
        journal_ranges: std::iter::once(20..70).collect(),
        journal_hot: std::iter::once(20..22).collect(),
        ..small_copies()
    }
}

/// Damages a block of one of the metadata sets, each of two zones here.
fn damage(disks: &mut Disks, set: u64, block: u64, how: u64, rng: &mut Rng) {
    let set_blocks = 2 * u64::from(ZONE);
    let mut other = [0; BLOCK];
    disks.0[0].read(set * set_blocks + rng.below(28), &mut other);
    disks.0[0].scribble(set * set_blocks + block, |bytes| match how {
        0 => bytes[index64(rng.below(4096))] ^= 1 << rng.below(8),
        // Where most of what counts lies here.
        1 => bytes[index64(rng.below(96))] ^= 1 << rng.below(8),
        2 => {
            let at = index64(rng.below(8)) * 512;
            bytes[at..at + 512].fill(0);
        }
        3 => bytes.fill(0xFF),
        4 => bytes.fill(0),
        _ => *bytes = other,
    });
}

/// A volume whose history is known, closed in good order or cut off.
fn volume(seed: u64, rng: &mut Rng, options: &Options) -> (Disks, Geometry, Oracle) {
    let devices = if seed % 3 == 2 { one_device() } else { two_devices() };
    let (disks, geometry) = formatted(ZONE, &devices);
    let (rig, _) = Rig::mount(disks, &geometry, options.clone());
    let oracle = Oracle::new(rig.blocks());
    let mut world = World::new(rig, oracle, Rng::fork(seed, 1));
    for _ in 0..200 + rng.below(600) {
        world.step();
    }
    let disks = if rng.below(2) == 0 {
        world.rig.disks.cut(rng)
    } else {
        world.finish();
        world.rig.disks.clone()
    };
    (disks, geometry, world.oracle)
}

/// Reads everything: each block is as the model allows, or an error. Gives how many are not, with `given_up` also zeroes are good.
fn judge(rig: &mut Rig, oracle: &Oracle, given_up: bool) -> Result<(), String> {
    for lba in 0..oracle.blocks() {
        let tag = rig.submit(Request::Read { lba, blocks: 1 });
        rig.settle();
        let done = rig.dones.remove(&tag).expect("a read ends");
        if done.result.is_ok() {
            let found = stamp(&done.data, lba);
            if !given_up || found != 0 {
                oracle.clone().recovered(lba, found)?;
            }
        }
    }
    Ok(())
}

fn try_damage(seed: u64, sum: &mut Seen) {
    let mut rng = Rng::new(seed);
    let options = if seed.is_multiple_of(2) { small_copies() } else { appended() };
    let (mut disks, geometry, oracle) = volume(seed, &mut rng, &options);
    let (kind, set) = (rng.below(4), rng.below(2));
    let (block, how) = (rng.below(32), rng.below(6));
    damage(&mut disks, set, block, how, &mut rng);
    match kind {
        // The same block of both sets, or another one.
        0 => damage(&mut disks, 1 - set, block, how, &mut rng),
        1 => damage(&mut disks, 1 - set, rng.below(32), rng.below(6), &mut rng),
        _ => {}
    }
    match Rig::try_mount(disks.clone(), &geometry, options.clone()) {
        Err(_) => sum.refused += 1,
        Ok((mut rig, _)) => {
            sum.served += 1;
            rig.settle();
            judge(&mut rig, &oracle, false).unwrap();
        }
    }
    // Two root records that are gone are beyond repair.
    let Ok(found) = inspect(&mut disks, &geometry) else { return };
    if found.findings.iter().any(|finding| !finding.is_repairable()) {
        return;
    }
    let is_lossy = found.findings.iter().any(Finding::is_lossy);
    *(if is_lossy { &mut sum.lossy } else { &mut sum.lossless }) += 1;
    let repairing = Options { give_up_lost: true, ..options };
    let (mut rig, _) = Rig::mount(disks, &geometry, repairing);
    rig.settle();
    judge(&mut rig, &oracle, is_lossy).unwrap();
    rig.volume.close(rig.now);
    rig.settle();
    assert!(rig.volume.is_closed());
    verify(&mut rig.disks, &geometry).unwrap();
    let found = inspect(&mut rig.disks, &geometry).unwrap();
    assert_eq!(found.findings, [], "repair makes it clean");
}

/// A block that differed between the two sets was noticed and served all the same: wrong blocks were given out.
#[test]
fn what_is_read_from_damaged_metadata_is_right_or_an_error() {
    let mut seen = Seen::default();
    for_each_seed(("onefold-zoned", "zoned", "damaged_metadata"), 300, |seed| {
        try_damage(seed, &mut seen);
    });
    if seen.served + seen.refused > 200 {
        assert!(seen.served > seen.refused && seen.refused > 5 && seen.lossy > 5, "{seen:?}");
    }
}

/// A damaged block of the first set comes from the second one, whichever it is, and nobody notices.
#[test]
fn a_damaged_block_comes_from_the_other_set() {
    let mut rig = Rig::new(&two_devices(), Options::default());
    rig.fill_chunks(0..8);
    rig.advance(30_000_000_000);
    rig.flush_now();
    let geometry = rig.volume.geometry().clone();
    for set in 0..2 {
        for block in 1..u64::from(rig.volume.layout().metadata_blocks) {
            let mut disks = rig.disks.clone();
            disks.0[0].scribble((set * 2 * u64::from(ZONE)) + block, |bytes| bytes.fill(0x55));
            let (mut open, _) = Rig::mount(disks, &geometry, Options::default());
            for chunk in 0..8 {
                assert_eq!(open.read_now(chunk * u64::from(ZONE), 2), [1 + chunk, 0]);
            }
            verify(&mut open.disks, &geometry).unwrap();
        }
    }
}

/// Metadata as the kernel target writes it has no checksums: what contradicts itself was noticed and served all the same.
#[test]
fn a_chunk_that_contradicts_itself_is_an_error_until_it_is_repaired() {
    let mut rig = Rig::new(&two_devices(), Options::default());
    rig.write_now(0, 1, 4);
    rig.advance(30_000_000_000);
    rig.write_now(0, 2, 1);
    rig.write_now(u64::from(ZONE), 3, 1);
    rig.flush_now();
    let (data, buffer) = (rig.data(0).unwrap(), rig.buffer(0).unwrap());
    let geometry = rig.volume.geometry().clone();
    let mut disks = rig.disks.clone();
    let set_blocks = 2 * u64::from(ZONE);
    for set in [0, set_blocks] {
        disks.0[0].scribble(set + 2 + u64::from(data), |bits| bits[0] |= 1);
    }
    crate::verify::forget_sums(&mut disks, set_blocks);
    assert_ne!(data, buffer);
    let (mut open, recovery) = Rig::mount(disks.clone(), &geometry, Options::default());
    assert_eq!(recovery.damaged_chunks, 1);
    let tag = open.submit(Request::Read { lba: 0, blocks: 1 });
    open.advance(60_000_000_000);
    assert_eq!(open.result(tag), Some(Err(Failure::Damaged)));
    assert_eq!(open.read_now(u64::from(ZONE), 1), [3], "other chunks have nothing to do with it");
    let repairing = Options { give_up_lost: true, ..Options::default() };
    let (mut open, _) = Rig::mount(disks, &geometry, repairing);
    assert_eq!(open.read_now(0, 5), [0, 1, 1, 1, 0]);
    open.volume.close(open.now);
    open.settle();
    assert_eq!(inspect(&mut open.disks, &geometry).unwrap().findings, []);
}
