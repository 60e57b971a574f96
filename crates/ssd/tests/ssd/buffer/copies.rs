//! A device that sees copies: which contents share a page, and which never do (writeonce.md, section 2).

use onefold_ftl::{DedupScope, Layout, RemapConfig, RemapScheme, SavedPages};
use onefold_nand::{At, NullMedia, Work};
use onefold_ssd::{Command, DedupConfig, HashKind, Hasher, Payload, Ssd, SsdConfig, ZEROES};
use onefold_testkit::{CutMedia, small_policies};
use onefold_units::convert::{index64, low8, narrow, u64_from};
use onefold_units::{Cause, Lpn, Nanos, Op, Ppn, Rng};

use super::common::{Rig, config, geometry};

const UNIT: u64 = 4096;

fn device(scope: DedupScope, hash: HashKind) -> SsdConfig {
    let mut config = config(small_policies()[0], geometry(4096, 4096), 0);
    config.ftl.fingerprints = 64;
    config.ftl.dedup_scope = scope;
    let scheme = RemapScheme::Lh;
    config.ftl.remap =
        RemapConfig { scheme, log_bytes: 16 << 10, segment_bytes: 128, ..RemapConfig::OFF };
    config.dedup = DedupConfig { hash: Some(hash), ..DedupConfig::DEFAULT };
    config
}

fn media(config: &SsdConfig) -> CutMedia {
    let layout = Layout::new(&config.geometry, &config.ftl).unwrap();
    CutMedia::powered(&config.geometry, layout.nvram_bytes())
}

fn rig(config: &SsdConfig) -> Rig<CutMedia> {
    Rig::new(Ssd::new(*config, media(config)).unwrap())
}

fn page(letter: u8) -> Vec<u8> {
    vec![letter; index64(UNIT)]
}

impl Rig<CutMedia> {
    fn put(&mut self, unit: u64, letter: u8) {
        self.now += 1_000_000;
        self.write(unit * UNIT, &page(letter), false).unwrap();
    }

    /// What the host finds in a unit; `None` if the device says that it cannot be read.
    fn get(&mut self, unit: u64) -> Option<Vec<u8>> {
        self.now += 1_000_000;
        match self.read(unit * UNIT, UNIT) {
            Ok(data) => Some(data),
            Err(error) => {
                assert!(error.is_unreadable(), "{error}");
                None
            }
        }
    }

    fn saved(&self) -> SavedPages {
        self.ssd.ftl().stats().saved
    }

    fn programs(&self) -> u64 {
        self.ssd.ftl().programs().of(Cause::User)
    }

    /// Whether the FTL can read a unit. The host has no part in it.
    fn is_readable(&mut self, unit: u64) -> bool {
        let now = Nanos::new(self.now);
        let at = At { now, ready: now, work: Work::Background };
        let mut data = page(0);
        self.ssd.ftl_mut().read(at, Lpn::new(narrow(unit)), 4096, Cause::Gc, &mut data).is_ok()
    }

    /// Damages the page that holds a unit.
    fn damage(&mut self, unit: u64) {
        let slots = narrow(self.ssd.config().geometry.total_slots());
        for slot in (0..slots).map(Ppn::new) {
            if !self.ssd.ftl_mut().nand_mut().media_mut().inner_mut().corrupt(slot, 99) {
                continue;
            }
            if !self.is_readable(unit) {
                return;
            }
            self.ssd.ftl_mut().nand_mut().media_mut().inner_mut().corrupt(slot, 99);
        }
        panic!("no page holds unit {unit}");
    }
}

#[test]
fn a_copy_of_what_was_read_shares_its_page() {
    for scope in [DedupScope::Reads, DedupScope::All] {
        let mut rig = rig(&device(scope, HashKind::Blake3));
        rig.put(0, 1);
        assert_eq!(rig.get(0), Some(page(1)));
        rig.put(50, 1);
        assert_eq!(rig.saved(), SavedPages { copy_read: 1, ..SavedPages::default() });
        assert_eq!(rig.programs(), 1);
        assert_eq!(rig.get(50), Some(page(1)));
        // They are two units all the same.
        rig.put(0, 2);
        assert_eq!((rig.get(0), rig.get(50)), (Some(page(2)), Some(page(1))));
    }
    let mut rig = rig(&device(DedupScope::Writes, HashKind::Blake3));
    rig.put(0, 1);
    rig.put(50, 1);
    assert_eq!(rig.saved(), SavedPages { copy_write: 1, ..SavedPages::default() });
}

