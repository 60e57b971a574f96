use onefold_units::convert::{float, u64_from};
use onefold_units::{Op, PAGE_BYTES};

use super::Bench;
use crate::workload::{Pacing, Request, Workload, WorkloadError};

const DEVICE: u64 = 1 << 30;
const RANGE: u64 = DEVICE / 10 * 9;

fn requests(spec: &str) -> Vec<Request> {
    Workload::parse(spec).unwrap().instantiate(DEVICE, 1).unwrap().collect()
}

/// Number and bytes of the requests of an operation.
fn count(requests: &[Request], op: Op) -> (u64, u64) {
    let of = requests.iter().filter(|request| request.op == op);
    of.fold((0, 0), |(n, bytes), request| (n + 1, bytes + u64::from(request.len)))
}

#[test]
fn specifications() {
    for bench in Bench::ALL {
        let workload = Workload::parse(bench.name()).unwrap();
        let canonical = format!("{},range=0-90%,requests=1000000,qd=32", bench.name());
        assert_eq!(workload.canonical(), canonical);
        assert_eq!(workload.pacing(), Pacing::Closed { depth: 32 });
        assert!(Workload::describe(bench.name()).is_some());
        let spec = format!("{},range=1GiB-50%,drive_writes=2,qd=1,seed=7", bench.name());
        let workload = Workload::parse(&spec).unwrap();
        assert_eq!(workload.canonical(), spec);
        assert_eq!(Workload::parse(&workload.canonical()).unwrap(), workload);
    }
    let refused = |spec: &str| Workload::parse(spec).unwrap_err();
    assert!(matches!(refused("like-oltp,bs=4k"), WorkloadError::UnknownKey { .. }));
    assert!(matches!(refused("like-oltp,bytes=1M,requests=1"), WorkloadError::Exclusive { .. }));
    assert!(matches!(refused("like-oltp,qd=0"), WorkloadError::OutOfLimits { .. }));
}

#[test]
fn addresses_are_pages_of_the_range() {
    for bench in Bench::ALL {
        let spec = format!("{},requests=20k,range=100MiB-200MiB", bench.name());
        let workload = Workload::parse(&spec).unwrap();
        let generator = workload.instantiate(DEVICE, 1).unwrap();
        assert_eq!(generator.end_bytes(), Some(200 << 20));
        let requests: Vec<_> = generator.collect();
        assert_eq!(requests.len(), 20_000);
        assert_ne!(requests, workload.instantiate(DEVICE, 2).unwrap().collect::<Vec<_>>());
        let mut far = [u64::MAX, 0];
        for request in requests {
            let end = request.offset + u64::from(request.len);
            far = [far[0].min(request.offset), far[1].max(end)];
            assert!(request.len > 0 && request.len <= 1 << 20);
            assert!(request.offset.is_multiple_of(PAGE_BYTES) && end.is_multiple_of(PAGE_BYTES));
        }
        assert!(far[0] >= 100 << 20 && far[0] < 110 << 20, "{} begins at {}", bench.name(), far[0]);
        assert!(far[1] <= 200 << 20 && far[1] > 190 << 20, "{} ends at {}", bench.name(), far[1]);
        // Less than a log file or a large file needs, and more than 32 bits number.
        let small = workload.instantiate(110 << 20, 1);
        assert!(matches!(small, Err(WorkloadError::RangeBeyondDevice { .. })));
        let workload = Workload::parse(bench.name()).unwrap();
        let small = workload.instantiate(8 << 20, 1);
        assert!(matches!(small, Err(WorkloadError::FootprintTooLarge { .. })));
        let large = workload.instantiate(1 << 45, 1);
        assert!(matches!(large, Err(WorkloadError::TooManyUnits { .. })));
    }
}

