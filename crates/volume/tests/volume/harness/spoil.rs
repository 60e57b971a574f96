//! Backings that lied before power failed: the right content or an error, never anything else.

use onefold_units::convert::{index64, u64_from};
use onefold_units::{Lba, Nanos, Rng};
use onefold_volume::{MemberId, Range, ReadPlan, Refusal, Volume, drive, mount, mount_read_only};

use super::disk::Disk;
use super::image::Image;
use super::oracle::Oracle;
use super::rig::{fetch, snapshots};
use super::setup::Setup;
use super::stamp::{BLOCK, read_stamp};
use super::states::{Fault, LOOK};

/// Spoils a block that was written, or some in a row, and says where. `None` if nothing was written.
pub(crate) fn spoil(image: &Image, fault: Fault, rng: &mut Rng) -> Option<(Image, u64)> {
    // What was trimmed matters to nobody.
    let written = image.changed().filter(|(_, block)| block[..] != [0xDD; BLOCK]);
    let written: Vec<u64> = written.map(|(at, _)| at).collect();
    if written.is_empty() {
        return None;
    }
    let first = index64(rng.below(u64_from(written.len())));
    let (at, mut spoiled) = (written[first], image.clone());
    if fault == Fault::Rotten {
        spoiled.flip(at, index64(rng.below(u64_from(BLOCK * 8))));
        return Some((spoiled, at));
    }
    // As much as one write may have been, but for what it has in common with its neighbours.
    let longest = 1 + rng.below(20);
    let run = (at..at + longest).zip(&written[first..]).take_while(|(at, one)| at == *one);
    let run: Vec<u64> = run.map(|(at, _)| at).collect();
    for at in &run {
        spoiled.set(*at, image.of_base(*at).clone());
    }
    if fault == Fault::Misdirected {
        let to = if rng.below(2) == 0 {
            written[index64(rng.below(u64_from(written.len())))]
        } else {
            rng.below(image.blocks())
        };
        for (to, from) in (to..image.blocks()).zip(&run) {
            spoiled.set(to, image.get(*from).clone());
        }
    }
    Some((spoiled, at))
}

/// Reads a block by itself: the operation that wrote it, `None` for an error.
fn read_one(
    volume: &mut Volume,
    disk: &mut Disk,
    member: MemberId,
    lba: u64,
) -> Result<Option<u64>, String> {
    let (mut plan, mut bytes) = (ReadPlan::default(), vec![0; BLOCK]);
    let range = Range { lba: Lba::new(lba), blocks: 1 };
    let mut read = Err(Refusal::Busy);
    while read == Err(Refusal::Busy) {
        read = volume.read_from(member, range, Some(&mut bytes), &mut plan);
        drive(volume, disk, Nanos::new(1));
    }
    match read {
        Err(Refusal::MediaError) => return Ok(None),
        Err(refusal) => return Err(format!("a read of block {lba} is refused: {refusal:?}")),
        Ok(()) => fetch(disk, &plan, &mut bytes),
    }
    let damaged = !plan.complete(&mut bytes).is_empty();
    volume.end_read(&plan);
    let found = read_stamp(&bytes, lba).filter(|_| !damaged);
    if damaged || found.is_some() {
        Ok(found)
    } else {
        Err(format!("block {lba} holds what nobody wrote"))
    }
}

/// Whether a volume refuses to open; else each block of it is as it was after some batch, or an error.
pub(crate) fn assert_right_or_refused(
    setup: &Setup,
    image: &Image,
    oracle: &Oracle,
) -> Result<bool, String> {
    let mut disk = Disk::new(image.clone());
    let Ok((mut volume, recovery)) = mount(&mut disk, setup.file_blocks, setup.options) else {
        // Nothing was changed, so it can be looked at, if there is anything to look at.
        let _ = mount_read_only(&mut disk, setup.file_blocks, setup.options);
        return Ok(true);
    };
    let mut members = vec![(MemberId::DEVICE, oracle.state_at(recovery.seq))];
    for info in snapshots(&volume) {
        members.push((info.id, oracle.content(&info)?));
    }
    for (member, expected) in members {
        for lba in LOOK.into_iter().flatten() {
            let found = read_one(&mut volume, &mut disk, member, lba)?;
            let expected = expected[index64(lba)];
            if found.is_some_and(|found| found != expected) {
                return Err(format!(
                    "block {lba} of {member:?} has operation {found:?} instead of {expected} at batch {}",
                    recovery.seq
                ));
            }
        }
    }
    Ok(false)
}
