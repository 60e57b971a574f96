use std::collections::BTreeSet;

use onefold_units::convert::{float, u64_from};
use onefold_units::{Op, PAGE_BYTES};

use super::tree::{Pages, Tree};
use super::{GROUP, SqliteFill};
use crate::workload::{Pacing, Request, Workload, WorkloadError};

const DEVICE: u64 = 4 << 30;

fn requests(spec: &str) -> Vec<Request> {
    Workload::parse(spec).unwrap().instantiate(DEVICE, 1).unwrap().collect()
}

/// Blocks of the device that a request is about.
fn blocks(request: &Request) -> std::ops::Range<u64> {
    request.offset / PAGE_BYTES..(request.offset + u64::from(request.len)) / PAGE_BYTES
}

/// Blocks of the WAL with 1,000 frames: 1,068 at most.
const WAL: u64 = 1 + 7 * (GROUP + 1);

/// Whether a block of the WAL holds the page of a frame.
fn is_frame(block: u64) -> bool {
    block > 0 && !(block - 1).is_multiple_of(GROUP + 1)
}

#[test]
fn specifications() {
    for fill in SqliteFill::ALL {
        let workload = Workload::parse(fill.name()).unwrap();
        let rest = "values=100000,value=16KiB,frames=1000,checkpoint=write,qd=32";
        assert_eq!(workload.canonical(), format!("{},{rest}", fill.name()));
        assert!(!workload.has_remaps());
        assert!(Workload::describe(fill.name()).is_some());
        let spec =
            format!("{},values=10,value=4KiB,frames=9,checkpoint=remap,qd=4,seed=7", fill.name());
        let workload = Workload::parse(&spec).unwrap();
        assert_eq!(workload.pacing(), Pacing::Closed { depth: 4 });
        assert!(workload.has_remaps());
        assert_eq!(Workload::parse(&workload.canonical()).unwrap(), workload);
    }
    let refused = |spec: &str| Workload::parse(spec).unwrap_err();
    for wrong in ["values=0", "value=1000", "value=1MiB", "frames=0", "qd=0", "qd=1025"] {
        let error = refused(&format!("like-sqlite-fillseq,{wrong}"));
        assert!(matches!(error, WorkloadError::OutOfLimits { .. }), "{error}");
    }
    let error = refused("like-sqlite-fillseq,checkpoint=remapp");
    assert!(error.to_string().contains("did you mean `remap`"), "{error}");
    let large = Workload::parse("like-sqlite-fillseq,values=1M").unwrap();
    let error = large.instantiate(DEVICE, 1).unwrap_err();
    assert!(matches!(error, WorkloadError::FootprintTooLarge { .. }), "{error}");
    // Pages of a database have 32 bits, however large the device is.
    let large = Workload::parse("like-sqlite-fillseq,values=1G,value=512KiB").unwrap();
    assert!(large.instantiate(u64::MAX, 1).is_err());
}

/// The numbers are of `SQLite` 3.40.1: 20,000 `REPLACE` of a key of 16 B and a value of 16 KiB, each in a transaction of its own, into
/// `CREATE TABLE test (key blob, value blob, PRIMARY KEY(key)) WITHOUT ROWID`, pages of 4 KiB, frames of the WAL counted. Keys in
/// order give the same pages to the last one. Other random keys give other numbers, and a replaced cell may move there.
#[test]
fn transactions_change_the_pages_that_those_of_sqlite_change() {
    let real = [(SqliteFill::Sequential, 148_492, 84_328), (SqliteFill::Random, 143_503, 114_150)];
    for (fill, frames, checkpointed) in real {
        let all = requests(&format!("{},values=20k", fill.name()));
        let written = all.iter().filter(|request| request.op == Op::Write).flat_map(blocks);
        let (wal, database): (Vec<u64>, Vec<u64>) = written.partition(|block| *block < WAL);
        let logged = u64_from(wal.iter().filter(|block| is_frame(**block)).count());
        let second = u64_from(database.len());
        if fill == SqliteFill::Sequential {
            assert_eq!((logged, second), (frames, checkpointed));
        }
        let near = |found: u64, real: u64| (float(found) / float(real) - 1.0).abs() < 0.02;
        assert!(near(logged, frames) && near(second, checkpointed), "{fill:?}: {logged}, {second}");
    }
}

