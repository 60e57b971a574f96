//! A volume on a file and on an emulated SSD, against an array of bytes.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use onefold_device::{
    BlockDevice, Contents, OnFull, VolumeBacking, VolumeDevice, VolumeError, VolumeIo,
    VolumeOptions, VolumeResize, VolumeSpec,
};
use onefold_format::volume::{VolumeMode, VolumeName};
use onefold_units::{Rng, Status};
use onefold_volume::{PaperFlush, Sent};

const MIB: u64 = 1 << 20;

fn options() -> VolumeOptions {
    let mut options = VolumeOptions::default();
    options.engine.checkpoint_blocks = 2048;
    options
}

/// Every way to a file: through `io_uring` or threads, around the page cache or through it.
const WAYS: [(VolumeIo, bool); 4] = [
    (VolumeIo::Uring, true),
    (VolumeIo::Uring, false),
    (VolumeIo::Threads, true),
    (VolumeIo::Threads, false),
];

/// `None` where the system does not allow it.
fn open(path: &Path, (io, direct): (VolumeIo, bool)) -> Option<VolumeDevice> {
    let backing = VolumeBacking::open(path, true).unwrap();
    let mut options = options();
    (options.io, options.direct) = (io, direct);
    match VolumeDevice::open(backing, options) {
        Ok(opened) => Some(opened.device),
        Err(VolumeError::NoUring(error)) => {
            eprintln!("not tested: io_uring: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

struct Rig {
    device: VolumeDevice,
    model: Vec<u8>,
}

impl Rig {
    fn work(&mut self, rng: &mut Rng, steps: u32) {
        let size = self.device.size();
        for _ in 0..steps {
            let offset = rng.below(size - 300_000);
            let len = 1 + rng.below(200_000);
            let (offset, len) = match rng.below(3) {
                0 => (offset, len),
                1 => (offset / 512 * 512, len.next_multiple_of(512)),
                _ => (offset / 4096 * 4096, len.next_multiple_of(4096)),
            };
            let range = usize::try_from(offset).unwrap()..usize::try_from(offset + len).unwrap();
            match rng.below(8) {
                0 => {
                    self.device.trim(offset, len).unwrap();
                    self.model[range].fill(0);
                }
                1 | 2 => {
                    let mut found = vec![1; range.len()];
                    self.device.read(offset, &mut found).unwrap();
                    assert!(found == self.model[range], "{offset} + {len} is not as written");
                }
                3 => {
                    self.device.flush().unwrap();
                }
                _ => {
                    let byte = u8::try_from(rng.below(255)).unwrap();
                    let data: Vec<u8> =
                        range.clone().map(|at| byte ^ u8::try_from(at % 251).unwrap()).collect();
                    self.device.write(offset, &data, rng.below(20) == 0).unwrap();
                    self.model[range].copy_from_slice(&data);
                }
            }
        }
    }

    fn compare(&self) {
        let mut found = vec![1; self.model.len()];
        for (at, piece) in found.chunks_mut(1 << 20).enumerate() {
            self.device.read(at as u64 * MIB, piece).unwrap();
        }
        assert!(found == self.model, "the volume is not as written");
    }
}

#[test]
fn what_a_backing_holds_is_not_lost_by_accident() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("volume");
    let backing = VolumeBacking::create(&path, 96 * MIB).unwrap();
    let spec = VolumeSpec::default();
    VolumeDevice::format(&backing, &spec, false).unwrap();
    let again = VolumeDevice::format(&backing, &spec, false).err().unwrap();
    assert!(matches!(again, VolumeError::Holds { what: Contents::Known("a volume") }), "{again}");
    VolumeDevice::format(&backing, &spec, true).unwrap();
    let busy = VolumeBacking::open(&path, true).err().unwrap();
    assert!(matches!(busy, VolumeError::Busy { .. }), "{busy}");
    let exists = VolumeBacking::create(&path, 96 * MIB).err().unwrap();
    assert!(matches!(exists, VolumeError::Exists { .. }), "{exists}");
}

#[test]
fn a_shrunk_backing_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("volume");
    let backing = VolumeBacking::create(&path, 96 * MIB).unwrap();
    VolumeDevice::format(&backing, &VolumeSpec::default(), false).unwrap();
    drop(backing);
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(95 * MIB).unwrap();
    let backing = VolumeBacking::open(&path, true).unwrap();
    let refused = VolumeDevice::open(backing, options()).err().unwrap();
    assert!(refused.to_string().contains("the volume was made on 24576"), "{refused}");
}

fn create(path: &Path, bytes: u64) {
    let backing = VolumeBacking::create(path, 96 * MIB).unwrap();
    let spec =
        VolumeSpec { bytes: Some(bytes), segment_bytes: Some(512 << 10), ..VolumeSpec::default() };
    VolumeDevice::format(&backing, &spec, false).unwrap();
}

#[test]
fn a_volume_on_a_file() {
    for (seed, way) in (11..).zip(WAYS) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("volume");
        create(&path, 48 * MIB);
        let Some(device) = open(&path, way) else { continue };
        let mut rig = Rig { device, model: vec![0; usize::try_from(48 * MIB).unwrap()] };
        let mut rng = Rng::new(seed);
        for round in 0..2 {
            rig.work(&mut rng, 600);
            rig.compare();
            rig.device.flush().unwrap();
            if round % 2 == 0 {
                rig.device.close().unwrap();
            }
            let Rig { device, model } = rig;
            drop(device);
            rig = Rig { device: open(&path, way).unwrap(), model };
            rig.compare();
        }
        let stats = rig.device.details().stats;
        assert_eq!(stats.crc_errors, 0, "{way:?}: {stats:?}");
    }
}

#[test]
fn what_cannot_be_had_is_refused_or_done_without() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("volume");
    create(&path, 48 * MIB);
    let device = open(&path, (VolumeIo::Threads, false)).unwrap();
    let io = device.details().io;
    assert_eq!((io.engine, io.direct, io.why), ("threads", false, None));
    drop(device);
    let device = open(&path, (VolumeIo::Auto, true)).unwrap();
    let io = device.details().io;
    assert_eq!(io.why.is_none(), io.engine == "uring" && io.direct, "{io}");
}

