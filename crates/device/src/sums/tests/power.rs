//! Power cuts: after each one every block reads, and what a flush covered is there.

use onefold_testkit::{LIB, for_each_seed};
use onefold_units::convert::index64;

use super::*;

/// What is known of a block: the version that a flush covered, and the last one that was written.
#[derive(Clone, Copy, Default)]
struct Known {
    durable: u64,
    written: u64,
}

/// What a test notes of its requests.
const FLUSHED: u64 = 0;

fn noted_write(block: u64, version: u64) -> u64 {
    version << 20 | block << 1 | 1
}

struct Model(Vec<Known>);

impl Model {
    fn apply(&mut self, event: &Event) {
        match event {
            Event::Noted(FLUSHED) => self.0.iter_mut().for_each(|one| one.durable = one.written),
            Event::Noted(what) => {
                self.0[index64((what & 0xF_FFFF) >> 1)].written = what >> 20;
            }
            _ => {}
        }
    }

    /// Opens what a power cut left. Gives the device, whose model goes on from what was found.
    fn judge(&mut self, blocks: u64, image: Image, which: &str) -> (Disk, Summed<Disk>) {
        let disk = Disk::of(blocks, image);
        let summed = open(&disk);
        for (block, known) in (0..).zip(&mut self.0) {
            let version = read(&summed, block);
            let version = version.unwrap_or_else(|_| panic!("{which}: block {block} is an error"));
            let may_be = known.durable..=known.written;
            assert!(may_be.contains(&version), "{which}: block {block} has {version}, {may_be:?}");
            *known = Known { durable: version, written: version };
        }
        assert_eq!(summed.scan().differing, 0, "{which}");
        (disk, summed)
    }
}

/// A write and what a test notes of it: the version may be there from before the request on.
fn noted(disk: &Disk, summed: &Summed<Disk>, block: u64, version: u64) {
    disk.note(noted_write(block, version));
    write(summed, block, version).unwrap();
}

fn flushed(disk: &Disk, summed: &Summed<Disk>, now: Duration) {
    summed.flush(now).unwrap();
    disk.note(FLUSHED);
}

/// Power fails after each request to the device, and each subset of what was not synchronised is there.
#[test]
fn every_cut_of_a_short_history() {
    const BLOCKS: u64 = 4;
    let (disk, summed) = made(BLOCKS);
    let begin = disk.events().len();
    noted(&disk, &summed, 0, 1);
    flushed(&disk, &summed, Duration::ZERO);
    noted(&disk, &summed, 0, 2);
    noted(&disk, &summed, 1, 3);
    // The look that finds it written, and the one after which it is clean.
    flushed(&disk, &summed, LATER);
    flushed(&disk, &summed, 2 * LATER);
    // The bit that was cleared has not reached the device.
    noted(&disk, &summed, 1, 4);
    noted(&disk, &summed, 2, 5);
    noted(&disk, &summed, 1, 6);
    flushed(&disk, &summed, 3 * LATER);
    flushed(&disk, &summed, 4 * LATER);
    noted(&disk, &summed, 3, 7);
    summed.close().unwrap();
    disk.note(FLUSHED);
    let events = disk.events();
    let (mut image, mut cuts) = (Image::default(), 0);
    let mut model = Model(vec![Known::default(); index64(BLOCKS)]);
    for (number, event) in events.iter().enumerate() {
        image.apply(event);
        model.apply(event);
        if number < begin {
            continue;
        }
        for kept in 0..1 << image.unsynced.len() {
            cuts += 1;
            let which = format!("event {number}, kept {kept:b}");
            Model(model.0.clone()).judge(disk.blocks(), image.cut(kept), &which);
        }
    }
    assert!(cuts > 60, "{cuts} cuts");
}

/// A write comes while the region is about to become clean: its bit has to stay, as its new checksum is nowhere.
#[test]
fn a_region_that_is_written_while_it_becomes_clean_stays_dirty() {
    let (disk, summed) = made(4);
    let summed = std::sync::Arc::new(summed);
    write(&summed, 0, 1).unwrap();
    summed.flush(LATER).unwrap();
    let other = std::sync::Arc::clone(&summed);
    disk.during_flush(move || write(&other, 0, 2).unwrap());
    summed.flush(2 * LATER).unwrap();
    let all = disk.image().cut(u64::MAX);
    let after = open(&Disk::of(disk.blocks(), all));
    assert_eq!((after.details().remade_regions, read(&after, 0)), (1, Ok(2)));
}

/// A device that is made again and again is whole or has no header: none is made over a half of it.
#[test]
fn every_cut_while_one_is_made() {
    let (disk, _) = made(4);
    let mut image = Image::default();
    for (number, event) in disk.events().iter().enumerate() {
        image.apply(event);
        for kept in 0..1 << image.unsynced.len() {
            let disk = Disk::of(disk.blocks(), image.cut(kept));
            if let Some(found) = find(&disk).unwrap() {
                let summed = Summed::open(disk, &found, true).unwrap();
                let scan = summed.scan();
                assert_eq!((scan.checked, scan.differing), (4, 0), "event {number}, {kept:b}");
            }
        }
    }
}

/// Two whole regions and a short one; power fails at any request, and any sectors of bits and checksums may be there.
#[test]
fn cuts_of_long_histories() {
    const BLOCKS: u64 = 2 * CACHE_REGION_BLOCKS + 20;
    /// Requests between two cuts.
    const STEPS: u64 = 25;
    for_each_seed(("onefold-device", LIB, "cuts_of_long_histories"), 12, |seed| {
        let mut rng = Rng::fork(seed, 0);
        let (mut disk, mut summed) = made(BLOCKS);
        let layout = header(BLOCKS).layout;
        let data = layout.data_at()..layout.bits_at();
        let mut version = 1;
        let mut model = Model(vec![Known::default(); index64(BLOCKS)]);
        for life in 0..8 {
            super::super::lock(&summed.state).pages.set_max(1 + index64(rng.below(4)));
            let before = disk.image();
            let begin = disk.events().len();
            let mut now = Duration::ZERO;
            for _ in 0..=rng.below(STEPS) {
                match rng.below(10) {
                    0..6 => {
                        let near = [rng.below(8), 1020 + rng.below(8), 2040 + rng.below(28)];
                        version += 1;
                        noted(&disk, &summed, near[index64(rng.below(3))], version);
                    }
                    6..9 => {
                        now += LATER / 2;
                        flushed(&disk, &summed, now);
                    }
                    _ => {
                        summed.close().unwrap();
                        disk.note(FLUSHED);
                    }
                }
            }
            let events = disk.events();
            let end = begin + index64(rng.below(u64_from(events.len() - begin) + 1));
            let mut image = before;
            for event in &events[begin..end] {
                image.apply(event);
                model.apply(event);
            }
            let image = image.cut_at_random(&mut rng, &data);
            let which = format!("seed {seed}, life {life}");
            (disk, summed) = model.judge(disk.blocks(), image, &which);
        }
    });
}
