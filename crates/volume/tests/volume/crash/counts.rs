//! Live counts where something unusual happened to what they count.

use onefold_format::volume::VolumeName;
use onefold_units::{Lba, Nanos};
use onefold_volume::{IoKind, MemberId, Range, Refusal, Volume, drive, mount};

use crate::harness::disk::{Disk, Fate};
use crate::harness::rig::{Op, Order, Rig};
use crate::harness::setup::{OPTIONS, Setup};

/// What pointed into a batch that failed is counted at its new place, and at the old one no more.
#[test]
fn a_batch_that_moves_takes_its_counts_along() {
    let mut moved = 0;
    for request in 1..12 {
        let mut rig = Rig::new(Setup::of(64 * 134, 900, OPTIONS), 5);
        rig.order = Order::InTurn;
        // More often than it is tried in its place.
        (rig.fail, rig.fail_again) = (Some((request, Fate::Lost)), 9);
        for lba in 0..20 {
            assert!(rig.run(Op::Write { lba: 40 * lba, blocks: 20, fua: false }));
        }
        assert!(rig.settle());
        if rig.failed.is_some_and(|io| io.kind == IoKind::Write) && rig.volume.frozen().is_none() {
            assert!(rig.volume.stats().retried_batches > 0);
            rig.assert_counts();
            moved += 1;
        }
    }
    assert!(moved > 5, "{moved} batches moved");
}

const PAGES: u64 = 600;

fn write_each_page(volume: &mut Volume, disk: &mut Disk) {
    for page in 0..PAGES {
        let range = Range { lba: Lba::new(page * 1024), blocks: 1 };
        while volume.write(page, range, Some(&[1; 4096]), false) == Err(Refusal::Busy) {
            drive(volume, disk, Nanos::new(1));
        }
    }
    drive(volume, disk, Nanos::new(2_000_000));
}

/// More pages than are unmapped at once: the checkpoint between must not leave the member out.
#[test]
fn a_member_of_many_pages_goes_when_all_are_unmapped() {
    let setup = Setup::of(64 * 11_000, PAGES * 1024, OPTIONS);
    let mut disk = setup.format();
    let (mut volume, _) = mount(&mut disk, setup.file_blocks, setup.options).unwrap();
    write_each_page(&mut volume, &mut disk);
    volume.make_snapshot(1000, MemberId::DEVICE, &VolumeName::new("daily").unwrap()).unwrap();
    drive(&mut volume, &mut disk, Nanos::new(3_000_000));
    write_each_page(&mut volume, &mut disk);
    let daily = volume.member("daily").unwrap().id;
    volume.delete_member(1001, daily).unwrap();
    let before = volume.live_blocks();
    volume.pump(Nanos::new(4_000_000));
    // Another checkpoint follows the one that says that it is deleted.
    volume.want_checkpoint();
    while volume.is_freeing() || volume.is_settling() {
        drive(&mut volume, &mut disk, Nanos::new(5_000_000));
    }
    assert!(volume.live_blocks() + PAGES <= before + 100, "{before}");
    assert_eq!(volume.recount(), Some(Vec::new()));
}
