//! The states against a naive model: every subset of what was not durable, written out by hand.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use onefold_crash::{Disk, Log, State, States, What};
use onefold_format::{WriteLogEntry, WriteLogSuper};
use onefold_units::Rng;

const PAGE: usize = 4096;
const PAGES: usize = 6;
const SECTORS: u64 = 8;

/// What happens to a tiny disk.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// First page, pages, FUA.
    Write(usize, usize, bool),
    Discard(usize, usize),
    Flush,
}

fn steps(rng: &mut Rng) -> Vec<Step> {
    let pages = u64::try_from(PAGES).unwrap();
    let mut below = |most: u64| usize::try_from(rng.below(most)).unwrap();
    let count = 1 + below(9);
    (0..count)
        .map(|_| {
            let first = below(pages);
            let len = 1 + below(2).min(PAGES - first - 1);
            match below(8) {
                0 | 1 => Step::Flush,
                2 => Step::Discard(first, len),
                3 => Step::Write(first, len, true),
                _ => Step::Write(first, len, false),
            }
        })
        .collect()
}

/// What a step writes: a content that no other step has.
fn content(step: usize) -> u8 {
    u8::try_from(step + 100).unwrap()
}

/// A log of dm-log-writes, byte by byte, and the disk before: page `n` holds `n`.
fn files(folder: &Path, steps: &[Step]) -> (std::path::PathBuf, std::path::PathBuf) {
    let mut log = vec![0; 512];
    let mut put = |entry: WriteLogEntry, flags: u64, data: &[u8]| {
        let mut sector = [0; 512];
        sector[..32].copy_from_slice(&entry.encode());
        sector[16..24].copy_from_slice(&flags.to_le_bytes());
        log.extend_from_slice(&sector);
        log.extend_from_slice(data);
    };
    for (at, step) in steps.iter().enumerate() {
        let sector = |page: usize| u64::try_from(page).unwrap() * SECTORS;
        match *step {
            Step::Flush => put(WriteLogEntry::FLUSH, 1, &[]),
            Step::Discard(first, len) => {
                put(WriteLogEntry::discard(sector(first), sector(len)), 4, &[]);
            }
            Step::Write(first, len, fua) => {
                let entry = WriteLogEntry::write(sector(first), sector(len));
                put(entry, u64::from(fua) << 1, &vec![content(at); len * PAGE]);
            }
        }
    }
    let entries = u64::try_from(steps.len()).unwrap();
    log[..28].copy_from_slice(&WriteLogSuper { entries, sector_bytes: 512 }.encode());
    let base: Vec<u8> =
        (0..PAGES).flat_map(|page| vec![u8::try_from(page).unwrap(); PAGE]).collect();
    let (log_path, base_path) = (folder.join("log"), folder.join("base"));
    std::fs::write(&log_path, log).unwrap();
    std::fs::write(&base_path, base).unwrap();
    (log_path, base_path)
}

/// The first byte of each page: a whole page has one content.
type Contents = [u8; PAGES];

/// Every content that the disk can have after a cut behind `at` steps.
fn naive(steps: &[Step], at: usize) -> BTreeSet<Contents> {
    // For each page what is durable, and the writes that compete with it, in order.
    let mut durable: Contents = std::array::from_fn(|page| u8::try_from(page).unwrap());
    let mut pending: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
    for (number, step) in steps[..at].iter().enumerate() {
        match *step {
            Step::Flush => {
                for (page, writes) in std::mem::take(&mut pending) {
                    durable[page] = *writes.last().unwrap();
                }
            }
            Step::Write(first, len, true) => {
                durable[first..first + len].fill(content(number));
                pending.retain(|page, _| !(first..first + len).contains(page));
            }
            Step::Write(first, len, false) => {
                for page in first..first + len {
                    pending.entry(page).or_default().push(content(number));
                }
            }
            Step::Discard(first, len) => {
                for page in first..first + len {
                    pending.entry(page).or_default().push(0);
                }
            }
        }
    }
    let mut all = BTreeSet::from([durable]);
    for (page, writes) in pending {
        let choices = |contents: &Contents| {
            let with = |content: u8| {
                let mut contents = *contents;
                contents[page] = content;
                contents
            };
            writes.iter().map(|content| with(*content)).collect::<Vec<_>>()
        };
        let more: Vec<Contents> = all.iter().flat_map(choices).collect();
        all.extend(more);
    }
    all
}

