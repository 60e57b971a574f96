//! Logs of what volumes sent to their backing: what they hold, replaying them, and logs that are damaged.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::common::{Folder, roomy};
use onefold_device::{
    BlockDevice, Latency, OpenOptions, SsdDevice, VolumeBacking, VolumeDevice, VolumeError,
    VolumeIo, VolumeOptions, VolumeResize, VolumeSpec, WriteLogError, WriteLogReader,
};
use onefold_format::volume::VolumeMode;
use onefold_ftl::RemapScheme;
use onefold_units::{Nanos, Rng};
use onefold_volume::{Acknowledge, Backing};

const MIB: u64 = 1 << 20;
const BLOCK: u64 = 4096;

/// Checkpoints and background flushes come often.
fn options() -> VolumeOptions {
    let mut options = VolumeOptions::default();
    options.engine.checkpoint_blocks = 512;
    options
}

struct Files {
    folder: tempfile::TempDir,
}

impl Files {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// An empty volume, and what it lay on.
    fn create(&self, mode: VolumeMode) {
        self.create_on(40 * MIB, mode);
        copy(&self.path("volume"), &self.path("base"));
    }

    fn create_on(&self, bytes: u64, mode: VolumeMode) {
        let backing = VolumeBacking::create(&self.path("volume"), bytes).unwrap();
        let segment_bytes = (mode == VolumeMode::Log).then_some(256 << 10);
        let spec =
            VolumeSpec { bytes: Some(8 * MIB), segment_bytes, mode, ..VolumeSpec::default() };
        VolumeDevice::format(&backing, &spec, false).unwrap();
    }

    fn open_logged(&self) -> VolumeDevice {
        self.open_logged_with(options())
    }

    fn open_logged_with(&self, options: VolumeOptions) -> VolumeDevice {
        VolumeDevice::open(self.logged(), options).unwrap().device
    }

    fn logged(&self) -> VolumeBacking {
        let backing = VolumeBacking::open(&self.path("volume"), true).unwrap();
        backing.with_write_log(&self.path("log")).unwrap()
    }

    fn reader(&self) -> WriteLogReader {
        WriteLogReader::open(&self.path("log")).unwrap()
    }

    /// What the volume lay on when it was marked.
    fn replay_to_mark(&self, text: &str) -> PathBuf {
        let target = self.path(text);
        copy(&self.path("base"), &target);
        let mut log = self.reader();
        let last = log.find_mark(text, 0).unwrap();
        replay(&target, &mut log, last).unwrap();
        target
    }
}

/// A copy with holes for zeroes.
fn copy(from: &Path, to: &Path) {
    let bytes = fs::read(from).unwrap();
    let file = fs::File::create(to).unwrap();
    file.set_len(bytes.len() as u64).unwrap();
    for (at, block) in (0..).zip(bytes.chunks(4096)).filter(|(_, block)| **block != [0; 4096]) {
        file.write_all_at(block, at * BLOCK).unwrap();
    }
}

fn replay(target: &Path, log: &mut WriteLogReader, last: u64) -> Result<(), WriteLogError> {
    VolumeBacking::open(target, true).unwrap().replay(log, 0..=last).map(drop)
}

fn content(path: &Path) -> Vec<u8> {
    let device = VolumeDevice::open(VolumeBacking::open(path, true).unwrap(), options());
    let device = device.unwrap().device;
    let mut bytes = vec![0; usize::try_from(device.size()).unwrap()];
    device.read(0, &mut bytes).unwrap();
    bytes
}

/// Writes, trims and flushes at random. Gives what the volume held at each mark, which comes right after a flush.
fn work(device: &VolumeDevice, seed: u64) -> BTreeMap<String, Vec<u8>> {
    let mut rng = Rng::new(seed);
    let mut model = vec![0_u8; usize::try_from(device.size()).unwrap()];
    let mut marked = BTreeMap::new();
    for step in 0..1500 {
        let blocks = 1 + rng.below(16);
        let at = rng.below(device.size() / BLOCK - blocks) * BLOCK;
        let len = blocks * BLOCK;
        let range = usize::try_from(at).unwrap()..usize::try_from(at + len).unwrap();
        if rng.below(10) == 0 {
            device.trim(at, len).unwrap();
            model[range].fill(0);
        } else {
            let byte = u8::try_from(1 + rng.below(255)).unwrap();
            device.write(at, &vec![byte; range.len()], false).unwrap();
            model[range].fill(byte);
        }
        if rng.below(150) == 0 {
            device.flush().unwrap();
            let text = format!("mark-{step}");
            device.mark(&text).unwrap();
            marked.insert(text, model.clone());
        }
    }
    marked
}

