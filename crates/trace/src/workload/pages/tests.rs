use onefold_units::Op;
use onefold_units::convert::float;

use super::{PageFigures, PageGenerator, PageVolume};
use crate::workload::page_request::{PageRequest, PageSource};
use crate::workload::{Request, WorkloadError};

const DEVICE_BYTES: u64 = 64 << 30;

fn generator(spec: &str) -> PageGenerator {
    PageVolume::parse(spec).unwrap().instantiate(DEVICE_BYTES, 1).unwrap()
}

fn requests(spec: &str) -> Vec<PageRequest> {
    let mut source = generator(spec);
    let (mut all, mut batch) = (Vec::new(), [PageRequest::EMPTY; 1000]);
    loop {
        let got = source.fill_pages(&mut batch);
        all.extend_from_slice(&batch[..got]);
        if got < batch.len() {
            return all;
        }
    }
}

#[test]
fn shares_sizes_and_places_are_as_asked() {
    for name in PageVolume::names() {
        let volume = PageVolume::parse(name).unwrap();
        assert_eq!(volume.name(), name);
        let found = requests(&format!("{name},bytes=1GiB"));
        let count = found.len();
        let pages = found.iter().map(|it| u64::from(it.n)).sum::<u64>();
        assert!((262_144..262_144 + 40).contains(&pages), "{name}: {pages} pages");

        let share =
            |part: usize| float(part.try_into().unwrap()) / float(count.try_into().unwrap());
        let reads = share(found.iter().filter(|it| it.op == Op::Read).count());
        assert!((reads - volume.read_share).abs() < 0.01, "{name}: {reads} are reads");
        let writes: Vec<_> = found.iter().filter(|it| it.op == Op::Write).collect();
        let many = found.iter().filter(|it| it.n > 1).count();
        assert!((share(many) - volume.multi).abs() < 0.02, "{name}: {} of several", share(many));
        let mean = (float(pages) - float((count - many).try_into().unwrap()))
            / float(many.try_into().unwrap());
        assert!((mean - volume.mean).abs() < 0.15, "{name}: {mean} pages");

        let written = volume.written_pages();
        assert!(writes.iter().all(|it| u64::from(it.lpn + it.n) <= written), "{name}");
        let end = u64::from(generator(name).end_pages());
        assert!(found.iter().all(|it| it.n > 0 && u64::from(it.lpn + it.n) <= end), "{name}");
        assert_eq!(end * 4096, volume.natural_bytes());
    }
}

/// Three quarters of the reads of `usr_0` follow each other through 9,000 pages.
#[test]
fn the_loop_is_read_in_order() {
    let volume = PageVolume::parse("like-usr_0-pages").unwrap();
    let first = u32::try_from(volume.written_pages()).unwrap();
    let found = requests("like-usr_0-pages,bytes=1GiB");
    let reads: Vec<_> = found.iter().filter(|it| it.op == Op::Read).collect();
    let mut next = first;
    let mut followers = 0_u32;
    for read in &reads {
        if read.lpn == next {
            followers += 1;
            next += read.n;
            assert!(next <= first + 9000);
            if next == first + 9000 {
                next = first;
            }
        }
    }
    let share = f64::from(followers) / float(reads.len().try_into().unwrap());
    assert!((share - 0.75).abs() < 0.02, "{share} of the reads");
}

/// With a share rho of repetitions, so many starts more than without are among the last.
#[test]
fn repetitions_are_near() {
    let near = |spec: &str| {
        let found = requests(spec);
        let recent = |at: usize| found[at.saturating_sub(64)..at].iter();
        let hits = (0..found.len()).filter(|at| recent(*at).any(|it| it.lpn == found[*at].lpn));
        float(hits.count().try_into().unwrap()) / float(found.len().try_into().unwrap())
    };
    let base = "like-hm_0-pages,bytes=100MiB,read_share=0,multi=0,s=0,distance=64";
    assert!(near(&format!("{base},rho=0")) < 0.01);
    let half = near(&format!("{base},rho=0.5"));
    assert!((half - 0.5).abs() < 0.02, "{half} of the starts");
}

#[test]
fn figures_by_hand() {
    struct Script(Vec<PageRequest>);
    impl PageSource for Script {
        fn fill_pages(&mut self, out: &mut [PageRequest]) -> usize {
            let got = self.0.len().min(out.len());
            out[..got].copy_from_slice(&self.0[..got]);
            self.0.drain(..got);
            got
        }
        fn end_pages(&self) -> u32 {
            10
        }
    }
    let write = |lpn, n| PageRequest { lpn, n, op: Op::Write, tenant: 0 };
    let read = PageRequest { op: Op::Read, ..write(0, 10) };
    // Writes of the pages 0 1 2 | 1 | 1 | 5: gaps 2 and 1.
    let mut script = Script(vec![write(0, 3), read, write(1, 1), write(1, 1), write(5, 1)]);
    let figures = PageFigures::measure(&mut script, 100);
    assert_eq!((figures.page_writes, figures.max_writes), (6, 3));
    assert_eq!((figures.median_gap, figures.p90_gap), (1, 1));
    assert!((figures.rewrite_share - 2.0 / 6.0).abs() < 1e-12);
    assert!((figures.top1_share - 0.5).abs() < 1e-12);
}

