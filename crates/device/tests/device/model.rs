//! The device against an array of bytes: any request at any alignment, cuts and clean shutdowns.

use crate::common::{Folder, buffered, plain, rich};
use onefold_device::{BlockDevice, SsdDevice};
use onefold_ssd::SsdConfig;
use onefold_units::Status;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Write {
        at: u64,
        len: u64,
        byte: u8,
        fua: bool,
    },
    Read {
        at: u64,
        len: u64,
    },
    Trim {
        at: u64,
        len: u64,
    },
    Zero {
        at: u64,
        len: u64,
        unmap: bool,
    },
    Flush,
    /// Flush, then the process dies.
    Cut,
    Reopen,
    Check,
}

fn step(size: u64) -> impl Strategy<Value = Step> {
    let range = (0..size, 1_u64..200_000).prop_map(move |(at, len)| (at, len.min(size - at)));
    // Whole pages as well, as most requests are.
    let pages = (0..size / 4096, 1_u64..64)
        .prop_map(move |(at, len)| (at * 4096, (len * 4096).min(size - at * 4096)));
    let range = prop_oneof![range, pages];
    prop_oneof![
        10 => (range.clone(), any::<u8>(), prop::bool::weighted(0.1)).prop_map(
            |((at, len), byte, fua)| Step::Write { at, len, byte, fua }),
        4 => range.clone().prop_map(|(at, len)| Step::Read { at, len }),
        2 => range.clone().prop_map(|(at, len)| Step::Trim { at, len }),
        2 => (range, any::<bool>()).prop_map(|((at, len), unmap)| Step::Zero { at, len, unmap }),
        2 => Just(Step::Flush),
        1 => Just(Step::Cut),
        1 => Just(Step::Reopen),
        1 => Just(Step::Check),
    ]
}

fn fill(byte: u8, at: u64, len: u64) -> Vec<u8> {
    // Different in every byte, so that data at a wrong place shows.
    (at..at + len).map(|at| byte ^ u8::try_from((at * 7 + at / 251) % 256).unwrap()).collect()
}

fn slice(model: &mut [u8], at: u64, len: u64) -> &mut [u8] {
    &mut model[usize::try_from(at).unwrap()..][..usize::try_from(len).unwrap()]
}

fn verify(device: &SsdDevice, model: &[u8]) {
    let mut back = vec![0xEE; model.len()];
    device.read(0, &mut back).unwrap();
    let wrong = back.iter().zip(model).position(|(a, b)| a != b);
    assert_eq!(wrong, None, "first wrong byte");
}

fn run(config: &SsdConfig, steps: &[Step]) {
    let folder = Folder::new(config);
    let mut device = folder.open().device;
    let mut model = vec![0; usize::try_from(device.size()).unwrap()];
    for step in steps {
        match *step {
            Step::Write { at, len, byte, fua } => {
                let data = fill(byte, at, len);
                device.write(at, &data, fua).unwrap();
                slice(&mut model, at, len).copy_from_slice(&data);
            }
            Step::Read { at, len } => {
                let mut back = vec![0xEE; usize::try_from(len).unwrap()];
                device.read(at, &mut back).unwrap();
                assert!(back == slice(&mut model, at, len), "{step:?}");
            }
            Step::Trim { at, len } => {
                device.trim(at, len).unwrap();
                slice(&mut model, at, len).fill(0);
            }
            Step::Zero { at, len, unmap } => {
                device.write_zeroes(at, len, unmap, false).unwrap();
                slice(&mut model, at, len).fill(0);
            }
            Step::Flush => drop(device.flush().unwrap()),
            Step::Cut => {
                device.flush().unwrap();
                drop(device);
                let opened = folder.open();
                assert!(!opened.was_clean);
                assert_eq!(opened.recovery.lost_units, 0);
                device = opened.device;
                verify(&device, &model);
            }
            Step::Reopen | Step::Check => {
                device.close().unwrap();
                drop(device);
                assert!(folder.is_whole());
                let opened = folder.open();
                assert!(opened.was_clean);
                assert_eq!((opened.recovery.torn_slots, opened.recovery.lost_units), (0, 0));
                device = opened.device;
            }
        }
    }
    verify(&device, &model);
    extents_agree(&device, &model);
}

/// What is unmapped reads as zeroes; runs cover the device without gaps.
fn extents_agree(device: &SsdDevice, model: &[u8]) {
    let mut at = 0;
    while at < device.size() {
        let extent = device.extent(at, device.size() - at).unwrap();
        assert!(extent.len > 0);
        let bytes = &model[usize::try_from(at).unwrap()..][..usize::try_from(extent.len).unwrap()];
        assert!(extent.mapped || bytes.iter().all(|byte| *byte == 0), "hole at {at}");
        at += extent.len;
    }
}