/// The whole log brings a copy of what the volume lay on to what it lies on now, to the last byte; and up to each mark, which follows
/// a flush, to a volume that holds what was flushed.
#[test]
fn a_replayed_log_is_what_was_written() {
    for (mode, seed) in [(VolumeMode::Log, 1), (VolumeMode::Sung, 2), (VolumeMode::Han, 3)] {
        let files = Files::new();
        files.create(mode);
        let backing = files.logged();
        let device = VolumeDevice::open(backing.clone(), options()).unwrap().device;
        assert_eq!(device.details().io.engine, "threads", "{}", device.details().io);
        let marked = work(&device, seed);
        device.close().unwrap();
        drop(device);
        // What was trimmed last no flush has covered yet.
        Backing::flush(&mut { backing }).unwrap();

        let mut log = files.reader();
        let (target, last) = (files.path("whole"), log.entries() - 1);
        copy(&files.path("base"), &target);
        replay(&target, &mut log, last).unwrap();
        let same = fs::read(&target).unwrap() == fs::read(files.path("volume")).unwrap();
        assert!(same, "{mode:?}: the whole log");
        assert!(marked.len() > 5, "{}", marked.len());
        for (text, expected) in marked {
            let target = files.replay_to_mark(&text);
            assert!(content(&target) == expected, "{mode:?}: up to {text}");
            fs::remove_file(target).unwrap();
        }
    }
}

/// Nothing is in the log before a flush says so.
#[test]
fn what_is_not_flushed_is_not_in_the_log() {
    let files = Files::new();
    files.create(VolumeMode::Log);
    let mut options = options();
    // Nothing is flushed in the background, and writes are answered when the backing has them.
    let never = Nanos::new(1 << 50);
    (options.engine.checkpoint_age, options.engine.flush_age) = (never, never);
    options.engine.acknowledge = Acknowledge::Complete;
    let device = files.open_logged_with(options);
    device.flush().unwrap();
    let before = files.reader().entries();
    device.write(0, &vec![7; 1 << 20], false).unwrap();
    assert_eq!(files.reader().entries(), before);
    device.flush().unwrap();
    assert!(files.reader().entries() >= before + 2);
}

/// On an emulated SSD nothing is remapped, as the log has no words for it, and the log can be replayed to a file.
#[test]
fn the_log_of_a_volume_on_an_emulated_ssd() {
    let folder = Folder::new(&roomy(RemapScheme::Lh));
    let files = Files::new();
    let open = || {
        let image = onefold_device::Image::open(&folder.path(), onefold_device::Access::Exclusive);
        let options = OpenOptions::new(Latency::None);
        let ssd = SsdDevice::open(image.unwrap(), &roomy(RemapScheme::Lh), options).unwrap();
        VolumeBacking::ssd(ssd.device)
    };
    {
        let backing = open();
        let spec = VolumeSpec {
            bytes: Some(8 * MIB),
            segment_bytes: Some(256 << 10),
            ..VolumeSpec::default()
        };
        VolumeDevice::format(&backing, &spec, false).unwrap();
        let mut base = vec![0; usize::try_from(backing.blocks() * BLOCK).unwrap()];
        backing.as_ssd().unwrap().read(0, &mut base).unwrap();
        fs::write(files.path("base"), &base).unwrap();
        backing.close().unwrap();
    }
    let backing = open().with_write_log(&files.path("log")).unwrap();
    let device = VolumeDevice::open(backing, options()).unwrap().device;
    assert!(!device.details().remaps);
    let marked = work(&device, 4);
    device.close().unwrap();
    for (text, expected) in marked {
        assert!(content(&files.replay_to_mark(&text)) == expected, "up to {text}");
    }
}

#[test]
fn what_a_log_has_no_words_for_is_refused() {
    let files = Files::new();
    files.create_on(160 * MIB, VolumeMode::Log);
    let open = || VolumeBacking::open(&files.path("volume"), true).unwrap();
    let device = VolumeDevice::open(open(), options()).unwrap().device;
    let refused = device.mark("here").unwrap_err().to_string();
    assert!(refused.contains("no write log is kept"), "{refused}");
    device.close().unwrap();
    drop(device);

    let mut uring = options();
    uring.io = VolumeIo::Uring;
    let backing = open().with_write_log(&files.path("log")).unwrap();
    let refused = VolumeDevice::open(backing, uring).err().unwrap().to_string();
    assert!(refused.contains("io_uring"), "{refused}");
    let refused = open().with_write_log(&files.path("log")).err().unwrap();
    assert!(matches!(refused, VolumeError::WriteLog(WriteLogError::Exists { .. })), "{refused}");
    fs::remove_file(files.path("log")).unwrap();

    let device = files.open_logged();
    let to = VolumeResize { backing_bytes: Some(256 * MIB), ..VolumeResize::default() };
    let refused = device.resize(&to).unwrap_err().to_string();
    assert!(refused.contains("another size"), "{refused}");
    let refused = device.mark(&"x".repeat(480)).unwrap_err().to_string();
    assert!(refused.contains("a mark of 480 bytes; expected at most 479"), "{refused}");
    device.mark(&"x".repeat(479)).unwrap();
    device.close().unwrap();
}