/// A reader that is there until it ends, however that is.
struct Reading<'a>(&'a AtomicU32);

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// A read of what was written at random has a place for every block. All are read at once, and none may be mixed up with
/// those of other readers.
#[test]
fn readers_of_scattered_blocks_do_not_mix_them_up() {
    const BLOCKS: u64 = 2048;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("volume");
    create(&path, 48 * MIB);
    for way in WAYS {
        let Some(device) = open(&path, way) else { continue };
        let mut rng = Rng::new(5);
        for at in 0..3 * BLOCKS {
            let lba = rng.below(BLOCKS).max(at.saturating_sub(2 * BLOCKS));
            device.write(lba * 4096, &[u8::try_from(lba % 251).unwrap(); 4096], false).unwrap();
        }
        for lba in 0..BLOCKS {
            device.write(lba * 4096, &[u8::try_from(lba % 251).unwrap(); 4096], false).unwrap();
            device.write((BLOCKS + lba) * 4096, &[0; 4096], false).unwrap();
        }
        device.flush().unwrap();
        let readers = AtomicU32::new(6);
        std::thread::scope(|scope| {
            let (device, readers) = (&device, &readers);
            // Readers find their turn although somebody writes all the time.
            scope.spawn(move || {
                let mut rng = Rng::new(77);
                while readers.load(Relaxed) > 0 {
                    let lba = BLOCKS + rng.below(BLOCKS);
                    device.write(lba * 4096, &[9; 4096], false).unwrap();
                }
            });
            for reader in 0..6 {
                scope.spawn(move || {
                    let _reading = Reading(readers);
                    let mut rng = Rng::new(reader);
                    // Not aligned in memory either.
                    let mut found = vec![0; (1 << 20) + 1];
                    for _ in 0..40 {
                        let (lba, blocks) = (rng.below(BLOCKS - 256), 1 + rng.below(256));
                        let range = 1..=usize::try_from(blocks * 4096).unwrap();
                        device.read(lba * 4096, &mut found[range.clone()]).unwrap();
                        for (at, block) in (lba..).zip(found[range].chunks(4096)) {
                            assert!(block.iter().all(|byte| u64::from(*byte) == at % 251), "{at}");
                        }
                    }
                });
            }
        });
        assert!(device.details().stats.read_runs > 10_000, "the blocks lie in one place");
        device.close().unwrap();
    }
}