/// F2FS writes its checkpoints twice, mkfs its superblocks many times, btrfs its metadata.
#[test]
fn what_is_written_twice_and_never_read_has_two_pages() {
    let mut rig = rig(&device(DedupScope::Reads, HashKind::Blake3));
    for letter in 1..20 {
        rig.put(2 * u64::from(letter), letter);
        rig.put(2 * u64::from(letter) + 1, letter);
    }
    assert_eq!((rig.programs(), rig.saved().total()), (38, 0));
    rig.damage(2);
    assert_eq!((rig.get(2), rig.get(3)), (None, Some(page(1))));
}

/// btrfs that moves a chunk of profile DUP reads one copy and writes two.
#[test]
fn of_two_copies_of_one_read_the_second_is_programmed() {
    let mut rig = rig(&device(DedupScope::Reads, HashKind::Blake3));
    rig.put(0, 1);
    rig.put(1, 1);
    assert!(rig.get(0).is_some());
    rig.put(60, 1);
    rig.put(61, 1);
    assert_eq!((rig.programs(), rig.saved().copy_read), (3, 1));
    // The chunk before goes.
    rig.trim(0, 2 * UNIT).unwrap();
    rig.damage(60);
    assert_eq!((rig.get(60), rig.get(61)), (None, Some(page(1))));
}

/// A repair reads the bad copy, then the good one, and writes what it found over the bad one.
#[test]
fn a_repaired_copy_has_a_page_of_its_own() {
    let mut rig = rig(&device(DedupScope::Reads, HashKind::Blake3));
    rig.put(0, 1);
    rig.put(1, 9);
    assert!(rig.get(1).is_some() && rig.get(0).is_some());
    rig.put(1, 1);
    assert_eq!((rig.programs(), rig.saved().total()), (3, 0));
    rig.damage(0);
    assert_eq!((rig.get(0), rig.get(1)), (None, Some(page(1))));
    // So it is where the device could not read the copy.
    rig.put(0, 3);
    rig.put(1, 3);
    rig.damage(1);
    assert!(rig.get(1).is_none() && rig.get(0).is_some());
    rig.put(1, 3);
    rig.damage(0);
    assert_eq!((rig.get(0), rig.get(1)), (None, Some(page(3))));
}

/// A log-structured file system moves what it reads, and the place of what moved takes what moves next. Such a place was
/// taken for one that is repaired: a cleaning of F2FS saved 51 % of its programs instead of 93 %.
#[test]
fn the_old_place_of_what_moved_takes_copies() {
    let read = |letters: u8| {
        let mut rig = rig(&device(DedupScope::Reads, HashKind::Blake3));
        (1..=letters).for_each(|letter| rig.put(u64::from(letter) - 1, letter));
        (0..u64::from(letters)).for_each(|unit| assert!(rig.get(unit).is_some()));
        rig
    };
    let mut rig = read(3);
    rig.put(50, 1);
    rig.put(0, 2);
    rig.put(1, 3);
    assert_eq!((rig.programs(), rig.saved().copy_read), (3, 3));
    assert_eq!([50, 0, 1].map(|unit| rig.get(unit)), [1, 2, 3].map(|letter| Some(page(letter))));
    // What moved was programmed, as its new place was read as well.
    let mut rig = read(3);
    rig.put(0, 2);
    rig.put(1, 3);
    assert_eq!((rig.programs(), rig.saved().copy_read), (4, 1));
    // Read again since, it may be a copy that is repaired.
    let mut rig = read(2);
    rig.put(50, 1);
    assert!(rig.get(0).is_some());
    rig.put(0, 2);
    assert_eq!((rig.programs(), rig.saved().copy_read), (3, 1));
}

#[test]
fn superblocks_of_file_systems_are_never_shared() {
    for scope in DedupScope::ALL {
        let mut rig = rig(&device(scope, HashKind::Blake3));
        let mut superblock = page(1);
        superblock[56..58].copy_from_slice(&0xEF53_u16.to_le_bytes());
        for unit in [0, 40, 80] {
            rig.write(unit * UNIT, &superblock, false).unwrap();
            assert!(rig.get(unit).is_some());
        }
        assert_eq!((rig.programs(), rig.saved().total()), (3, 0), "{scope:?}");
    }
}