/// The stored figures are those of the generators as they are.
#[test]
fn stored_figures_are_reached() {
    for spec in ["like-mds_0-pages", "like-wdev_0-pages,fit=requests"] {
        let volume = PageVolume::parse(&format!("{spec},bytes=64GiB")).unwrap();
        let mut source = volume.instantiate(DEVICE_BYTES, 1).unwrap();
        let found = PageFigures::measure(&mut source, volume.wanted().page_writes);
        let stored = volume.reached();
        assert_eq!(found.page_writes, stored.page_writes);
        assert!((found.rewrite_share - stored.rewrite_share).abs() < 5e-4, "{spec} {found:?}");
        assert!((found.top1_share - stored.top1_share).abs() < 5e-4, "{spec} {found:?}");
        assert_eq!(
            (found.max_writes, found.median_gap, found.p90_gap),
            (stored.max_writes, stored.median_gap, stored.p90_gap),
            "{spec}"
        );
    }
}

#[test]
fn same_seed_same_requests() {
    let digest = |spec: &str| {
        let mut fnv: u64 = 0xCBF2_9CE4_8422_2325;
        for it in requests(spec) {
            for byte in [u32::from(it.op == Op::Write), it.lpn, it.n].map(u32::to_le_bytes).concat()
            {
                fnv = (fnv ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
            }
        }
        fnv
    };
    assert_eq!(digest("like-usr_0-pages,bytes=100MiB"), 11_843_358_480_651_437_021);
    assert_eq!(digest("like-prxy_0-pages,bytes=100MiB"), 10_104_954_832_032_168_543);
    assert_ne!(digest("like-usr_0-pages,bytes=1MiB,seed=2"), digest("like-usr_0-pages,bytes=1MiB"));
}

#[test]
fn bytes_and_pages_agree() {
    let spec = "like-wdev_0-pages,bytes=1MiB";
    let expected: Vec<Request> = requests(spec).iter().map(PageRequest::request).collect();
    assert!(generator(spec).eq(expected.iter().copied()));
    let mut found = vec![Request::EMPTY; expected.len() + 5];
    let got = generator(spec).fill(&mut found);
    assert_eq!(found[..got], expected);
}

#[test]
fn specifications() {
    for spec in PageVolume::names()
        .chain(["like-mds_0-pages,bytes=4KiB,fit=requests,rho=0.1,loop=5,seed=9"])
    {
        let volume = PageVolume::parse(spec).unwrap();
        assert_eq!(PageVolume::parse(&volume.canonical()).as_ref(), Ok(&volume));
        let error = volume.instantiate(1 << 20, 1).unwrap_err();
        assert!(matches!(error, WorkloadError::RangeBeyondDevice { .. }));
    }
    for (spec, text) in [
        ("", "the workload is empty"),
        (
            "like-hm_1-pages",
            "`like-hm_1-pages` is no such workload, did you mean `like-hm_0-pages`",
        ),
        ("like-hm_0-pages,page=7", "unknown workload key `page`, did you mean `pages`?"),
        ("like-hm_0-pages,fit=page", "`fit=page` is unknown, did you mean `pages`?"),
        ("like-hm_0-pages,rho=2", "`rho=2` is out of limits"),
        ("like-hm_0-pages,mean=1", "`mean=1` is out of limits: expected 2 to 8192 pages"),
        ("like-hm_0-pages,loop=182402", "`loop` has 182402 pages, but only 182401 are"),
    ] {
        let error = PageVolume::parse(spec).unwrap_err().to_string();
        assert!(error.starts_with(text), "{spec}: {error}");
    }
}

#[test]
fn the_table_is_complete() {
    let table = include_str!("mod.rs").lines().filter(|line| line.starts_with("//! | `"));
    let keys: Vec<&str> = table.map(|line| line.split('`').nth(1).unwrap()).collect();
    assert_eq!(keys, super::volume::KEYS);
    for name in PageVolume::names() {
        assert!(include_str!("mod.rs").contains(&format!("`{name}`")));
    }
}

/// `fit=requests` was searched to reach the figures of the originals.
#[test]
fn the_second_fit_is_near_the_originals() {
    for name in PageVolume::names() {
        let volume = PageVolume::parse(&format!("{name},fit=requests")).unwrap();
        let (wanted, reached) = (volume.wanted(), volume.reached());
        assert_eq!(wanted.page_writes, reached.page_writes);
        assert!((wanted.rewrite_share - reached.rewrite_share).abs() < 0.012, "{name}");
        assert!((wanted.top1_share - reached.top1_share).abs() < 0.08, "{name}");
        let factor = float(reached.max_writes) / float(wanted.max_writes);
        assert!((0.6..1.1).contains(&factor), "{name}: {factor}");
        let factor = float(reached.median_gap) / float(wanted.median_gap);
        assert!((0.6..1.3).contains(&factor), "{name}: {factor}");
    }
}