/// A version of each block that was written, and the newest one that a flush covered.
struct Versions {
    written: Vec<u8>,
    flushed: Vec<u8>,
}

/// Writes, trims nothing, flushes and reads until something fails. Whether nothing did.
fn work_until_failure(device: &VolumeDevice, versions: &mut Versions, rng: &mut Rng) -> bool {
    for step in 0..120_u32 {
        let lba = rng.below(versions.written.len() as u64);
        let at = usize::try_from(lba).unwrap();
        if step % 10 == 9 {
            if device.flush().is_err() {
                return false;
            }
            versions.flushed.clone_from(&versions.written);
        } else if step % 7 == 3 {
            let mut block = [0; 4096];
            // A read may fail without consequences; what it gives has to be right.
            if device.read(lba * 4096, &mut block).is_ok() {
                assert_eq!(block, [versions.written[at]; 4096], "block {lba}");
            }
        } else {
            let version = versions.written[at] + 1;
            // Counts even if it fails: it may have become durable.
            versions.written[at] = version;
            if device.write(lba * 4096, &[version; 4096], step % 13 == 5).is_err() {
                return false;
            }
        }
    }
    device.flush().is_ok_and(|_| {
        versions.flushed.clone_from(&versions.written);
        true
    })
}

/// Every request to the backing fails once, in opening or in work: what a flush covered is there afterwards, nothing
/// else but what was written, and an error is told.
#[test]
fn every_request_to_the_backing_may_fail() {
    for way in [(VolumeIo::Uring, true), (VolumeIo::Threads, false)] {
        let mut failures = 0;
        for nth in 1.. {
            // In memory, if there is such a place: what counts here is not how long a flush takes.
            let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
            let directory = directory.unwrap();
            let path = directory.path().join("volume");
            create(&path, 48 * MIB);
            let mut versions = Versions { written: vec![0; 40], flushed: vec![0; 40] };
            let backing = VolumeBacking::open(&path, true).unwrap();
            backing.fail(nth, 1);
            let mut options = options();
            (options.io, options.direct) = way;
            options.engine.checkpoint_batches = 12;
            let opened = VolumeDevice::open(backing.clone(), options);
            if matches!(opened, Err(VolumeError::NoUring(_))) {
                return;
            }
            if let Ok(opened) = opened {
                let went_well =
                    work_until_failure(&opened.device, &mut versions, &mut Rng::new(nth));
                failures += u32::from(!went_well);
            }
            let reached = backing.left_before_failure() == 0;
            drop(backing);
            let device = open(&path, way).unwrap();
            for (lba, (flushed, written)) in
                versions.flushed.iter().zip(&versions.written).enumerate()
            {
                let mut block = [0; 4096];
                device.read(lba as u64 * 4096, &mut block).unwrap();
                let found = block[0];
                assert!(block.iter().all(|byte| *byte == found), "{nth}: block {lba} is mixed");
                assert!(
                    (*flushed..=*written).contains(&found),
                    "{nth}: {flushed} {found} {written}"
                );
            }
            device.close().unwrap();
            if !reached {
                assert!(nth > 30, "only {nth} requests were made");
                break;
            }
        }
        // Writes that fail go elsewhere; flushes cannot.
        assert!(failures > 5, "{way:?}: only {failures} failures were told");
    }
}