fn words(words: [u64; 4]) -> Vec<u8> {
    words.into_iter().flat_map(u64::to_le_bytes).collect()
}

/// A log as the kernel writes it for a device with sectors of 4 KiB: metadata with a flush before it and FUA behind it, a discard, a
/// mark, and more behind the last entry that counts.
fn of_the_kernel() -> Vec<u8> {
    let sector = |mut bytes: Vec<u8>| {
        bytes.resize(4096, 0);
        bytes
    };
    let first = [0x006A_7366_7773_6872_u64, 1, 4].into_iter().flat_map(u64::to_le_bytes);
    let mut log = sector(first.chain(4096_u32.to_le_bytes()).collect());
    log.extend(sector(words([2, 2, 0, 0])));
    log.extend(vec![0xAA; 8192]);
    log.extend(sector(words([3, 1, 4, 0])));
    log.extend(sector([words([0, 0, 8, 5]), b"proof".to_vec()].concat()));
    log.extend(sector(words([1, 1, 0x13, 0])));
    log.extend(vec![0xBB; 4096]);
    log.extend(vec![0xCC; 300]);
    log
}

fn target(files: &Files) -> PathBuf {
    let path = files.path("target");
    fs::write(&path, vec![0x11; 4 * 4096]).unwrap();
    path
}

fn blocks(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap().chunks(4096).map(|block| block[0]).collect()
}

#[test]
fn a_log_of_the_kernel_is_replayed() {
    let files = Files::new();
    fs::write(files.path("log"), of_the_kernel()).unwrap();
    let path = target(&files);
    let mut log = files.reader();
    assert_eq!((log.entries(), log.sector_bytes()), (4, 4096));
    let mark = log.find_mark("proof", 0).unwrap();
    assert_eq!(mark, 2);
    replay(&path, &mut log, mark).unwrap();
    assert_eq!(blocks(&path), [0x11, 0x11, 0xAA, 0]);
    let done = VolumeBacking::open(&path, true).unwrap().replay(&mut log, 3..=3).unwrap();
    assert_eq!((done.entries, done.written, done.discarded), (1, 4096, 0));
    assert_eq!(blocks(&path), [0x11, 0xBB, 0xAA, 0]);
    let missing = log.find_mark("proof", 3).unwrap_err().to_string();
    assert!(missing.contains("no mark \"proof\" from entry 3 on"), "{missing}");
    let missing = replay(&path, &mut log, 4).unwrap_err().to_string();
    assert!(missing.contains("has entries 0 to 3, and not 4"), "{missing}");
}

/// Each length that a log can be cut to, and each bit of what it says of itself: one error or a replay, and an error that is found
/// before the end changed nothing.
#[test]
fn damaged_logs_are_refused_or_replayed() {
    let files = Files::new();
    let whole = of_the_kernel();
    let path = target(&files);
    let before = fs::read(&path).unwrap();
    let refused = Cell::new(0);
    let attempt = |bytes: &[u8]| {
        fs::write(files.path("log"), bytes).unwrap();
        let done = WriteLogReader::open(&files.path("log")).and_then(|mut log| {
            let last = log.entries().max(1) - 1;
            replay(&path, &mut log, last)
        });
        if done.is_err() {
            refused.set(refused.get() + 1);
            assert!(fs::read(&path).unwrap() == before, "a log that was refused changed something");
        } else {
            fs::write(&path, &before).unwrap();
        }
        done
    };
    let needed = whole.len() - 300;
    for len in (0..needed).step_by(509).chain([8, 24, 27, 28, needed - 1]) {
        let error = attempt(&whole[..len]).unwrap_err();
        let expected = if len < 28 { "is not a write log" } else { "is cut short: entry" };
        assert!(error.to_string().contains(expected), "{len}: {error}");
    }
    attempt(&whole[..needed]).unwrap();
    // The first sector, and the entries.
    for (at, len) in [(0, 28), (4096, 32), (16_384, 32), (20_480, 40), (24_576, 32)] {
        for bit in 0..len * 8 {
            let mut bytes = whole.clone();
            bytes[at + bit / 8] ^= 1 << (bit % 8);
            let _ = attempt(&bytes);
        }
    }
    assert!(refused.get() > 400, "{refused:?}");
    let mut far = whole.clone();
    far[24_576] = 4;
    let error = attempt(&far).unwrap_err().to_string();
    assert!(error.contains("bytes 16384 to 20480, and the target has 16384"), "{error}");
}
