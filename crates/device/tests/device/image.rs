//! Making and opening images, and every refusal.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;

use crate::common::{Folder, TEXT, plain, rich, shares};
use onefold_device::{Access, BlockDevice, DeviceError, Image, Latency, SsdDevice};
use onefold_format::{FEATURE_STRIDES, ImageError, ImageLabel, LABEL_BYTES};
use onefold_units::Status;

fn refusal(folder: &Folder) -> String {
    let text = Image::open(&folder.path(), Access::Exclusive).map(drop).unwrap_err().to_string();
    text.replace(&folder.path().display().to_string(), "IMAGE")
}

fn overwrite(folder: &Folder, offset: usize, bytes: &[u8]) {
    let file = OpenOptions::new().write(true).open(folder.path()).unwrap();
    file.write_all_at(bytes, u64::try_from(offset).unwrap()).unwrap();
}

#[test]
fn a_new_image_is_sparse_and_says_what_it_is() {
    let folder = Folder::new(&plain());
    let image = Image::open(&folder.path(), Access::ReadOnly).unwrap();
    assert!(image.label().clean);
    assert_eq!(image.label().config, TEXT);
    assert_eq!(image.label().uuid[6] >> 4, 4);
    assert_eq!(fs::metadata(folder.path()).unwrap().len(), image.file_bytes());
    assert!(image.allocated_bytes().unwrap() <= 3 * 65_536);
    let other = Folder::new(&plain());
    let other = Image::open(&other.path(), Access::ReadOnly).unwrap();
    assert_ne!(image.label().uuid, other.label().uuid);
}

#[test]
fn what_exists_is_not_overwritten() {
    let folder = Folder::new(&plain());
    fs::write(folder.path(), "precious").unwrap();
    let error = Image::create(&folder.path(), &plain(), TEXT.to_owned()).unwrap_err();
    assert!(matches!(error, DeviceError::Exists { .. }));
    assert!(error.to_string().contains("exists already and was not changed"), "{error}");
    assert_eq!(fs::read(folder.path()).unwrap(), b"precious");
}

#[test]
fn what_cannot_work_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk.img");
    let mut config = plain();
    config.ftl.logical_units = config.geometry.total_slots() - 1;
    let error = Image::create(&path, &config, TEXT.to_owned()).unwrap_err();
    assert!(error.is_infeasible() && error.to_string().contains("capacity.logical"), "{error}");
    assert!(!path.exists());
    let long = "x".repeat(LABEL_BYTES);
    let error = Image::create(&path, &plain(), long).unwrap_err();
    assert!(matches!(error, DeviceError::LongConfig { bytes: LABEL_BYTES, .. }));
    assert!(!path.exists());
}

#[test]
fn one_process_at_a_time_writes() {
    let folder = Folder::new(&plain());
    let reader = Image::open(&folder.path(), Access::ReadOnly).unwrap();
    let second = Image::open(&folder.path(), Access::ReadOnly).unwrap();
    assert_eq!(refusal(&folder), "IMAGE is in use by another process; stop that one first");
    drop((reader, second));
    let opened = folder.open();
    let busy = Image::open(&folder.path(), Access::ReadOnly).map(drop);
    assert!(matches!(busy, Err(DeviceError::Busy { .. })));
    opened.device.close().unwrap();
}

#[test]
fn what_is_no_image_is_refused() {
    let folder = Folder::new(&plain());
    for bytes in [&b""[..], b"ONEFOLD", &vec![7; 300_000]] {
        fs::write(folder.path(), bytes).unwrap();
        let expected = "IMAGE: this is not a Onefold image: the magic number at byte 0 is missing";
        assert_eq!(refusal(&folder), expected);
    }
    fs::remove_file(folder.path()).unwrap();
    fs::create_dir(folder.path()).unwrap();
    let error = Image::open(&folder.path(), Access::ReadOnly).map(drop).unwrap_err();
    assert!(matches!(error, DeviceError::NotAFile { .. }), "{error}");
}

#[test]
fn a_truncated_image_is_refused_at_every_length() {
    let folder = Folder::new(&plain());
    let file = OpenOptions::new().write(true).open(folder.path()).unwrap();
    let whole = file.metadata().unwrap().len();
    for len in [whole - 1, 1 << 20, 131_072, 65_536] {
        file.set_len(len).unwrap();
        let text = refusal(&folder);
        assert!(text.contains(&format!("has {len} B, expected {whole} B")), "{text}");
    }
    file.set_len(65_535).unwrap();
    let text = refusal(&folder);
    assert!(text.contains("both copies of the label are damaged"), "{text}");
}

#[test]
fn one_damaged_copy_of_the_label_does_no_harm_two_do() {
    for copy in [0, LABEL_BYTES] {
        let folder = Folder::new(&plain());
        overwrite(&folder, copy, &[0xA5; 4096]);
        let label = Image::open(&folder.path(), Access::ReadOnly).unwrap().label().clone();
        assert_eq!(label.config, TEXT);
        overwrite(&folder, LABEL_BYTES - copy + 100, &[0xA5; 100]);
        let text = refusal(&folder);
        assert!(text.starts_with("IMAGE: both copies of the label are damaged"), "{text}");
    }
}