/// An opening sends what failed again, as a volume at work does: only one whose flush fails, or that is down for longer, fails.
#[test]
fn an_opening_outlasts_errors_that_pass() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("volume");
    create(&path, 48 * MIB);
    let device = open(&path, (VolumeIo::Threads, false)).unwrap();
    device.write(0, &[7; 4096], true).unwrap();
    device.close().unwrap();
    let (mut requests, mut failed) = (0, 0);
    for nth in 1.. {
        let backing = VolumeBacking::open(&path, true).unwrap();
        backing.fail(nth, 1);
        let opened = VolumeDevice::open(backing.clone(), options());
        let reached = backing.left_before_failure() == 0;
        let Ok(opened) = opened else {
            failed += 1;
            continue;
        };
        backing.fail(0, 0);
        let mut block = [0; 4096];
        opened.device.read(0, &mut block).unwrap();
        assert_eq!(block, [7; 4096]);
        opened.device.close().unwrap();
        requests = nth;
        if !reached {
            break;
        }
    }
    assert!(requests > 8 && failed <= 3, "{failed} of {requests} openings failed");
    let backing = VolumeBacking::open(&path, true).unwrap();
    backing.fail(1, 1000);
    assert!(VolumeDevice::open(backing, options()).is_err(), "it is down");
}

/// A map page that could not be read was an error for every later request, too.
#[test]
fn an_error_that_passes_is_told_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("volume");
    create(&path, 48 * MIB);
    let mut options = options();
    // Of twelve map pages.
    options.engine.map_pages = 4;
    let backing = VolumeBacking::open(&path, true).unwrap();
    let device = VolumeDevice::open(backing.clone(), options).unwrap().device;
    let places: Vec<u64> = (0..12).map(|page| page * 4 * MIB).collect();
    for offset in &places {
        device.write(*offset, &[7; 4096], false).unwrap();
    }
    device.flush().unwrap();
    let mut block = [0; 4096];
    // Requests are those for data and for map pages; the latter come first. A page is asked for as a whole, and if that fails
    // block by block.
    let told = places.iter().cycle().take(36).filter(|offset| {
        let faults = device.details().stats.map_faults;
        backing.fail(1, 100);
        let failed = device.read(**offset, &mut block).is_err();
        backing.fail(1, 0);
        // What is left of the page may still be tried.
        let is_over = (0..1000).any(|_| {
            std::thread::sleep(Duration::from_millis(5));
            device.read(**offset, &mut block).is_ok()
        });
        assert!(is_over, "the error stays");
        assert_eq!(block, [7; 4096]);
        failed && device.details().stats.map_faults > faults + 1
    });
    // No good end: a flush in the background may have been the one that failed.
    assert!(told.count() > 3, "all map pages were in memory");
}

/// Blocks that the process that is killed writes.
const KILLED_BLOCKS: u64 = 400;

/// The blocks that it writes in a round, before a flush.
fn of_round(round: u64) -> Vec<u64> {
    let mut rng = Rng::new(round);
    (0..60).map(|_| rng.below(KILLED_BLOCKS)).collect()
}

fn stamp(round: u64, lba: u64) -> Vec<u8> {
    [round.to_le_bytes(), lba.to_le_bytes()].concat().repeat(256)
}

/// Started by the test below in a process of its own: writes, and says which rounds are flushed.
#[test]
fn a_process_that_is_killed() {
    let Ok(path) = std::env::var("ONEFOLD_KILLED") else { return };
    let first: u64 = std::env::var("ONEFOLD_KILLED_FROM").unwrap().parse().unwrap();
    let way = if std::env::var("ONEFOLD_KILLED_URING").is_ok() { WAYS[0] } else { WAYS[3] };
    let device = open(Path::new(&path), way).unwrap();
    for round in first.. {
        for lba in of_round(round) {
            device.write(lba * 4096, &stamp(round, lba), false).unwrap();
        }
        device.flush().unwrap();
        writeln!(std::io::stdout(), "\nflushed {round}").unwrap();
    }
}

