use std::collections::BTreeMap;

use onefold_units::convert::{float, u64_from};
use onefold_units::{Op, PAGE_BYTES};

use super::Ext4Mode;
use crate::workload::{Pacing, Request, Workload, WorkloadError};

const DEVICE: u64 = 4 << 30;
const MIB: u64 = 1 << 20;
/// The journal of the tests, in pages of the device.
const RING: std::ops::Range<u64> = 256 * 256..272 * 256;

fn requests(spec: &str) -> Vec<Request> {
    Workload::parse(spec).unwrap().instantiate(DEVICE, 1).unwrap().collect()
}

/// A file of 64 MiB with a journal of 16 MiB behind it.
fn small(kind: Ext4Mode, more: &str) -> Vec<Request> {
    requests(&format!("{},file=64MiB,journal=16MiB,journal_at=256MiB,{more}", kind.name()))
}

/// Pages of the device that a request is about.
fn pages(request: &Request) -> std::ops::Range<u64> {
    request.offset / PAGE_BYTES..(request.offset + u64::from(request.len)) / PAGE_BYTES
}

fn written(requests: &[Request], of: impl Fn(u64) -> bool) -> u64 {
    let writes = requests.iter().filter(|request| request.op == Op::Write);
    u64_from(writes.flat_map(pages).filter(|page| of(*page)).count())
}

#[test]
fn specifications() {
    for mode in Ext4Mode::ALL {
        let workload = Workload::parse(mode.name()).unwrap();
        let canonical = format!(
            "{},file=640MiB,fill=true,journal=64MiB,journal_at=1792MiB,commit=4096,order=joined,io=randwrite,bs=4KiB,align=4KiB,\
             range=0-100%,dist=uniform,qd=1,requests=1000000,trim_share=0,fua_share=0,fresh=false",
            mode.name()
        );
        assert_eq!(workload.canonical(), canonical);
        let spec = format!(
            "{},io=write,file=1GiB,fill=false,journal=128MiB,commit=50,order=address,qd=32,bytes=3GiB,seed=4",
            mode.name()
        );
        let workload = Workload::parse(&spec).unwrap();
        assert_eq!(workload.pacing(), Pacing::Closed { depth: 32 });
        let shown = workload.canonical().replace(",trim_share=0", "").replace(",fresh=false", "");
        assert_eq!(Workload::parse(&shown).unwrap(), workload);
        assert!(Workload::describe(mode.name()).is_some());
    }
    let refused = |spec: &str| Workload::parse(spec).unwrap_err();
    for wrong in ["journal=1MiB", "journal_at=4KiB", "file=0", "file=1000", "commit=0"] {
        let error = refused(&format!("like-ext4-ordered,{wrong}"));
        assert!(matches!(error, WorkloadError::OutOfLimits { .. }), "{error}");
    }
    assert!(matches!(refused("like-ext4-journal,io=mix"), WorkloadError::UnknownChoice { .. }));
    assert!(matches!(refused("like-ext4-journal,order=up"), WorkloadError::UnknownChoice { .. }));
    assert!(matches!(refused("like-ext4-journal,trim_share=1"), WorkloadError::UnknownKey { .. }));
    let small = Workload::parse("like-ext4-journal").unwrap().instantiate(1 << 30, 1);
    assert!(matches!(small, Err(WorkloadError::FootprintTooLarge { .. })));
}

/// Every page of the file is written where it lies, before and behind the journal.
#[test]
fn a_filled_file_lies_around_the_journal() {
    let load = "like-ext4-ordered,file=320MiB,journal=16MiB,journal_at=256MiB,requests=1";
    let mut times: BTreeMap<u64, u32> = BTreeMap::new();
    for request in requests(load).iter().filter(|request| request.op == Op::Write) {
        for page in pages(request).filter(|page| !RING.contains(page) && *page >= 32 * 256) {
            *times.entry(page).or_default() += 1;
        }
    }
    assert_eq!(u64_from(times.len()), 320 * 256);
    assert_eq!(times.keys().copied().min(), Some(32 * 256));
    assert_eq!(times.keys().copied().max(), Some((32 + 320 + 16) * 256 - 1));
    assert_eq!(times.values().filter(|times| **times > 1).count(), 1, "one page was overwritten");
}

/// Overwrites of a file that has its blocks change its inode only: descriptor, inode, and commit block for each commit.
#[test]
fn ordered_mode_journals_metadata() {
    let load = small(Ext4Mode::Ordered, "commit=100,requests=10k");
    let commits = (64 * 256_u64).div_ceil(100) + 10_000_u64.div_ceil(100);
    let in_ring = written(&load, |page| RING.contains(&page));
    // Behind a sixth commit each one forgets the oldest transaction, which the superblock tells.
    let close = in_ring.abs_diff(3 * commits + commits - 6);
    assert!(close <= 4, "{in_ring} blocks of journal in {commits} commits");
    let data = written(&load, |page| page >= 32 * 256 && !RING.contains(&page));
    assert_eq!(data, 64 * 256 + 10_000);
    let forced = load.iter().filter(|request| request.fua).count();
    assert_eq!(load.iter().filter(|request| request.op == Op::Flush).count(), forced);
}