#[test]
fn the_file_server_writes_whole_files() {
    let requests = requests("like-fileserver,requests=100k");
    let (reads, read_bytes) = count(&requests, Op::Read);
    let (writes, write_bytes) = count(&requests, Op::Write);
    // A file and an append written for a file read. Sizes are rounded up to pages: on average half
    // a page more than 128 KiB, and 2.5 pages an append but for the smallest files.
    let file = float(read_bytes) / float(reads);
    assert!((file / (130.0 * 1024.0) - 1.0).abs() < 0.03, "{file} bytes a file");
    let more = float(write_bytes) - float(read_bytes);
    let append = more / float(reads);
    assert!((append / (10.0 * 1024.0) - 1.0).abs() < 0.2, "{append} bytes an append");
    assert!((float(writes) / float(reads) - 2.0).abs() < 0.01);
    assert!(requests.iter().all(|request| !request.fua));
    // Files never overlap: two requests of a file begin together or end together.
    let mut starts: Vec<_> = requests.iter().filter(|r| r.op == Op::Read).collect();
    starts.sort_by_key(|request| request.offset);
    for pair in starts.windows(2) {
        let same = pair[0].offset == pair[1].offset;
        assert!(same || pair[0].offset + u64::from(pair[0].len) <= pair[1].offset);
    }
}

#[test]
fn the_database_writes_in_bursts() {
    let requests = requests("like-oltp,requests=352100");
    // 100 log writes each come with 3,200 reads and 320 data writes.
    assert_eq!(count(&requests, Op::Read), (320_000, 320_000 * PAGE_BYTES));
    let (writes, bytes) = count(&requests, Op::Write);
    assert_eq!((writes, bytes), (32_100, 32_000 * PAGE_BYTES + 100 * (256 << 10)));
    let log = |request: &&Request| request.offset < 10 << 20;
    assert_eq!(requests.iter().filter(log).count(), 100);
    assert!(requests.iter().all(|request| request.fua == (request.op == Op::Write)));
    let run = requests.iter().skip(1000).take_while(|request| request.op == Op::Write).count();
    assert_eq!(run, 100, "a burst follows 1,000 reads");
}

#[test]
fn random_writes_reach_every_page_alike() {
    let requests = requests("like-fio-randw,drive_writes=1");
    assert_eq!(count(&requests, Op::Write), (RANGE / PAGE_BYTES, RANGE / PAGE_BYTES * PAGE_BYTES));
    let mut pages: Vec<_> = requests.iter().map(|request| request.offset).collect();
    pages.sort_unstable();
    pages.dedup();
    let reached = float(u64_from(pages.len())) / float(RANGE / PAGE_BYTES);
    assert!((reached - 0.632).abs() < 0.005, "{reached} of the pages, expected 1 - 1/e");
}

#[test]
fn ffsb_overwrites_and_appends() {
    let writes = requests("like-ffsb-write,requests=1M");
    let (small, large): (Vec<_>, Vec<_>) = writes.iter().partition(|request| request.len == 4096);
    let bytes = |requests: &[&Request]| requests.iter().map(|r| u64::from(r.len)).sum::<u64>();
    let share = float(bytes(&large)) / float(bytes(&small));
    assert!((share - 1.0).abs() < 0.05, "as much appended as overwritten: {share}");
    assert!(large.iter().all(|request| request.len == 1 << 20), "appends gather");
    // Appends to a file go on where the one before ended, or begin anew in its middle.
    let file = RANGE / PAGE_BYTES / 100 * PAGE_BYTES;
    let half = file / PAGE_BYTES / 2 * PAGE_BYTES;
    let mut ends = [0; 100];
    for request in &large {
        let end = &mut ends[usize::try_from(request.offset / file).unwrap()];
        let middle = request.offset / file * file + half;
        assert!(request.offset == *end || request.offset == middle, "{request:?}");
        *end = request.offset + u64::from(request.len);
    }
    assert!(small.iter().all(|request| request.offset % file < half), "never where it appends");
    let mixed = requests("like-ffsb-mixed,requests=100k");
    let (reads, _) = count(&mixed, Op::Read);
    let overwrites = mixed.iter().filter(|r| r.op == Op::Write && r.len == 4096).count();
    let ratio = float(reads) / float(u64_from(overwrites));
    assert!((ratio - 2.0).abs() < 0.05, "a read for each write or append: {ratio}");
}

