//! The journal in a zone of its own (zoned.md, section 4).

use onefold_zoned::{Action, IoKind, JournalMode, Options, Sent, ZoneKind};

use crate::rig::{Rig, SECOND, ZONE, two_devices};

/// The journal is the second half of chunk 1 and the first one of chunk 2.
fn options(journal: JournalMode) -> Options {
    Options { journal, journal_ranges: std::iter::once(24..40).collect(), ..Options::default() }
}

#[test]
fn the_chunk_of_the_first_journal_write_stays_where_it_is() {
    let mut rig = Rig::new(&two_devices(), options(JournalMode::One));
    rig.fill_chunks(0..1);
    rig.write_now(30, 50, 1);
    let zone = rig.data(1);
    rig.advance(30 * SECOND);
    assert!(rig.is_sequential(0));
    assert_eq!(rig.data(1), zone, "reclaim leaves it alone");
    assert_eq!(rig.sent(0, Sent::Journal), 1);
    rig.write_now(33, 51, 2);
    assert_eq!(rig.volume.stats().journal_outside, 2, "only one chunk is pinned");
    rig.advance(30 * SECOND);
    assert!(rig.is_sequential(2));
    assert_eq!(rig.sent(1, Sent::JournalCopied), 2);
    rig.discard_now(16, 16);
    assert_eq!(rig.data(1), zone, "not even without valid blocks it is given away");
}

#[test]
fn without_the_mode_the_journal_is_copied_and_counted() {
    let mut rig = Rig::new(&two_devices(), options(JournalMode::Off));
    rig.write_now(20, 50, 8);
    rig.advance(30 * SECOND);
    assert!(rig.is_sequential(1));
    let sent = [Sent::User, Sent::Journal].map(|cause| rig.sent(0, cause));
    assert_eq!(sent, [4, 4]);
    let copied = [Sent::RndData, Sent::JournalCopied].map(|cause| rig.sent(1, cause));
    assert_eq!(copied, [4, 4]);
}

/// What mkfs wrote was reclaimed before the first journal write: the chunk moves to a conventional zone once.
#[test]
fn a_journal_in_a_sequential_zone_moves_to_a_conventional_one_once() {
    let mut rig = Rig::new(&two_devices(), options(JournalMode::One));
    rig.write_now(16, 1, 3);
    rig.advance(30 * SECOND);
    assert!(rig.is_sequential(1));
    for op in 2..10 {
        rig.write_now(23 + op, op, 1);
    }
    assert!(!rig.is_sequential(1));
    assert_eq!((rig.sent(0, Sent::SeqData), rig.sent(0, Sent::JournalCopied)), (3, 0));
    assert_eq!(rig.volume.stats().reclaims(Action::SeqData).completed, 1);
    rig.advance(30 * SECOND);
    assert!(!rig.is_sequential(1));
    assert_eq!(rig.read_now(16, 12), [1, 1, 1, 0, 0, 0, 0, 0, 0, 2, 3, 4]);
}

#[test]
fn the_pin_is_found_again_when_the_volume_is_opened() {
    let mut rig = Rig::new(&two_devices(), options(JournalMode::One));
    rig.write_now(24, 1, 1);
    rig.flush_now();
    let geometry = rig.volume.geometry().clone();
    let disks = rig.disks.clone();
    let (mut rig, _) = Rig::mount(disks, &geometry, options(JournalMode::One));
    rig.advance(30 * SECOND);
    assert!(!rig.is_sequential(1));
    let (mut rig, _) = Rig::mount(rig.disks, &geometry, options(JournalMode::Off));
    rig.advance(30 * SECOND);
    assert!(rig.is_sequential(1));
}

/// A data zone without valid blocks is left over when a volume with a pinned journal is opened without one.
#[test]
fn a_data_zone_without_valid_blocks_is_freed() {
    let mut rig = Rig::new(&two_devices(), options(JournalMode::One));
    rig.write_now(24, 1, 1);
    rig.discard_now(24, 1);
    rig.flush_now();
    let geometry = rig.volume.geometry().clone();
    let (mut rig, _) = Rig::mount(rig.disks, &geometry, options(JournalMode::Off));
    assert_eq!(rig.volume.free_zones(ZoneKind::Cache), 5);
    rig.advance(30 * SECOND);
    assert_eq!(rig.volume.stats().reclaims(Action::Empty).completed, 1);
    assert_eq!(rig.volume.free_zones(ZoneKind::Cache), 6);
    assert_eq!(rig.read_now(u64::from(ZONE), ZONE), [0; 16]);
}

/// Reclaim does not even begin with it: a zone that went and came back is copied each time.
#[test]
fn a_pinned_zone_is_never_copied() {
    let mut rig = Rig::new(&two_devices(), options(JournalMode::One));
    rig.write_now(24, 1, 4);
    for _ in 0..5 {
        rig.advance(11 * SECOND);
    }
    let started = Action::ALL.map(|action| rig.volume.stats().reclaims(action).started);
    assert_eq!(started, [0; 4], "{:?}", Action::ALL);
    assert_eq!([0, 1].map(|device| rig.sent(device, Sent::JournalCopied)), [0, 0]);
}