const SIZE: u64 = 3 << 20;

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_plain_device_is_an_array_of_bytes(steps in prop::collection::vec(step(SIZE), 1..120)) {
        run(&plain(), &steps);
    }

    #[test]
    fn policies_keep_the_bytes(
        policy in prop::sample::select(onefold_testkit::small_policies()),
        steps in prop::collection::vec(step(SIZE), 1..120),
    ) {
        run(&buffered(policy), &steps);
    }

    #[test]
    fn a_device_with_everything_is_one_too(steps in prop::collection::vec(step(SIZE), 1..120)) {
        run(&rich(), &steps);
    }
}

#[test]
fn the_size_is_that_of_the_test() {
    for config in [plain(), rich()] {
        assert_eq!(Folder::new(&config).open().device.size(), SIZE);
    }
}

#[test]
fn ranges_that_leave_the_device_change_nothing() {
    let folder = Folder::new(&plain());
    let device = folder.open().device;
    let end = device.size();
    for (at, len) in [(end, 1), (end - 1, 2), (u64::MAX, 1), (u64::MAX, u64::MAX), (0, 0)] {
        let bad = Err(Status::InvalidField);
        assert_eq!(device.trim(at, len), bad);
        assert_eq!(device.write_zeroes(at, len, true, true), bad);
        assert_eq!(device.extent(at, len).map(drop), bad.map(drop));
        if let Ok(len) = usize::try_from(len.min(2)) {
            assert_eq!(device.read(at, &mut vec![0; len]), bad);
            assert_eq!(device.write(at, &vec![1; len], false), bad);
            assert_eq!(device.write(at, &vec![1; len], true), bad);
        }
    }
    assert_eq!(device.details().unwrap().mapped_pages, 0);
    device.flush().unwrap();
}

#[test]
fn a_trim_gives_pages_back_and_fua_survives_without_flush() {
    let folder = Folder::new(&rich());
    let device = folder.open().device;
    device.write(0, &vec![5; 1 << 20], true).unwrap();
    assert_eq!(device.details().unwrap().mapped_pages, 256);
    device.trim(0, 512 << 10).unwrap();
    assert_eq!(device.details().unwrap().mapped_pages, 128);
    drop(device);
    let mut back = vec![0; 512 << 10];
    folder.open().device.read(512 << 10, &mut back).unwrap();
    assert!(back.iter().all(|byte| *byte == 5));
}

/// Versions of a page: a number that never comes twice for one page.
#[derive(Clone, Copy, Default)]
struct Versions {
    /// The last one that was flushed, or found after a cut.
    durable: u64,
    /// What a read gives now.
    current: u64,
    /// The last one that was ever written.
    issued: u64,
}

fn stamp(page: usize, version: u64) -> Vec<u8> {
    (version << 16 | u64::try_from(page).unwrap()).to_le_bytes().repeat(512)
}

/// The version that a page holds.
fn version(device: &SsdDevice, page: usize) -> u64 {
    let mut back = vec![0; 4096];
    device.read(u64::try_from(page).unwrap() * 4096, &mut back).unwrap();
    let version = u64::from_le_bytes(back[..8].try_into().unwrap()) >> 16;
    let whole = if version == 0 { vec![0; 4096] } else { stamp(page, version) };
    assert!(back == whole, "page {page} is mixed or another's");
    version
}

/// Collection, checkpoints and cuts without a flush: every page holds a version between the last
/// flushed and the last written one.
fn overwrite_and_cut(config: &SsdConfig) {
    let folder = Folder::new(config);
    let mut rng = onefold_units::Rng::new(7);
    let mut pages = vec![Versions::default(); 768];
    let mut erases = 0;
    for round in 0..12_u64 {
        let opened = folder.open();
        assert_eq!(opened.recovery.lost_units, 0, "round {round}");
        let device = opened.device;
        for (number, page) in pages.iter_mut().enumerate() {
            let found = version(&device, number);
            assert!((page.durable..=page.issued).contains(&found), "page {number}: {found}");
            (page.durable, page.current) = (found, found);
        }
        let writes = 200 + rng.below(1500);
        let flush_at = rng.below(writes);
        for n in 0..writes {
            let at = rng.below(768);
            let number = usize::try_from(at).unwrap();
            let page = &mut pages[number];
            page.issued += 1;
            page.current = page.issued;
            device.write(at * 4096, &stamp(number, page.issued), false).unwrap();
            if n == flush_at {
                device.flush().unwrap();
                for page in &mut pages {
                    page.durable = page.current;
                }
            }
        }
        erases += device.details().unwrap().ftl.erases;
    }
    assert!(erases > 50, "the test has to make collection work: {erases} erases");
    assert!(folder.is_whole());
}

#[test]
fn a_plain_device_survives_cuts_under_collection() {
    overwrite_and_cut(&plain());
}

#[test]
fn a_device_with_everything_survives_cuts_under_collection() {
    overwrite_and_cut(&rich());
}
