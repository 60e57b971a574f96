//! Bytes of an image that change by themselves: found, reported, and never handed out.

use std::fs;
use std::os::unix::fs::FileExt;

use crate::common::{Folder, HOST, SNAPSHOTS, plain, rich, shares};
use onefold_device::mailbox::{
    Client, MailboxError, RemapFlags, SnapshotAction, SnapshotName, VectorRange,
};
use onefold_device::{Access, BlockDevice, FileMedia, Image, Latency, OpenOptions, SsdDevice};
use onefold_format::{SlotKind, SpareState};
use onefold_nand::{Media, Spare};
use onefold_ssd::SsdConfig;
use onefold_units::convert::u64_from;
use onefold_units::{Status, SuperblockId};

const PAGES: u64 = 64;

fn page(number: u64) -> Vec<u8> {
    format!("page {number:04} ").into_bytes().into_iter().cycle().take(4096).collect()
}

/// An image whose pages 0 to 63 are written, shut down cleanly.
fn written(config: &SsdConfig) -> Folder {
    let folder = Folder::new(config);
    let device = folder.open().device;
    for number in 0..PAGES {
        device.write(number * 4096, &page(number), false).unwrap();
    }
    device.close().unwrap();
    drop(device);
    folder
}

/// Where in the file a page is stored.
fn place(folder: &Folder, number: u64) -> u64 {
    let (file, wanted) = (fs::read(folder.path()).unwrap(), page(number));
    let at = file.chunks_exact(4096).position(|unit| unit == wanted).unwrap();
    u64::try_from(at * 4096).unwrap()
}

fn overwrite(folder: &Folder, offset: u64, bytes: &[u8]) {
    let file = fs::OpenOptions::new().write(true).open(folder.path()).unwrap();
    file.write_all_at(bytes, offset).unwrap();
}

#[test]
fn a_changed_byte_is_an_error_of_that_page_only() {
    for config in [plain(), rich()] {
        let folder = written(&config);
        assert!(folder.is_whole());
        overwrite(&folder, place(&folder, 7) + 1000, b"!");
        let image = Image::open(&folder.path(), Access::ReadOnly).unwrap();
        let report = onefold_device::check(&image, &config, Some(&mut |_, _| {})).unwrap();
        assert!(report.is_damaged());
        assert_eq!((report.unreadable_units, &report.unreadable[..]), (1, &[7][..]));
        assert_eq!(report.verified_units, PAGES - 1);
        // Without reading the data nobody can know.
        assert!(!onefold_device::check(&image, &config, None).unwrap().is_damaged());
        drop(image);
        let device = folder.open().device;
        let mut back = vec![0; 4096];
        assert_eq!(device.read(7 * 4096, &mut back), Err(Status::MediaError));
        for number in (0..PAGES).filter(|number| *number != 7) {
            device.read(number * 4096, &mut back).unwrap();
            assert!(back == page(number), "page {number}");
        }
        // The rest of the device goes on, and writing the page heals it.
        device.write(7 * 4096, &page(7), false).unwrap();
        device.close().unwrap();
        drop(device);
        assert!(folder.is_whole());
    }
}

#[test]
fn any_damage_of_the_metadata_is_survived_and_never_gives_wrong_bytes() {
    let folder = written(&rich());
    let whole = fs::read(folder.path()).unwrap();
    // NVRAM, headers and spare areas; what lies between them and the data means nothing.
    let end = whole[..1 << 20].iter().rposition(|byte| *byte != 0).unwrap();
    for offset in (131_072..u64::try_from(end).unwrap()).step_by(1499) {
        fs::write(folder.path(), &whole).unwrap();
        overwrite(&folder, offset, &[0x5A; 40]);
        let device = folder.open().device;
        for number in 0..PAGES {
            let mut back = vec![0; 4096];
            let read = device.read(number * 4096, &mut back);
            let right = back == page(number) || back.iter().all(|byte| *byte == 0);
            assert!(read.is_err() || right, "page {number} after damage at {offset}");
        }
    }
}

/// A device killed after pages 100 to 199 were remapped to pages 0 to 99, with its remap log on flash, and
/// page 5 written after that; a snapshot holds pages 0 to 9.
fn remapped(config: &SsdConfig) -> Folder {
    let folder = Folder::new(config);
    let device = folder.open().device;
    for number in 0..100 {
        device.write(number * 4096, &page(number), false).unwrap();
    }
    let mut client = Client::new(device.clone());
    let name = SnapshotName::new("kept").unwrap();
    client.snapshot(SnapshotAction::Create { name, first: 0, units: 10 }).unwrap();
    for number in 0..100 {
        let pages = [VectorRange { dst: 199 - number, src: number, len: 1 }];
        client.remap(RemapFlags::COPY, None, &pages).unwrap();
    }
    assert!(device.details().unwrap().remap.destages > 0);
    device.write(5 * 4096, &page(5), true).unwrap();
    assert_eq!(device.details().unwrap().ftl.checkpoints, 0);
    folder
}

