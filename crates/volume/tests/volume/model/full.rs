//! Without snapshots an overwrite can never run out of space (volume.md, section 5.7): a volume that holds all that its format allows is
//! overwritten at random, for any geometry and any length of batches.

use std::collections::BTreeMap;

use onefold_testkit::{budget, for_each_seed};
use onefold_units::convert::index64;
use onefold_units::{Lba, Nanos, Rng};
use onefold_volume::{
    Backing, Geometry, IoFailed, Layout, Options, Range, Refusal, Volume, drive, format, mount,
};

use super::{BLOCK, label};

/// Steps that a write may have to wait, and requests to the backing that may be written meanwhile: all log segments several times.
const PATIENCE: u32 = 1000;
const WRITES_MAX: u64 = 20_000;

/// Holds headers and metadata; blocks of the host carry no bytes.
#[derive(Default)]
struct Headers {
    blocks: BTreeMap<u64, Box<[u8]>>,
    /// Writes since the host wrote.
    writes: u64,
}

impl Backing for Headers {
    fn read(&mut self, at: u64, bytes: &mut [u8]) -> Result<(), IoFailed> {
        for (at, block) in (at..).zip(bytes.chunks_mut(BLOCK)) {
            match self.blocks.get(&at) {
                Some(held) => block.copy_from_slice(held),
                None => block.fill(0),
            }
        }
        Ok(())
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), IoFailed> {
        self.writes += 1;
        assert!(self.writes < WRITES_MAX, "the cleaner goes round for ever");
        self.blocks.extend((at..).zip(bytes.chunks(BLOCK).map(Box::from)));
        Ok(())
    }

    fn flush(&mut self) -> Result<(), IoFailed> {
        Ok(())
    }

    fn trim(&mut self, at: u64, blocks: u64) -> Result<(), IoFailed> {
        (at..at + blocks).for_each(|at| drop(self.blocks.remove(&at)));
        Ok(())
    }
}

fn pick<T: Copy>(rng: &mut Rng, from: &[T]) -> T {
    from[index64(rng.below(from.len() as u64))]
}

/// A geometry that exports all that format allows, and options with which batches of the host are as short as may be, or longer.
fn random_geometry(rng: &mut Rng) -> (Geometry, Options) {
    let unit_blocks = pick(rng, &[1, 2, 4, 4, 8, 16]);
    let segment_blocks = unit_blocks * pick(rng, &[4, 5, 8, 16, 20]);
    let segment_blocks = segment_blocks.max(64_u32.next_multiple_of(unit_blocks));
    let segments = pick(rng, &[132, 150, 190]);
    let backing_blocks = u64::from(segment_blocks) * segments;
    let mut geometry = Geometry {
        backing_blocks,
        segment_blocks,
        zone_blocks: 0,
        unit_blocks,
        logical_blocks: 1,
        compress: None,
    };
    let most = Layout::new(geometry).expect("a geometry").logical_max();
    // Also with more over-provisioning.
    geometry.logical_blocks = most * pick(rng, &[100, 100, 100, 98, 90, 70]) / 100;
    let batch_blocks = (unit_blocks * pick(rng, &[1, 2, 4, 64])).clamp(2, 256);
    let batches = index64(u64::from(256 / (batch_blocks - 1))) + 11;
    let checkpoint_blocks = pick(rng, &[1 << 20, 2000]);
    let options =
        Options { batch_blocks, batches, checkpoint_blocks, bytes: false, ..Options::default() };
    (geometry, options)
}

struct Full {
    volume: Volume,
    backing: Headers,
    now: Nanos,
}

impl Full {
    fn new(geometry: Geometry, options: Options) -> Self {
        let Geometry { backing_blocks, logical_blocks, segment_blocks, unit_blocks, .. } = geometry;
        let mut backing = Headers::default();
        let label = label(backing_blocks, logical_blocks, segment_blocks, unit_blocks);
        format(&mut backing, &label).expect("a geometry that fits");
        let (volume, _) = mount(&mut backing, backing_blocks, options).expect("a new volume");
        Self { volume, backing, now: Nanos::ZERO }
    }

    fn step(&mut self) {
        self.now += Nanos::new(2_000_000);
        drive(&mut self.volume, &mut self.backing, self.now);
        while self.volume.poll_done().is_some() {}
    }

    /// A volume that nobody uses comes to rest, however full it is.
    fn rest(&mut self) {
        // A checkpoint 30 s after the last may have the cleaner move more, and that asks for another one.
        let rests = (0..20).any(|_| {
            self.backing.writes = 0;
            self.idle();
            self.backing.writes == 0
        });
        assert!(rests, "it goes on for ever");
    }

    /// Longer than a checkpoint is put off.
    fn idle(&mut self) {
        for _ in 0..400 {
            self.now += Nanos::new(100_000_000);
            self.step();
        }
    }