/// The one move of a journal out of a sequential zone goes on, whoever wants the chunk meanwhile.
#[test]
fn the_move_of_a_journal_is_not_given_up_for_the_host() {
    let mut rig = Rig::new(&two_devices(), Options { copy_blocks: 1, ..options(JournalMode::One) });
    for block in [16, 18, 20, 22] {
        rig.write_now(block, 1, 1);
    }
    rig.advance(30 * SECOND);
    assert!(rig.is_sequential(1));
    rig.write(25, 2, 1);
    // The first of its pieces is on its way.
    rig.run_until(|io| io.kind == IoKind::Read && io.device == 1);
    let tag = rig.write(26, 3, 1);
    rig.settle();
    assert_eq!(rig.result(tag), Some(Ok(())));
    let moves = rig.volume.stats().reclaims(Action::SeqData);
    assert_eq!((moves.started, moves.completed, moves.aborted), (1, 1, 0));
    assert!(!rig.is_sequential(1));
    assert_eq!(rig.read_now(16, 11), [1, 0, 1, 0, 1, 0, 1, 0, 0, 2, 3]);
}

/// The detector finds the journal while the volume is used: a chunk that is in the cache is pinned at once, and stays so.
#[test]
fn a_journal_that_is_found_later_is_pinned() {
    let found = Options { journal: JournalMode::One, ..Options::default() };
    let mut rig = Rig::new(&two_devices(), found);
    rig.write_now(24, 1, 1);
    assert!(rig.volume.pinned().is_empty());
    rig.set_journal([24..28, 30..40]);
    assert!(rig.volume.pinned().iter().eq(&[1]));
    rig.advance(30 * SECOND);
    assert!(!rig.is_sequential(1));
    rig.write_now(26, 2, 6);
    assert_eq!(rig.sent(0, Sent::Journal), 4, "blocks between the pieces of the journal are data");
    rig.set_journal(Some(64..80));
    assert!(rig.volume.pinned().iter().eq(&[1]), "one never unpins");
}

/// Choi 2022, Fig. 3: the zone of the journal changes each time reclaim has moved it, and never once it is pinned.
#[test]
fn the_zones_of_the_journal_are_told() {
    let zones = |journal| {
        let ranges = std::iter::once(24..32).collect();
        let options = Options { journal_ranges: ranges, ..options(journal) };
        let mut rig = Rig::new(&two_devices(), options);
        for op in 1..4 {
            rig.write_now(24 + op, op, 2);
            rig.advance(30 * SECOND);
        }
        let stats = rig.volume.stats();
        let told: Vec<_> =
            stats.journal_path.iter().map(|entry| (entry.before, entry.zone)).collect();
        assert_eq!(stats.journal_moves + 1, u64::try_from(told.len()).unwrap());
        told
    };
    let (off, one) = (zones(JournalMode::Off), zones(JournalMode::One));
    assert_eq!(one.len(), 1, "{one:?}");
    assert!(off.len() > 1 && off.windows(2).all(|pair| pair[0].1 != pair[1].1), "{off:?}");
    assert_eq!(off[0].0, 0);
    assert_eq!(off[1].0, 2, "two blocks went to the first zone");
}

/// Choi 2022, Fig. 6: the first write to the journal takes a conventional zone; reclaim passes over it though it was used
/// longest ago; what overwrites the blocks that reclaim has moved goes to a buffer zone, which is another one.
#[test]
fn the_journal_keeps_its_zone_through_reclaim_and_buffering() {
    let mut rig = Rig::new(&two_devices(), options(JournalMode::One));
    rig.write_now(24, 1, 2);
    let journal = rig.data(1);
    rig.write_now(64, 2, 3);
    assert_ne!(rig.data(4), journal);
    rig.advance(30 * SECOND);
    assert!(rig.is_sequential(4));
    assert_eq!(rig.data(1), journal);
    rig.write_now(65, 3, 1);
    assert!(rig.is_sequential(4));
    let buffer = rig.buffer(4);
    assert!(buffer.is_some() && buffer != journal, "{buffer:?}");
    rig.write_now(26, 4, 2);
    assert_eq!(rig.data(1), journal);
    assert_eq!(rig.read_now(64, 3), [2, 3, 2]);
}

/// Copies of the journal that are thrown away count as copies of the journal.
#[test]
fn aborted_copies_of_the_journal_are_told() {
    let mut rig = Rig::new(&two_devices(), options(JournalMode::Off));
    rig.write_now(20, 1, 2);
    rig.write_now(25, 2, 3);
    rig.run_idle();
    rig.run_until(|io| io.kind == IoKind::Read && io.at % u64::from(ZONE) == 9);
    let tag = rig.write(30, 9, 1);
    rig.settle();
    assert_eq!(rig.result(tag), Some(Ok(())));
    let stats = rig.volume.stats();
    assert_eq!(stats.reclaims(Action::RndData).aborted, 1);
    assert_eq!((stats.sent(Sent::AbortedValid), stats.journal_aborted), (5, 3));
    assert_eq!(stats.journal_copies(), stats.sent(Sent::JournalCopied) + 3);
    assert_eq!(rig.read_now(20, 11), [1, 1, 0, 0, 0, 2, 2, 2, 0, 0, 9]);
}