/// The last round of a process that it said is flushed.
fn kill_after(path: &Path, uring: bool, first: u64, rounds: u64) -> u64 {
    use std::io::BufRead;
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "volume::a_process_that_is_killed", "--nocapture"]);
    command.env("ONEFOLD_KILLED", path).env("ONEFOLD_KILLED_FROM", first.to_string());
    if uring {
        command.env("ONEFOLD_KILLED_URING", "1");
    }
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
    let mut flushed = first - 1;
    let mut said = || loop {
        let line = lines.next()?.unwrap();
        if let Some(round) = line.strip_prefix("flushed ") {
            return Some(round.parse::<u64>().unwrap());
        }
    };
    while flushed < first - 1 + rounds {
        flushed = said().expect("the process goes on until it is killed");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // What it said before it died counts.
    std::iter::from_fn(said).last().unwrap_or(flushed)
}

#[test]
fn a_killed_process_loses_nothing_that_was_flushed() {
    for way in [WAYS[0], WAYS[3]] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("volume");
        create(&path, 48 * MIB);
        if open(&path, way).is_none() {
            continue;
        }
        let mut flushed = 0;
        for kill in 0..5 {
            flushed = kill_after(&path, way.0 == VolumeIo::Uring, flushed + 1, 1 + 5 * kill);
            let device = open(&path, way).unwrap();
            for lba in 0..KILLED_BLOCKS {
                let mut block = vec![0; 4096];
                device.read(lba * 4096, &mut block).unwrap();
                let found = u64::from_le_bytes(block[..8].try_into().unwrap());
                let least =
                    (1..=flushed).rev().find(|round| of_round(*round).contains(&lba)).unwrap_or(0);
                assert!((least..=flushed + 1).contains(&found), "{lba}: {found}, not {least}");
                let right = if found == 0 { vec![0; 4096] } else { stamp(found, lba) };
                assert!(block == right, "block {lba} of round {found} is damaged");
            }
            device.close().unwrap();
        }
    }
}

/// A volume of 40 MiB on a file of four times as much.
fn format_40_mib(path: &Path) {
    let backing = VolumeBacking::create(path, 160 * MIB).unwrap();
    let spec = VolumeSpec { bytes: Some(40 * MIB), ..VolumeSpec::default() };
    VolumeDevice::format(&backing, &spec, false).unwrap();
}

#[test]
fn sizes_change_while_it_is_used() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("volume");
    format_40_mib(&path);
    let model = vec![0; usize::try_from(40 * MIB).unwrap()];
    let mut rig = Rig { device: open(&path, WAYS[0]).unwrap(), model };
    let mut rng = Rng::new(4);
    let refused = |rig: &Rig, to: VolumeResize| rig.device.resize(&to).unwrap_err().to_string();
    let logical = |mib: u64| VolumeResize { bytes: Some(mib * MIB), ..VolumeResize::default() };
    let backing =
        |mib: u64| VolumeResize { backing_bytes: Some(mib * MIB), ..VolumeResize::default() };
    for (mib, backing_mib) in [(60, 160), (90, 200), (20, 200), (20, 140), (50, 170)] {
        rig.work(&mut rng, 400);
        let to = VolumeResize {
            bytes: Some(mib * MIB),
            backing_bytes: Some(backing_mib * MIB),
            discard_tail: true,
        };
        rig.device.resize(&to).unwrap();
        assert_eq!(rig.device.size(), mib * MIB);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), backing_mib * MIB);
        rig.model.resize(usize::try_from(mib * MIB).unwrap(), 0);
        rig.compare();
        let Rig { device, model } = rig;
        device.close().unwrap();
        drop(device);
        rig = Rig { device: open(&path, WAYS[0]).unwrap(), model };
        rig.compare();
    }
    let tail = vec![3; 4096];
    rig.device.write(49 * MIB, &tail, false).unwrap();
    rig.model[usize::try_from(49 * MIB).unwrap()..][..4096].fill(3);
    assert!(refused(&rig, logical(40)).contains("holds data"));
    assert!(refused(&rig, logical(4000)).contains("can hold data"));
    assert!(refused(&rig, backing(100)).contains("log segments"));
    assert!(refused(&rig, VolumeResize { bytes: Some(5), ..logical(1) }).contains("multiple"));
    rig.compare();
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 170 * MIB);
}