/// The index says that another content has this fingerprint: a weak hash is not taken at its word.
#[test]
fn a_collision_of_a_weak_hash_is_noticed() {
    let config = device(DedupScope::Reads, HashKind::Xxh3);
    let mut rig = rig(&config);
    rig.put(0, 1);
    let print = Hasher::new(HashKind::Xxh3, config.dedup.key).of(&page(2));
    rig.ssd.ftl_mut().note_content(Lpn::new(0), print);
    rig.put(50, 2);
    assert_eq!((rig.programs(), rig.saved().total()), (2, 0));
    assert_eq!((rig.get(0), rig.get(50)), (Some(page(1)), Some(page(2))));
}

/// The page that was read is damaged when its copy is written. With a weak hash the comparison finds
/// out, and the copy is programmed; with a strong one both share the loss. Nobody reads other data.
#[test]
fn a_damaged_source_is_an_error_and_never_other_data() {
    for (hash, copy) in [(HashKind::Xxh3, Some(page(1))), (HashKind::Blake3, None)] {
        let mut rig = rig(&device(DedupScope::Reads, hash));
        rig.put(0, 1);
        assert!(rig.get(0).is_some());
        rig.damage(0);
        rig.put(50, 1);
        assert_eq!((rig.get(0), rig.get(50)), (None, copy), "{}", hash.name());
    }
    // Damage after both share it.
    let mut rig = rig(&device(DedupScope::Reads, HashKind::Xxh3));
    rig.put(0, 1);
    assert!(rig.get(0).is_some());
    rig.put(50, 1);
    assert_eq!(rig.saved().copy_read, 1);
    rig.damage(0);
    assert_eq!((rig.get(0), rig.get(50)), (None, None));
}

/// Two units are programmed together. A unit held A, then B, which waited for its page, and got A again:
/// the page of the first A was shared after the program of B had made it garbage.
#[test]
fn a_unit_gets_back_what_its_staged_content_replaced() {
    let (a, b) = (1, 2);
    for scope in [DedupScope::Writes, DedupScope::All] {
        let config =
            SsdConfig { geometry: geometry(8192, 4096), ..device(scope, HashKind::Blake3) };
        let mut rig = rig(&config);
        rig.put(0, a);
        rig.put(1, 9);
        rig.put(0, b);
        rig.put(0, a);
        rig.ssd.ftl().check().unwrap();
        assert_eq!((rig.get(0), rig.get(1)), (Some(page(a)), Some(page(9))));
    }
}

/// Two units are programmed together. A unit held A, was read, and holds B before its page is programmed:
/// what the host read is no source any more. Nothing compares bytes, as the hash is strong.
#[test]
fn what_was_replaced_in_its_staged_page_is_no_source() {
    let (a, b) = (1, 2);
    for scope in DedupScope::ALL {
        let config =
            SsdConfig { geometry: geometry(8192, 4096), ..device(scope, HashKind::Blake3) };
        let mut rig = rig(&config);
        rig.put(0, a);
        assert_eq!(rig.get(0), Some(page(a)));
        rig.put(0, b);
        for unit in 1..4 {
            rig.put(unit, a);
        }
        rig.ssd.ftl().check().unwrap();
        for (unit, letter) in [b, a, a, a].into_iter().enumerate() {
            assert!(rig.get(u64_from(unit)) == Some(page(letter)), "{scope:?}: unit {unit}");
        }
    }
}

#[test]
fn zeroes_are_unmapped_and_counted() {
    for slots in [0, 32] {
        let mut config = config(small_policies()[0], geometry(4096, 4096), slots);
        config.unmap_zeroes = true;
        let mut rig = rig(&config);
        rig.put(0, 1);
        rig.put(1, 1);
        rig.flush().unwrap();
        rig.put(0, 0);
        rig.put(7, 0);
        rig.flush().unwrap();
        let programs = rig.programs();
        assert_eq!((programs, rig.saved().zero), (2, 2), "{slots} slots");
        assert_eq!(
            (rig.get(0), rig.get(1), rig.get(7)),
            (Some(page(0)), Some(page(1)), Some(page(0)))
        );
        let (ssd, _) = Ssd::recover(config, rig.ssd.into_media()).unwrap();
        let mut rig = Rig::new(ssd);
        assert!(!rig.ssd.ftl().is_mapped(Lpn::new(0)));
        assert_eq!((rig.get(0), rig.get(1)), (Some(page(0)), Some(page(1))));
        rig.put(0, 5);
        assert_eq!(rig.get(0), Some(page(5)));
    }
    let mut rig = rig(&config(small_policies()[0], geometry(4096, 4096), 0));
    rig.put(0, 0);
    assert_eq!((rig.programs(), rig.saved().zero), (1, 0), "zeroes are data like others");
}