fn contents(log: &Arc<Log>, state: &State) -> Contents {
    let mut bytes = vec![0; PAGES * PAGE];
    Disk::new(log.clone(), state).read_units(0, &mut bytes).unwrap();
    let page = |page: usize| {
        let content = &bytes[page * PAGE..(page + 1) * PAGE];
        assert!(content.iter().all(|byte| *byte == content[0]), "a page is torn");
        content[0]
    };
    std::array::from_fn(page)
}

/// Each state is one that the model allows; together with chance they are all of them; none has the content of another one.
#[test]
fn states_are_those_of_the_naive_model() {
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let steps = steps(&mut rng);
        let folder = tempfile::tempdir().unwrap();
        let (log, base) = files(folder.path(), &steps);
        let log = Arc::new(Log::open(&log, &base).unwrap());
        assert_eq!(log.unit_bytes(), 4096);
        let mut states = States::new(&log, 6000);
        let (mut found, mut digests) = (BTreeSet::new(), BTreeSet::new());
        while let Some((state, digest)) = states.next_new().unwrap() {
            let contents = contents(&log, &state);
            let name = state.name(&log);
            assert!(naive(&steps, state.at()).contains(&contents), "{seed} {name}: {steps:?}");
            assert!(found.insert(contents), "{seed} {name}: told twice");
            assert!(digests.insert(digest), "{seed} {name}: a digest twice");
            assert_eq!(State::parse(&name, &log).unwrap(), state, "{name}");
            let same = State::missing(state.at(), state.lost(&log));
            assert_eq!(self::contents(&log, &same), contents, "{seed} {name} by what is lost");
        }
        // Before each flush, and at the end, everything that is possible.
        let is_end = |at: &usize| steps.get(*at).is_none_or(|step| matches!(step, Step::Flush));
        for at in (0..=steps.len()).filter(is_end) {
            for contents in naive(&steps, at) {
                assert!(found.contains(&contents), "{seed} at {at}: {contents:?} of {steps:?}");
            }
        }
    }
}

/// The least that a drive may keep, and what a drive with a write-through cache keeps, by name.
#[test]
fn names_say_what_is_there() {
    let steps = [
        Step::Write(0, 2, false),
        Step::Write(1, 1, false),
        Step::Flush,
        Step::Write(0, 1, true),
        Step::Write(2, 2, false),
    ];
    let folder = tempfile::tempdir().unwrap();
    let (log, base) = files(folder.path(), &steps);
    let log = Arc::new(Log::open(&log, &base).unwrap());
    let of = |name: &str| contents(&log, &State::parse(name, &log).unwrap());
    assert_eq!(of("e0"), [0, 1, 2, 3, 4, 5]);
    assert_eq!(of("e2-all"), [100, 101, 2, 3, 4, 5]);
    assert_eq!(of("e2-miss2"), [100, 100, 2, 3, 4, 5]);
    assert_eq!(of("e2-only2"), [0, 101, 2, 3, 4, 5]);
    assert_eq!(of("e2-miss1.1"), [100, 101, 2, 3, 4, 5]);
    assert_eq!(of("e3"), [100, 101, 2, 3, 4, 5]);
    assert_eq!(of("e4"), [103, 101, 2, 3, 4, 5]);
    assert_eq!(of("e5-miss5.0"), [103, 101, 2, 104, 4, 5]);
    assert_eq!(of("e2-miss1+2"), [0, 1, 2, 3, 4, 5]);
    for (name, problem) in [
        ("e6", "the log has entries 1 to 5"),
        ("e3-miss1", "entry 1 is not pending there"),
        ("e5-miss", "expected a name"),
        ("e5-miss5.0-2", "entry 5 has 2 units of 4096 bytes, from 0"),
        ("x", "expected a name"),
        ("e5-some", "expected a name"),
    ] {
        let error = State::parse(name, &log).unwrap_err().to_string();
        assert!(error.contains(problem), "{name}: {error}");
    }
    assert!(matches!(log.events()[3].what, What::Write { fua: true }));
}