/// Handles of a member share its size, and are told of no other one.
#[test]
fn members_have_sizes_of_their_own() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("volume");
    format_40_mib(&path);
    let device = open(&path, WAYS[0]).unwrap();
    let last = 40 * MIB - 4096;
    device.write(last, &[1; 4096], false).unwrap();
    device.make_snapshot(&VolumeName::new("monday").unwrap()).unwrap();
    device.make_clone(&VolumeName::new("trial").unwrap()).unwrap();
    let (monday, trial) = (device.member("monday").unwrap(), device.member("trial").unwrap());
    let told = Arc::new(AtomicU64::new(0));
    let teller = Arc::clone(&told);
    monday.watch_size(Box::new(move |size| teller.store(size, Relaxed)));
    let to = |mib: u64| VolumeResize {
        bytes: Some(mib * MIB),
        discard_tail: true,
        ..VolumeResize::default()
    };
    device.resize(&to(60)).unwrap();
    device.write(59 * MIB, &[2; 4096], true).unwrap();
    device.resize(&to(8)).unwrap();
    trial.resize(&to(80)).unwrap();
    device.member("trial").unwrap().write(79 * MIB, &[3; 4096], true).unwrap();
    assert!(monday.resize(&to(80)).unwrap_err().to_string().contains("keeps the size"));
    assert!(device.write(last, &[2; 4096], false).is_err(), "behind the end");
    let sizes = [device.size(), monday.size(), trial.size()];
    assert_eq!(sizes, [8 * MIB, 40 * MIB, 80 * MIB]);
    assert_eq!(told.load(Relaxed), 0);
    device.close().unwrap();
    drop((device, monday, trial));

    let device = open(&path, WAYS[0]).unwrap();
    device.resize(&to(60)).unwrap();
    let read = |of: &VolumeDevice, at: u64| {
        let mut page = [9; 4096];
        of.read(at, &mut page).unwrap();
        page[0]
    };
    let (monday, trial) = (device.member("monday").unwrap(), device.member("trial").unwrap());
    assert_eq!([read(&device, last), read(&device, 59 * MIB)], [0, 0]);
    assert_eq!([read(&monday, last), read(&trial, last), read(&trial, 79 * MIB)], [1, 1, 3]);
    assert_eq!(device.size(), 60 * MIB);
    device.close().unwrap();
}

/// The modes of the papers on a file, with threads and requests at any byte.
#[test]
fn volumes_of_the_modes_sung_and_han_on_a_file() {
    for mode in [VolumeMode::Sung, VolumeMode::Han] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("volume");
        let backing = VolumeBacking::create(&path, 44 * MIB).unwrap();
        let spec = VolumeSpec { mode, bytes: Some(32 * MIB), ..VolumeSpec::default() };
        VolumeDevice::format(&backing, &spec, false).unwrap();
        drop(backing);
        let device = open(&path, WAYS[0]).unwrap();
        let mut rig = Rig { device, model: vec![0; usize::try_from(32 * MIB).unwrap()] };
        let (mut rng, mut moved) = (Rng::new(11), 0);
        for round in 0..4 {
            rig.work(&mut rng, 500);
            rig.compare();
            rig.device.flush().unwrap();
            let details = rig.device.details();
            assert_eq!(details.mode, mode);
            moved += details.stats.sent(Sent::Cleaning);
            if round % 2 == 0 {
                rig.device.close().unwrap();
            }
            let Rig { device, model } = rig;
            drop(device);
            rig = Rig { device: open(&path, WAYS[0]).unwrap(), model };
            rig.compare();
        }
        assert!(moved > 0, "{mode:?}: nothing was cleaned");
    }
}