#[test]
fn postmark_writes_and_reads_whole_files() {
    let file = RANGE / PAGE_BYTES / 40 * PAGE_BYTES;
    let round = 40 * file.div_ceil(1 << 20) + 20 * file.div_ceil(128 << 10);
    let requests = requests(&format!("like-postmark,requests={}", 2 * round));
    assert_eq!(count(&requests, Op::Write).1, 80 * file);
    assert_eq!(count(&requests, Op::Read).1, 40 * file);
    let half = usize::try_from(round).unwrap();
    let writes =
        |part: &[Request]| part.iter().filter(|r| r.op == Op::Write).copied().collect::<Vec<_>>();
    assert_eq!(writes(&requests[..half]), writes(&requests[half..]), "deleted files come again");
    assert!(writes(&requests[..half]).is_sorted_by_key(|request| request.offset));
    let mut made = 0;
    for request in &requests[..half] {
        let end = request.offset + u64::from(request.len);
        if request.op == Op::Write {
            made = end;
        }
        assert!(end <= made, "files are read that exist");
    }
}

#[test]
fn a_page_cache_answers_reads() {
    let share_read = |spec: &str| {
        let requests = requests(spec);
        let (reads, writes) = (count(&requests, Op::Read).1, count(&requests, Op::Write).1);
        float(reads) / float(reads + writes)
    };
    let none = share_read("like-oltp,requests=300k");
    assert!((none - 0.89).abs() < 0.01, "without a cache: {none}");
    // Of 1,000 reads 250 miss, to 120 pages written.
    let some = share_read("like-oltp,requests=300k,cache=75%");
    assert!((some - 250.0 / 370.0).abs() < 0.02, "three quarters in memory: {some}");
    assert!(share_read("like-oltp,requests=100k,cache=100%") == 0.0);
    // Reads were 130 of 270 KiB.
    let none = share_read("like-fileserver,requests=100k");
    let some = share_read("like-fileserver,requests=100k,cache=50%");
    assert!(some < 0.55 * none / (1.0 - 0.45 * none) && some > 0.25, "{some} instead of {none}");
    assert!(share_read("like-fileserver,requests=10k,cache=1GiB") == 0.0);
}

#[test]
fn a_page_cache_changes_no_write_and_asks_once_for_a_page_that_stays() {
    let writes = |spec: &str| {
        let mut writes = requests(spec);
        writes.retain(|request| request.op == Op::Write);
        writes
    };
    let (with, without) =
        (writes("like-oltp,requests=20k,cache=50%"), writes("like-oltp,requests=500k"));
    assert_eq!(with[..], without[..with.len()]);
    // Between two reads of a page the cache was filled with other pages.
    let reads = requests("like-oltp,requests=300k,cache=512MiB");
    let reads = reads.iter().filter(|request| request.op == Op::Read);
    let mut last = std::collections::BTreeMap::new();
    for (at, read) in (0_u64..).zip(reads) {
        if let Some(before) = last.insert(read.offset, at) {
            assert!(at - before > (512 << 20) / PAGE_BYTES / 3, "read again after {}", at - before);
        }
    }
}

#[test]
fn the_page_cache_is_part_of_the_specification() {
    let workload = Workload::parse("like-oltp,cache=25%,requests=10").unwrap();
    assert_eq!(workload.canonical(), "like-oltp,range=0-90%,requests=10,cache=25%,qd=32");
    assert_eq!(Workload::parse(&workload.canonical()).unwrap(), workload);
    let error = |spec: &str| Workload::parse(spec).unwrap_err().to_string();
    assert!(error("like-oltp,cache=much%").contains("a share of the range such as 50%"));
    assert!(error("like-oltp,cache=101%").contains("percentages from 0 to 100"));
    assert!(error("like-fio-randw,cache=1GiB").contains("unknown workload key `cache`"));
}