/// A log that was cut at any byte is read up to its last whole entry, or refused.
#[test]
fn a_log_cut_short_is_read_up_to_its_last_whole_entry() {
    let steps =
        [Step::Write(0, 2, false), Step::Flush, Step::Discard(1, 1), Step::Write(3, 1, true)];
    let folder = tempfile::tempdir().unwrap();
    let (path, base) = files(folder.path(), &steps);
    let whole = std::fs::read(&path).unwrap();
    let ends = [512, 512 + 512 + 2 * PAGE, 512 * 3 + 2 * PAGE, 512 * 4 + 2 * PAGE, whole.len()];
    for len in (0..=whole.len()).step_by(64).chain([whole.len()]) {
        std::fs::write(&path, &whole[..len]).unwrap();
        match Log::open(&path, &base) {
            Ok(log) => {
                let entries = ends[1..].iter().filter(|end| **end <= len).count();
                assert_eq!(
                    (log.events().len(), log.is_cut_short()),
                    (entries, entries < 4),
                    "{len}"
                );
            }
            Err(error) => assert!(len < 28, "{len}: {error}"),
        }
    }
    std::fs::write(&path, &whole).unwrap();
    std::fs::write(&base, vec![0; PAGE]).unwrap();
    assert!(Log::open(&path, &base).unwrap_err().to_string().contains("the log of another disk"));
}

/// What is written to a disk in a state stays in memory: neither the log nor the disk before changes.
#[test]
fn writes_to_a_state_change_nothing_else() {
    use onefold_device::BlockDevice;
    let steps = [Step::Write(0, 2, false), Step::Flush, Step::Write(1, 1, false)];
    let folder = tempfile::tempdir().unwrap();
    let (path, base) = files(folder.path(), &steps);
    let before = (std::fs::read(&path).unwrap(), std::fs::read(&base).unwrap());
    let log = Arc::new(Log::open(&path, &base).unwrap());
    let state = State::parse("e3-all", &log).unwrap();
    let disk = Disk::new(log.clone(), &state);
    disk.write(4000, &[7; 200], false).unwrap();
    disk.trim(2 * 4096 + 100, 50).unwrap();
    let mut bytes = [0; 300];
    disk.read(3950, &mut bytes).unwrap();
    assert!(bytes[..50] == [100; 50] && bytes[50..250] == [7; 200] && bytes[250..] == [102; 50]);
    disk.read(2 * 4096, &mut bytes).unwrap();
    assert!(bytes[..100] == [2; 100] && bytes[100..150] == [0; 50] && bytes[150..] == [2; 150]);
    assert!(disk.read(u64::try_from(PAGES * PAGE).unwrap() - 1, &mut [0; 2]).is_err());
    assert_eq!(contents(&log, &state), [100, 102, 2, 3, 4, 5]);
    assert_eq!(before, (std::fs::read(&path).unwrap(), std::fs::read(&base).unwrap()));
    // Holes of the disk before are told, where nothing was written.
    std::fs::File::create(&base).unwrap().set_len(u64::try_from(64 * PAGE).unwrap()).unwrap();
    let log = Arc::new(Log::open(&path, &base).unwrap());
    let disk = Disk::new(log.clone(), &state);
    disk.write(40 * 4096, &[1; 10], false).unwrap();
    let extent = |page: u64| {
        let extent = disk.extent(page * 4096, disk.size()).unwrap();
        (extent.len / 4096, extent.mapped)
    };
    let told = [0, 1, 2, 39, 40, 41].map(extent);
    assert_eq!(told, [(1, true), (1, true), (38, false), (1, false), (1, true), (23, false)]);
}

/// A content that was right when nothing was promised is another state once something is.
#[test]
fn states_of_one_content_are_told_apart_by_what_was_promised() {
    let steps = [Step::Write(0, 1, false), Step::Flush, Step::Flush, Step::Flush];
    let folder = tempfile::tempdir().unwrap();
    let (log, base) = files(folder.path(), &steps);
    let log = Log::open(&log, &base).unwrap();
    let names = |mut states: States<'_>| {
        let mut names = Vec::new();
        while let Some((state, _)) = states.next_new().unwrap() {
            names.push(state.name(&log));
        }
        names
    };
    assert_eq!(names(States::new(&log, 0)), ["e0", "e2"]);
    assert_eq!(names(States::new(&log, 0).with_promises(vec![3])), ["e0", "e2", "e3"]);
    assert_eq!(names(States::new(&log, 0).since(3)), ["e3"]);
}