    /// Writes a range. An error if it has to wait for ever.
    fn write(&mut self, lba: u64, blocks: u64, flush: bool) -> Result<(), String> {
        let range = Range { lba: Lba::new(lba), blocks };
        self.backing.writes = 0;
        for _ in 0..PATIENCE {
            let before = self.volume.free_segments();
            let result = self.volume.write(1, range, None, false);
            let free = self.volume.free_segments();
            // What the cleaner and the map need is not the host's.
            assert!(free == before || free >= self.volume.reserve(), "the host took the reserve");
            match result {
                Ok(()) if !flush => return Ok(()),
                Ok(()) => {
                    self.volume.flush(2).map_err(|refusal| format!("{refusal:?}"))?;
                    self.step();
                    return Ok(());
                }
                Err(Refusal::Busy) => self.step(),
                Err(refusal) => return Err(format!("{refusal:?}")),
            }
        }
        Err(format!("busy for ever with {} free log segments", self.volume.free_segments()))
    }
}

/// Every block is written, then twice as many again, anywhere.
fn overwrite(rng: &mut Rng, full: &mut Full, blocks: u64) -> Result<(), String> {
    let (most, flush) = (pick(rng, &[1, 4, 20]), pick(rng, &[true, false]));
    let mut at = 0;
    while at < blocks {
        let count = (1 + rng.below(20)).min(blocks - at);
        full.write(at, count, false)?;
        at += count;
    }
    let mut written = 0;
    while written < 2 * blocks {
        let lba = rng.below(blocks);
        let count = (1 + rng.below(most)).min(blocks - lba);
        full.write(lba, count, flush)?;
        written += count;
    }
    Ok(())
}

#[test]
fn full_volumes_can_always_be_overwritten() {
    for_each_seed(("onefold-volume", "volume", "full_volumes_can_always"), 60, |seed| {
        let mut rng = Rng::new(seed);
        let (geometry, options) = random_geometry(&mut rng);
        let mut full = Full::new(geometry, options);
        overwrite(&mut rng, &mut full, geometry.logical_blocks)
            .unwrap_or_else(|what| panic!("{what}: {geometry:?}, {options:?}"));
        full.rest();
    });
}

/// Batches of 16 blocks leave 60 of 64 in each log segment, so the cleaner gains three in each: many have to be emptied, and begun with
/// early enough, before the last is taken.
#[test]
fn volumes_of_many_log_segments_can_be_filled() {
    // With nothing cleaned before the host waits, four victims at a time would come to a stop half way, and so would checkpoints: what
    // describes 12,000 log segments is nearly as long as one of them.
    let cases = [(600, None), (3000, Some(0)), (600, Some(0)), (6000, None), (12_000, Some(0))];
    for (segments, clean_below) in cases.into_iter().take(index64(budget(5))) {
        let backing_blocks = 64 * segments;
        let of = |logical_blocks| Geometry {
            backing_blocks,
            segment_blocks: 64,
            zone_blocks: 0,
            unit_blocks: 1,
            logical_blocks,
            compress: None,
        };
        let blocks = Layout::new(of(1)).expect("a geometry").logical_max();
        let options = Options {
            batch_blocks: 16,
            batches: 32,
            checkpoint_blocks: 1024,
            bytes: false,
            clean_below,
            ..Options::default()
        };
        let mut full = Full::new(of(blocks), options);
        let most = u64::from(full.volume.write_blocks_max());
        for at in (0..blocks).step_by(index64(most)) {
            full.write(at, most.min(blocks - at), false)
                .unwrap_or_else(|what| panic!("{what}: at block {at} of {blocks}"));
        }
        let mut rng = Rng::new(segments);
        for written in 0..5000 {
            full.write(rng.below(blocks), 1, false)
                .unwrap_or_else(|what| panic!("{what}, {written} blocks overwritten"));
        }
        full.rest();
    }
}

/// What the map of a device of short log segments may grow to is more than a root lists, which has room for 64 of them.
#[test]
fn a_large_volume_of_short_log_segments_takes_writes() {
    let logical_blocks = 1 << 20;
    let geometry = Geometry {
        backing_blocks: 2 * logical_blocks,
        segment_blocks: 64,
        zone_blocks: 0,
        unit_blocks: 1,
        logical_blocks,
        compress: None,
    };
    for_each_seed(("onefold-volume", "volume", "a_large_volume_of_short"), 2, |seed| {
        let mut rng = Rng::new(seed);
        let mut full = Full::new(geometry, Options { bytes: false, ..Options::default() });
        for written in 0..60_000 {
            full.write(rng.below(logical_blocks), 1, false)
                .unwrap_or_else(|what| panic!("{what}, {written} blocks written"));
        }
        full.rest();
    });
}