#[test]
fn what_does_not_go_with_a_mode_is_refused() {
    let label = |spec: VolumeSpec| spec.label(25_000).err().map(|error| error.to_string());
    let (mode, default) = (VolumeMode::Han, VolumeSpec::default());
    let segments = VolumeSpec { mode, segment_bytes: Some(MIB), ..default.clone() };
    assert!(label(segments).unwrap().contains("four equal partitions"));
    let unit = VolumeSpec { mode, unit_bytes: Some(16384), ..default.clone() };
    assert!(label(unit).unwrap().contains("leave out --unit"));
    let large = VolumeSpec { mode, bytes: Some(96 * MIB), ..default.clone() };
    assert!(label(large).unwrap().contains("are to be exported"));
    assert_eq!(label(VolumeSpec { mode, ..default }), None);
}

#[test]
fn a_served_volume_never_skips_flushes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("volume");
    let backing = VolumeBacking::create(&path, 96 * MIB).unwrap();
    VolumeDevice::format(&backing, &VolumeSpec::default(), false).unwrap();
    let mut options = options();
    options.engine.paper_flush = PaperFlush::Own;
    let refused = VolumeDevice::open(backing, options).err().unwrap();
    assert!(matches!(refused, VolumeError::PaperFlush), "{refused}");
}

/// The tables of `han` are in memory, all of them (Han 2021, sec. III-C): no limit that would not hold.
#[test]
fn a_limit_of_tables_is_refused_where_it_does_not_hold() {
    let directory = tempfile::tempdir().unwrap();
    for mode in [VolumeMode::Sung, VolumeMode::Han] {
        let path = directory.path().join(mode.name());
        let backing = VolumeBacking::create(&path, 96 * MIB).unwrap();
        let spec = VolumeSpec { mode, ..VolumeSpec::default() };
        VolumeDevice::format(&backing, &spec, false).unwrap();
        let mut limited = options();
        limited.engine.table_bytes = 64 * MIB;
        let refused = VolumeDevice::open(backing, limited).err().map(|error| error.to_string());
        let expected = "mode han has all tables in memory: leave out --map-memory";
        assert_eq!(refused.as_deref(), (mode == VolumeMode::Han).then_some(expected));
    }
}

#[test]
fn snapshots_and_clones_beside_the_device() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("volume");
    let backing = VolumeBacking::create(&path, 128 * MIB).unwrap();
    let spec = VolumeSpec { bytes: Some(24 * MIB), ..VolumeSpec::default() };
    VolumeDevice::format(&backing, &spec, false).unwrap();
    drop(backing);
    let mut rng = Rng::new(3);
    let name = |text| VolumeName::new(text).unwrap();
    let device = open(&path, WAYS[0]).unwrap();
    let mut device = Rig { model: vec![0; usize::try_from(device.size()).unwrap()], device };
    device.work(&mut rng, 150);
    device.device.make_snapshot(&name("daily")).unwrap();
    let held = device.model.clone();
    let snapshot = Rig { device: device.device.member("daily").unwrap(), model: held.clone() };
    let again = device.device.make_snapshot(&name("daily")).unwrap_err();
    assert!(again.to_string().contains("of that name"), "{again}");
    assert_eq!(snapshot.device.write(0, &[1; 4096], false), Err(Status::InvalidField));
    snapshot.device.make_clone(&name("copy")).unwrap();
    let mut clone = Rig { device: snapshot.device.member("copy").unwrap(), model: held };
    // All at once: a snapshot is read while its device and its clone are written.
    std::thread::scope(|scope| {
        scope.spawn(|| clone.work(&mut Rng::new(4), 150));
        scope.spawn(|| snapshot.compare());
        device.work(&mut rng, 150);
    });
    [&device, &clone, &snapshot].into_iter().for_each(Rig::compare);
    device.device.close().unwrap();

    // The file is free when all handles are gone.
    let models = [device, clone, snapshot].map(|rig| rig.model);
    let reopened = open(&path, WAYS[0]).unwrap();
    let [copy, daily] = ["copy", "daily"].map(|name| reopened.member(name).unwrap());
    let [one, two, three] = models;
    let device = Rig { device: reopened, model: one };
    let clone = Rig { device: copy, model: two };
    let snapshot = Rig { device: daily, model: three };
    [&device, &clone, &snapshot].into_iter().for_each(Rig::compare);
    let before = device.device.details().log.unwrap().usage.data_blocks;
    device.device.delete_member("daily").unwrap();
    device.device.delete_member("copy").unwrap();
    device.device.wait_until_freed();
    assert!(device.device.details().log.unwrap().usage.data_blocks < before);
    let mut byte = [0; 1];
    assert_eq!(snapshot.device.read(0, &mut byte), Err(Status::InvalidField));
    assert_eq!(device.device.members().len(), 1);
    device.compare();
    device.device.close().unwrap();
}