fn damage_log_pages(folder: &Folder) {
    let file = fs::read(folder.path()).unwrap();
    let is_log = |unit: &&[u8]| unit.starts_with(b"OFRL");
    let pages: Vec<_> = file.chunks_exact(4096).map(|unit| is_log(&unit)).collect();
    assert!(pages.contains(&true));
    for (at, _) in (0_u64..).zip(&pages).filter(|(_, is_log)| **is_log) {
        overwrite(folder, at * 4096 + 60, b"!");
    }
}

/// Older contents are never served: the device does not open, the check says why, and who accepts the loss
/// gets errors instead.
#[test]
fn a_damaged_page_of_the_remap_log_is_explained_and_can_be_given_up() {
    let mut config = shares(plain());
    config.ftl.remap.segment_bytes = 128;
    config.ftl.remap.log_bytes = 8 * 128;
    let folder = remapped(&config);
    assert!(folder.is_whole());
    damage_log_pages(&folder);
    let open = |options| {
        let image = Image::open(&folder.path(), Access::Exclusive).unwrap();
        SsdDevice::open(image, &config, options).map(|opened| opened.device)
    };
    let plainly = OpenOptions::new(Latency::None);
    let refused = open(plainly).err().unwrap().to_string();
    assert!(refused.contains("a page of the remap log, is damaged"), "{refused}");

    let image = Image::open(&folder.path(), Access::ReadOnly).unwrap();
    let report = onefold_device::check(&image, &config, None).unwrap();
    assert!(report.is_damaged() && !report.is_damaged_otherwise());
    assert!(report.recovery.log_damage.is_some());
    let given_up = report.recovery.given_up_units;
    drop(image);
    assert!(open(plainly).is_err(), "a check changes nothing");

    let device = open(plainly.accepting_loss()).unwrap();
    let mut back = vec![0; 4096];
    let mut refused = Vec::new();
    for number in 0..HOST {
        let origin = if number < 100 { number } else { 199_u64.saturating_sub(number) };
        match device.read(number * 4096, &mut back) {
            Ok(_) => assert!(back == page(origin), "page {number}"),
            Err(status) => {
                assert_eq!(status, Status::MediaError);
                refused.push(number);
            }
        }
    }
    // All of the snapshots, but not their table; and of the host what did not change since the log page.
    assert_eq!(u64_from(refused.len()) + SNAPSHOTS, given_up);
    assert!(refused.len() > 300 && !refused.contains(&5), "{refused:?}");
    let mut client = Client::new(device.clone());
    let table = client.snapshot(SnapshotAction::List).unwrap();
    let name = table.entries[0].name.clone();
    let restored = client.snapshot(SnapshotAction::Restore { name: name.clone() });
    let Err(MailboxError::Refused { status: Status::MediaError, text }) = restored else {
        panic!("{restored:?}")
    };
    assert!(text.contains("is lost: leave it out, or write it first"), "{text}");
    client.snapshot(SnapshotAction::Delete { name }).unwrap();
    device.write(50 * 4096, &page(50), false).unwrap();
    // Killed: that it was accepted is durable.
    device.flush().unwrap();
    drop((client, device));
    let device = open(plainly).unwrap();
    device.read(50 * 4096, &mut back).unwrap();
    assert!(back == page(50));
    assert_eq!(device.read(51 * 4096, &mut back), Err(Status::MediaError));
    device.trim(0, HOST * 4096).unwrap();
    device.close().unwrap();
    drop(device);
    assert!(folder.is_whole());
}

/// A page whose spare area is damaged does not tell its number, and the last one has none after it that
/// would: the synchronisation mark knows that it was whole, and no page that power failed in.
#[test]
fn the_last_log_page_is_missed_without_its_spare_area() {
    let mut config = shares(plain());
    config.ftl.remap.segment_bytes = 128;
    config.ftl.remap.log_bytes = 8 * 128;
    let folder = remapped(&config);
    let image = Image::open(&folder.path(), Access::Exclusive).unwrap();
    let mut media = FileMedia::new(&image, config.geometry);
    let pages: Vec<Spare> = (0..config.geometry.superblocks())
        .flat_map(|superblock| media.read_spares(SuperblockId::new(superblock)).unwrap())
        .filter(|spare| match SpareState::decode(spare) {
            SpareState::Programmed(record) => record.kind == SlotKind::Log,
            _ => false,
        })
        .collect();
    drop((media, image));
    let file = fs::read(folder.path()).unwrap();
    for spare in pages {
        let at = file.windows(spare.len()).position(|bytes| bytes == spare).unwrap();
        fs::write(folder.path(), &file).unwrap();
        overwrite(&folder, u64_from(at) + 9, &[!spare[9]]);
        let image = Image::open(&folder.path(), Access::ReadOnly).unwrap();
        let report = onefold_device::check(&image, &config, None).unwrap();
        assert!(report.recovery.log_damage.is_some(), "{:?}", report.recovery);
    }
}
