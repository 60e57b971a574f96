//! Bytes of an image that change by themselves: found, reported, and never handed out.

mod common;

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;

use common::{Folder, plain, rich};
use onefold_device::{Access, BlockDevice, Image};
use onefold_ssd::SsdConfig;
use onefold_units::Status;

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
    let file = OpenOptions::new().write(true).open(folder.path()).unwrap();
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