#[test]
fn a_checkpoint_takes_the_last_frame_of_each_page_between_two_flushes() {
    let all = requests("like-sqlite-fillrandom,values=3k,checkpoint=remap");
    let mut log: Vec<u64> = Vec::new();
    let mut header = 0;
    for part in all.split(|request| request.op == Op::Flush).collect::<Vec<_>>().chunks(2) {
        let [written, remapped] = part else {
            assert!(part[0].is_empty(), "the database is closed after a checkpoint");
            continue;
        };
        log.clear();
        for request in *written {
            assert!(request.remap.is_none());
            log.extend(blocks(request));
        }
        assert_eq!(log[0], 0, "the WAL begins at its start");
        let (frames, headers): (Vec<u64>, Vec<u64>) =
            log.iter().partition(|block| is_frame(**block));
        let expected: Vec<u64> =
            (1..WAL).filter(|block| is_frame(*block)).take(frames.len()).collect();
        assert_eq!(frames, expected, "one frame follows the other");
        let groups = u64_from(frames.len()).div_ceil(GROUP);
        assert_eq!(u64_from(headers.len()), 1 + groups, "each block of headers is written once");
        let mut sources = BTreeSet::new();
        let mut end = 0;
        for request in *remapped {
            let from = request.remap.unwrap();
            assert!(!from.moves && request.offset >= end.max(WAL * PAGE_BYTES));
            end = request.offset;
            for at in 0..u64::from(request.len) / PAGE_BYTES {
                let source = from.offset / PAGE_BYTES + at;
                assert!(is_frame(source) && frames.contains(&source));
                assert!(sources.insert(source), "a frame is of one page");
            }
        }
        // Page 1 is the first frame of each transaction: the last one is its content.
        let [first, ..] = remapped else { panic!("an empty checkpoint") };
        assert_eq!(first.offset, WAL * PAGE_BYTES);
        header = first.remap.unwrap().offset / PAGE_BYTES;
        let after = u64_from(frames.iter().filter(|block| **block > header).count());
        assert!((5..40).contains(&after), "{after} frames follow the last page 1");
    }
    assert!(header > 0, "there was a checkpoint");
}

/// The two loads differ in what a checkpoint asks for, and in nothing else.
#[test]
fn a_remap_stands_where_a_second_write_stood() {
    let spec = "like-sqlite-fillseq,values=2k,value=8KiB,frames=300,checkpoint=";
    let (written, remapped) =
        (requests(&format!("{spec}write")), requests(&format!("{spec}remap")));
    let without = |request: &Request| Request { remap: None, ..*request };
    assert_eq!(remapped.iter().map(without).collect::<Vec<_>>(), written);
    let remaps = remapped.iter().filter(|request| request.remap.is_some()).count();
    let second =
        written.iter().filter(|one| one.op == Op::Write && one.offset >= one_wal(300)).count();
    assert!(remaps > 1000 && remaps == second, "{remaps} remaps, {second} second writes");
    let mut generator =
        Workload::parse(&format!("{spec}remap")).unwrap().instantiate(DEVICE, 1).unwrap();
    let end = generator.end_bytes().unwrap();
    assert!(remapped.iter().all(|request| request.offset + u64::from(request.len) <= end));
    let mut batches = Vec::new();
    loop {
        let mut batch = [Request::EMPTY; 7];
        let filled = generator.fill(&mut batch);
        batches.extend_from_slice(&batch[..filled]);
        if filled < batch.len() {
            break;
        }
    }
    assert_eq!(batches, remapped);
}

/// First byte after a WAL of so many frames, with values of 8 KiB.
const fn one_wal(frames: u64) -> u64 {
    (1 + (frames + 2 + super::TREE_MOST).div_ceil(GROUP) * (GROUP + 1)) * PAGE_BYTES
}

#[test]
fn a_tree_keeps_all_keys_and_changes_pages_that_it_has() {
    let (mut tree, mut pages) = (Tree::new(2, 8), Pages { last: 2 });
    let mut keys = BTreeSet::new();
    for n in 0..5000_u32 {
        let key = n.wrapping_mul(2_654_435_761) % 3000;
        let (before, had) = (pages.last, !keys.insert(key));
        let mut changed = Vec::new();
        tree.put(key, &mut pages, &mut changed);
        assert!(!changed.is_empty() && changed.iter().all(|page| (2..=pages.last).contains(page)));
        assert!(!had || pages.last == before, "a value that is replaced takes no new page");
        assert!(
            (before + 1..=pages.last).all(|page| changed.contains(&page)),
            "new pages are written"
        );
    }
    assert_eq!(tree.keys(), keys.into_iter().collect::<Vec<u32>>());
    assert!(tree.pages_are_whole(pages.last));
}
