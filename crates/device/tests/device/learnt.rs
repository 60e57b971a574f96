//! The table of append-only data of a buffer: there after a stop, as old as the last checkpoint after a power cut, and never
//! a reason to refuse an image.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

use crate::common::{Folder, buffered, open};
use onefold_buffer::PolicySpec;
use onefold_device::{Access, BlockDevice, Image, SsdDevice};
use onefold_format::BufferTable;
use onefold_ssd::SsdConfig;

const BLOCK: u64 = 4096;
const CHUNK: u64 = 1 << 20;
/// L and W of a chunk.
const LARGE: u8 = 0b01;
const REWRITTEN: u8 = 0b11;

fn isolating() -> SsdConfig {
    buffered(PolicySpec::parse("aoi:channels=1,ways=1").unwrap())
}

/// An image, and where its table lies.
struct Shelf {
    folder: Folder,
    uuid: [u8; 16],
    at: usize,
}

impl Shelf {
    fn new() -> Self {
        let folder = Folder::new(&isolating());
        let image = Image::open(&folder.path(), Access::ReadOnly).unwrap();
        let (uuid, at) = (image.label().uuid, usize::try_from(image.file_bytes()).unwrap());
        drop(image);
        Self { folder, uuid, at }
    }

    fn open(&self) -> SsdDevice {
        self.folder.open().device
    }

    fn bytes(&self) -> Vec<u8> {
        std::fs::read(self.folder.path()).unwrap()[self.at..].to_vec()
    }

    /// The three chunks of the device, as its image keeps them.
    fn kept(&self) -> Option<[u8; 3]> {
        let table = BufferTable::decode(&self.bytes(), &self.uuid)?;
        assert_eq!((table.chunk, table.bits.len()), (256, 1));
        Some([0, 1, 2].map(|chunk| table.bits[0] >> (2 * chunk) & REWRITTEN))
    }
}

/// Appends to chunk 0 and 1, and an update in chunk 1.
fn teach(device: &SsdDevice) {
    device.write(0, &vec![1; 64 << 10], false).unwrap();
    device.write(CHUNK, &vec![2; 64 << 10], false).unwrap();
    device.write(CHUNK, &[3; 4096], false).unwrap();
}

const TAUGHT: [u8; 3] = [LARGE, REWRITTEN, 0];

/// Closing writes what the buffer knows by then: a table that was not read at the opening is gone afterwards.
#[test]
fn what_was_learnt_is_there_after_every_stop() {
    let shelf = Shelf::new();
    let device = shelf.open();
    teach(&device);
    assert_eq!(shelf.kept(), None, "nothing is written before its time");
    device.close().unwrap();
    drop(device);
    for _ in 0..3 {
        assert_eq!(shelf.kept(), Some(TAUGHT));
        shelf.open().close().unwrap();
    }
    // A large TRIM resets its chunk, and that is kept as well.
    let device = shelf.open();
    device.trim(CHUNK, CHUNK).unwrap();
    device.close().unwrap();
    drop(device);
    assert_eq!(shelf.kept(), Some([LARGE, 0, 0]));
    assert!(shelf.folder.is_whole());
}

#[test]
fn a_power_cut_leaves_the_table_of_the_last_checkpoint() {
    let shelf = Shelf::new();
    let device = shelf.open();
    teach(&device);
    // Half a drive write is a checkpoint.
    for block in 0..700 {
        device.write(2 * CHUNK + block % 200 * BLOCK, &[4; 4096], false).unwrap();
    }
    device.flush().unwrap();
    assert_eq!(shelf.kept(), Some(TAUGHT));
    device.write(2 * CHUNK + 200 * BLOCK, &vec![5; 64 << 10], true).unwrap();
    device.cut_power().unwrap();
    device.close().unwrap();
    drop(device);
    assert_eq!(shelf.kept(), Some(TAUGHT), "what came after the checkpoint is forgotten");
    drop(shelf.open());
    shelf.open().close().unwrap();
    assert_eq!(shelf.kept(), Some(TAUGHT), "a kill without a checkpoint takes nothing");
}

/// The table guides, so nothing that is found in its place may keep a device from opening.
#[test]
fn whatever_is_found_there_the_device_opens() {
    let shelf = Shelf::new();
    let device = shelf.open();
    teach(&device);
    device.close().unwrap();
    drop(device);
    let path = shelf.folder.path();
    let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let at = u64::try_from(shelf.at).unwrap();
    let whole = std::fs::metadata(&path).unwrap().len();
    for (damage, len) in [(true, whole), (false, whole - 1), (false, at)] {
        if damage {
            file.write_all_at(&[0xA5; 4], at + 30).unwrap();
        }
        file.set_len(len).unwrap();
        assert_eq!(shelf.kept(), None);
        assert!(shelf.folder.is_whole());
        shelf.open().close().unwrap();
        assert_eq!(shelf.kept(), Some([0, 0, 0]), "it begins anew");
    }
}

#[test]
fn another_policy_leaves_it_alone_and_other_chunks_do_not_take_it() {
    let shelf = Shelf::new();
    let device = shelf.open();
    teach(&device);
    device.close().unwrap();
    drop(device);
    let close_with = |policy: &str| {
        let config = buffered(PolicySpec::parse(policy).unwrap());
        open(&shelf.folder.path(), &config).device.close().unwrap();
    };
    close_with("lru");
    assert_eq!(shelf.kept(), Some(TAUGHT));
    close_with("aoi:channels=1,ways=1,chunk=512KiB");
    assert_eq!(shelf.bytes()[24..34], [128, 0, 0, 0, 2, 0, 0, 0, 0, 0]);
}