/// A volume that a snapshot fills, and the first byte of the device that could not be written any more.
fn full_of_a_snapshot(path: &Path) -> u64 {
    let backing = VolumeBacking::create(path, 64 * MIB).unwrap();
    let spec = VolumeSpec { bytes: Some(36 * MIB), ..VolumeSpec::default() };
    VolumeDevice::format(&backing, &spec, false).unwrap();
    drop(backing);
    let device = open(path, WAYS[2]).unwrap();
    let (size, piece) = (device.size(), vec![1; 1 << 20]);
    for offset in (0..size).step_by(1 << 20) {
        device.write(offset, &piece, false).unwrap();
    }
    device.make_snapshot(&VolumeName::new("daily").unwrap()).unwrap();
    let full = |offset: &u64| device.write(*offset, &piece, false) == Err(Status::NoSpace);
    let full = (0..size).step_by(1 << 20).find(full).expect("a snapshot takes space");
    device.close().unwrap();
    full
}

/// With `on_full = block` a write waits for space. Reads, flushes, trims and the deletion of snapshots go on, and it ends
/// when there is some; or when the volume is closed.
#[test]
fn a_write_waits_for_space() {
    let directory = tempfile::tempdir().unwrap();
    for end in ["room", "close", "stop"] {
        let path = directory.path().join(end);
        let full = full_of_a_snapshot(&path);
        let mut options = options();
        (options.io, options.on_full) = (VolumeIo::Threads, OnFull::Block);
        let backing = VolumeBacking::open(&path, true).unwrap();
        let device = VolumeDevice::open(backing, options).unwrap().device;
        let (piece, rest) = (vec![2; 1 << 20], device.size() - full);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut offsets = (0..rest).step_by(1 << 20).map(|at| full + at);
                offsets.try_for_each(|at| device.write(at, &piece, false).map(drop))
            });
            while device.details().stalls.count < 3 {
                assert!(!writer.is_finished(), "it waits");
                std::thread::yield_now();
            }
            let mut byte = [0; 1];
            device.read(0, &mut byte).unwrap();
            device.flush().unwrap();
            // What the snapshot has as well: that makes no room.
            device.trim(device.size() - 8192, 4096).unwrap();
            assert!(!writer.is_finished(), "there was no space");
            if end == "close" {
                device.close().unwrap();
                assert!(writer.join().unwrap().is_err());
                return;
            }
            if end == "stop" {
                // A server that stops closes the volume only when its clients have their answers.
                device.stop_waiting();
                let since = Instant::now();
                while !writer.is_finished() && since.elapsed() < Duration::from_secs(20) {
                    std::thread::yield_now();
                }
                let waits = !writer.is_finished();
                device.delete_member("daily").unwrap();
                assert_eq!((waits, writer.join().unwrap()), (false, Err(Status::NoSpace)));
                device.close().unwrap();
                return;
            }
            device.delete_member("daily").unwrap();
            assert_eq!(writer.join().unwrap(), Ok(()));
            let mut found = vec![0; 1 << 20];
            device.read(full, &mut found).unwrap();
            assert!(found == piece);
            device.close().unwrap();
        });
    }
}