#[test]
fn images_of_other_versions_are_refused() {
    let folder = Folder::new(&plain());
    for copy in [0, LABEL_BYTES] {
        overwrite(&folder, copy + 8, &[2]);
    }
    assert_eq!(
        refusal(&folder),
        "IMAGE: the image has format version 2, this Onefold reads version 1"
    );
}

/// A copy of the label of an image.
fn label(folder: &Folder, copy: usize) -> ImageLabel {
    let file = fs::read(folder.path()).unwrap();
    let bytes = &file[copy * LABEL_BYTES..][..LABEL_BYTES];
    ImageLabel::decode(bytes, u32::try_from(copy).unwrap()).unwrap()
}

/// An older build would take the copy without the feature, and entries with strides for others.
#[test]
fn an_image_from_before_strides_gets_the_feature_in_both_copies() {
    assert_eq!(label(&Folder::new(&plain()), 0).features, 0, "there is no log of remaps");
    let folder = Folder::new(&shares(plain()));
    for copy in 0..2 {
        let made = label(&folder, copy);
        assert_eq!(made.features, FEATURE_STRIDES);
        let before = ImageLabel { features: 0, ..made };
        overwrite(&folder, copy * LABEL_BYTES, &before.encode().unwrap());
    }
    drop(Image::open(&folder.path(), Access::ReadOnly).unwrap());
    assert_eq!([0, 1].map(|copy| label(&folder, copy).features), [0, 0]);
    drop(folder.open());
    assert_eq!([0, 1].map(|copy| label(&folder, copy).features), [FEATURE_STRIDES; 2]);
    assert_eq!([0, 1].map(|copy| label(&folder, copy).clean), [false; 2]);
}

#[test]
fn a_feature_that_is_not_known_counts_in_either_copy() {
    for copy in 0..2 {
        let folder = Folder::new(&plain());
        let newer = ImageLabel { features: 24, ..label(&folder, copy) };
        overwrite(&folder, copy * LABEL_BYTES, &newer.encode().unwrap());
        assert_eq!(
            refusal(&folder),
            "IMAGE: the image needs features 0x18 that this Onefold does not have"
        );
    }
}

#[test]
fn the_copies_of_the_label_take_turns() {
    let folder = Folder::new(&plain());
    let generation = |copy: usize| {
        let label = label(&folder, copy);
        (label.generation, label.clean)
    };
    assert_eq!([generation(0), generation(1)], [(2, true), (1, true)]);
    let opened = folder.open();
    assert!(opened.was_clean);
    assert_eq!([generation(0), generation(1)], [(2, true), (3, false)]);
    opened.device.close().unwrap();
    assert_eq!([generation(0), generation(1)], [(4, true), (3, false)]);
    drop(opened);
    drop(folder.open());
    assert_eq!([generation(0), generation(1)], [(4, true), (5, false)]);
    assert!(!folder.open().was_clean);
}

#[test]
fn a_configuration_of_another_device_is_refused() {
    let folder = Folder::new(&plain());
    let image = Image::open(&folder.path(), Access::Exclusive).unwrap();
    let mut config = plain();
    config.ftl.logical_units -= 1;
    let options = onefold_device::OpenOptions::new(Latency::None);
    let error = SsdDevice::open(image, &config, options).map(drop).unwrap_err();
    assert!(error.to_string().contains("B of logical capacity"), "{error}");
}

#[test]
fn a_protected_buffer_is_made_volatile_and_said_so() {
    let mut config = rich();
    config.buffer.volatile = false;
    let folder = Folder::new(&config);
    let opened = folder.open();
    assert!(opened.buffer_made_volatile);
    opened.device.write(0, &[7; 4096], false).unwrap();
    opened.device.flush().unwrap();
    drop(opened);
    let mut back = [0; 4096];
    folder.open().device.read(0, &mut back).unwrap();
    assert_eq!(back, [7; 4096]);
}

#[test]
fn a_closed_device_answers_nothing() {
    let folder = Folder::new(&plain());
    let device = folder.open().device;
    device.close().unwrap();
    device.close().unwrap();
    assert_eq!(device.read(0, &mut [0; 512]), Err(Status::Poisoned));
    assert_eq!(device.write(0, &[0; 512], true), Err(Status::Poisoned));
    assert_eq!(device.flush(), Err(Status::Poisoned));
    assert!(device.details().is_none());
}

#[test]
fn errors_of_the_label_name_the_image() {
    let path = std::path::PathBuf::from("x.img");
    let error = DeviceError::Label { path, source: ImageError::Features { unknown: 4 } };
    assert!(error.to_string().starts_with("x.img: the image needs features 0x4"), "{error}");
}