/// The content that the simulator names where the served device has bytes.
fn id(letter: u8) -> u128 {
    if letter == 0 { ZEROES } else { letter.into() }
}

/// The same commands on a device with bytes and on one that is told the contents: the same pages are
/// programmed and saved.
#[test]
fn both_clocks_save_the_same_pages() {
    let mut all = SavedPages::default();
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let scope = DedupScope::ALL[index64(seed % 3)];
        let mut config = device(scope, HashKind::Blake3);
        config.unmap_zeroes = rng.below(2) == 0;
        config.ftl.fingerprints = 1 + narrow(rng.below(8));
        let mut served = rig(&config);
        let mut simulated = Rig::new(Ssd::new(config, NullMedia).unwrap());
        for _ in 0..400 {
            served.now += 1_000_000;
            simulated.now = served.now;
            let (unit, letter) = (rng.below(100), low8(rng.below(12)));
            let write = Command::new(Op::Write, unit * UNIT, UNIT);
            match rng.below(10) {
                0..5 => {
                    served.write(unit * UNIT, &page(letter), false).unwrap();
                    simulated.submit(&write, Payload::Contents(&[id(letter)])).unwrap();
                }
                5 => {
                    served.trim(unit * UNIT, UNIT).unwrap();
                    simulated.trim(unit * UNIT, UNIT).unwrap();
                }
                _ => {
                    served.read(unit * UNIT, UNIT).unwrap();
                    simulated.latency(Op::Read, unit * UNIT, UNIT);
                }
            }
            let counted = simulated.ssd.ftl().stats();
            assert_eq!(served.saved(), counted.saved, "seed {seed}, {scope:?}");
            assert_eq!(served.programs(), counted.programs.of(Cause::User), "seed {seed}");
        }
        all = all.plus(&served.saved());
    }
    assert!(all.iter().all(|(_, pages)| pages > 100), "{all:?}: too few to show anything");
}

/// 1 ms per page in one unit. A read is answered before its hash is done, until 64 pages wait; a write
/// waits for its own.
#[test]
fn reads_wait_for_hash_units_when_their_queue_is_full() {
    let device = |scope| {
        let mut config = device(scope, HashKind::Blake3);
        config.dedup.hash_time = Nanos::new(1_000_000);
        Ssd::new(config, NullMedia).unwrap()
    };
    let mut ssd = device(DedupScope::Reads);
    let contents: Vec<u128> = (1..=100).collect();
    let command = |op| Command::new(op, 0, 100 * UNIT);
    ssd.submit(Nanos::ZERO, &command(Op::Write), Payload::Contents(&contents)).unwrap();
    let late = Nanos::new(1_000_000_000);
    let read = |pages: u64| Command::new(Op::Read, 0, pages * UNIT);
    let mut plain = device(DedupScope::Writes);
    plain.submit(Nanos::ZERO, &command(Op::Write), Payload::Contents(&contents)).unwrap();
    let without = plain.submit(late, &read(30), Payload::None).unwrap().at;
    assert_eq!(ssd.submit(late, &read(30), Payload::None).unwrap().at, without);
    let before = ssd.dedup_stats().hashed_pages;
    let later = Nanos::new(2_000_000_000);
    let waited = ssd.submit(later, &read(100), Payload::None).unwrap().at;
    assert_eq!(ssd.dedup_stats().hashed_pages - before, 100);
    let unhashed = plain.submit(later, &read(100), Payload::None).unwrap().at;
    assert!(waited > unhashed, "{waited:?} {unhashed:?}");
    assert!(
        waited < later + Nanos::new(100 * 1_000_000),
        "it waits for the queue, not for its hash"
    );
    // What is not stored has no content to hash.
    let before = ssd.dedup_stats().hashed_pages;
    for op in [Op::Trim, Op::Read] {
        ssd.submit(later, &Command::new(op, 0, UNIT), Payload::None).unwrap();
    }
    assert_eq!(ssd.dedup_stats().hashed_pages, before);
}