/// A sparse file gets a block, a bitmap and a leaf for each page, so that its journal has far more to tell.
#[test]
fn sparse_files_journal_their_extents() {
    let ring = |fill: &str| {
        let load = small(Ext4Mode::Ordered, &format!("fill={fill},commit=1000,requests=12k"));
        written(&load, |page| RING.contains(&page))
    };
    let (sparse, filled) = (ring("false"), ring("true"));
    // 8,500 pages have 39 leaves at the end, of which each commit changes most that are there.
    assert!(sparse > 150 && filled < 130, "{sparse} and {filled}");
}

/// Everything is written twice; what is rewritten before its checkpoint only once more.
#[test]
fn journal_mode_writes_everything_twice() {
    let load = small(Ext4Mode::Journal, "requests=40k");
    let asked = float(64 * 256 + 40_000);
    let (ring, home) = (
        float(written(&load, |page| RING.contains(&page))),
        float(written(&load, |page| page >= 32 * 256 && !RING.contains(&page))),
    );
    // A transaction has at most 1,024 blocks, of which few are written twice in it.
    assert!(ring / asked > 0.95 && ring / asked < 1.01, "{}", ring / asked);
    assert!(home / asked > 0.75 && home < ring, "{}", home / asked);
}

/// Commits follow each other in the ring, which begins anew behind its superblock; each commit block is forced behind a flush.
#[test]
fn the_journal_is_a_ring() {
    let load = small(Ext4Mode::Journal, "requests=40k");
    let mut next = RING.start + 1;
    let mut laps = 0;
    for (at, request) in load.iter().enumerate().filter(|(_, request)| request.op == Op::Write) {
        let pages = pages(request);
        if request.fua {
            assert_eq!(load[at - 1].op, Op::Flush);
        }
        if !RING.contains(&pages.start) || pages.start == RING.start {
            continue;
        }
        assert_eq!(pages.start, next);
        next = pages.end;
        if next == RING.end {
            next = RING.start + 1;
            laps += 1;
        }
    }
    assert!(laps > 10, "{laps}");
}

/// What is in the ring and not yet written to its place is never overwritten there: a lap later it would be lost.
#[test]
fn nothing_leaves_the_ring_before_it_is_at_its_place() {
    for mode in Ext4Mode::ALL {
        let load = small(mode, "fill=false,commit=300,requests=60k");
        let capacity = RING.end - RING.start - 1;
        // Ring blocks since the superblock last said that older ones may go.
        let mut since = 0;
        for request in load.iter().filter(|request| request.op == Op::Write) {
            let pages = pages(request);
            if pages.start == RING.start {
                since = 0;
            } else if RING.contains(&pages.start) {
                since += pages.end - pages.start;
                assert!(since <= capacity, "{}: {since} blocks without room", mode.name());
            }
        }
    }
}

/// An fsync of the application commits, and so does a forced write.
#[test]
fn flushes_of_the_application_commit() {
    let load = small(Ext4Mode::Ordered, "fill=false,flush_every=10,requests=1100");
    let forced = load.iter().filter(|request| request.fua && pages(request).start != RING.start);
    assert_eq!(forced.count(), 100);
    let load = small(Ext4Mode::Ordered, "fill=false,fua_share=1,requests=50");
    let forced = load.iter().filter(|request| request.fua && pages(request).start != RING.start);
    assert_eq!(forced.count(), 50);
}

#[test]
fn batches_and_single_requests_agree() {
    let workload = Workload::parse("like-ext4-journal,file=8MiB,requests=5k").unwrap();
    let one: Vec<_> = workload.instantiate(DEVICE, 3).unwrap().collect();
    let mut generator = workload.instantiate(DEVICE, 3).unwrap();
    assert_eq!(generator.end_bytes(), Some((1792 + 64) * MIB));
    let mut batch = vec![Request::EMPTY; 64];
    let mut all = Vec::new();
    loop {
        let filled = generator.fill(&mut batch);
        all.extend_from_slice(&batch[..filled]);
        if filled < batch.len() {
            break;
        }
    }
    assert_eq!(all, one);
    assert_ne!(workload.instantiate(DEVICE, 4).unwrap().collect::<Vec<_>>(), one);
}

/// Recorded ext4 writes its blocks home as they joined the transaction, at random; write-back goes through the file.
#[test]
fn checkpoints_have_an_order() {
    let ascending = |order: &str| {
        let load = small(Ext4Mode::Journal, &format!("fill=false,order={order},requests=40k"));
        let home =
            |request: &&Request| request.op == Op::Write && !RING.contains(&pages(request).start);
        let home: Vec<u64> = load.iter().filter(home).map(|request| request.offset).collect();
        let up = home.windows(2).filter(|pair| pair[0] < pair[1]).count();
        float(u64_from(up)) / float(u64_from(home.len()))
    };
    let (joined, address) = (ascending("joined"), ascending("address"));
    assert!((joined - 0.5).abs() < 0.02 && address > 0.99, "{joined} and {address}");
}
