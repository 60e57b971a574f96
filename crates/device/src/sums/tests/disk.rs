//! A device in memory that keeps what was not synchronised apart, may fail, and tells what a power cut leaves.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

use onefold_format::CACHE_BLOCK_BYTES;
use onefold_units::convert::{index64, u64_from};
use onefold_units::{IoFailed, Rng};

use crate::sums::Store;

pub(super) type Block = [u8; CACHE_BLOCK_BYTES];
pub(super) const ZEROES: Block = [0; CACHE_BLOCK_BYTES];

/// How often requests fail, in thousandths.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Faults {
    pub(super) reads: u64,
    pub(super) writes: u64,
    pub(super) syncs: u64,
    /// What is behind this block is not taken.
    pub(super) full_from: Option<u64>,
}

/// What happened, in its order.
#[derive(Clone)]
pub(super) enum Event {
    Write(u64, Box<Block>),
    Durable(u64, Box<Block>),
    Flush,
    /// Something that the test noted.
    Noted(u64),
}

#[derive(Clone, Default)]
pub(super) struct Image {
    /// Blocks that are durable.
    pub(super) held: BTreeMap<u64, Box<Block>>,
    /// Blocks written since, in their order.
    pub(super) unsynced: Vec<(u64, Box<Block>)>,
}

impl Image {
    pub(super) fn apply(&mut self, event: &Event) {
        match event {
            Event::Write(at, block) => self.unsynced.push((*at, block.clone())),
            Event::Durable(at, block) => {
                self.unsynced.retain(|(other, _)| other != at);
                self.held.insert(*at, block.clone());
            }
            Event::Flush => self.held.extend(self.unsynced.drain(..)),
            Event::Noted(_) => {}
        }
    }

    fn read(&self, at: u64) -> &Block {
        let newest = self.unsynced.iter().rev().find(|(other, _)| *other == at);
        newest.map(|(_, block)| block).or_else(|| self.held.get(&at)).map_or(&ZEROES, |block| block)
    }

    /// The power fails, and of what was not synchronised those blocks are there whose bits are set.
    pub(super) fn cut(&self, kept: u64) -> Self {
        let mut held = self.held.clone();
        for (number, (at, block)) in self.unsynced.iter().enumerate() {
            if kept >> number & 1 == 1 {
                held.insert(*at, block.clone());
            }
        }
        Self { held, unsynced: Vec::new() }
    }

    /// The same at random; of blocks that are not in `whole` some sectors may be there.
    pub(super) fn cut_at_random(&self, rng: &mut Rng, whole: &Range<u64>) -> Self {
        let mut held = self.held.clone();
        let often = 1 + rng.below(3);
        for (at, block) in &self.unsynced {
            if whole.contains(at) {
                if rng.below(4) < often {
                    held.insert(*at, block.clone());
                }
                continue;
            }
            let old = held.entry(*at).or_insert_with(|| Box::new(ZEROES));
            for (old, new) in old.chunks_mut(512).zip(block.chunks(512)) {
                if rng.below(4) < often {
                    old.copy_from_slice(new);
                }
            }
        }
        Self { held, unsynced: Vec::new() }
    }
}

struct Inner {
    blocks: u64,
    image: Image,
    events: Vec<Event>,
    faults: Faults,
    rng: Rng,
}

type Hook = Box<dyn FnOnce() + Send>;

/// A handle of a device.
#[derive(Clone)]
pub(super) struct Disk(Arc<Mutex<Inner>>, Arc<Mutex<Option<Hook>>>);

impl Disk {
    pub(super) fn new(blocks: u64) -> Self {
        Self::of(blocks, Image::default())
    }

    pub(super) fn of(blocks: u64, image: Image) -> Self {
        let (events, faults) = (Vec::new(), Faults::default());
        let inner = Inner { blocks, image, events, faults, rng: Rng::new(7) };
        Self(Arc::new(Mutex::new(inner)), Arc::default())
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap()
    }

    pub(super) fn note(&self, what: u64) {
        self.lock().events.push(Event::Noted(what));
    }

    pub(super) fn events(&self) -> Vec<Event> {
        self.lock().events.clone()
    }

    pub(super) fn image(&self) -> Image {
        self.lock().image.clone()
    }

    pub(super) fn set_faults(&self, faults: Faults) {
        self.lock().faults = faults;
    }

    /// Does something while the next flush is under way, after what it makes durable is chosen.
    pub(super) fn during_flush(&self, hook: impl FnOnce() + Send + 'static) {
        *self.1.lock().unwrap() = Some(Box::new(hook));
    }

    /// A byte rots.
    pub(super) fn flip(&self, at: u64, byte: usize) {
        let inner = &mut *self.lock();
        let mut block = *inner.image.read(at);
        block[byte] ^= 0x10;
        inner.image.apply(&Event::Durable(at, Box::new(block)));
    }
}

impl Inner {
    fn draw(&mut self, thousandths: u64) -> Result<(), IoFailed> {
        let fails = thousandths > 0 && self.rng.below(1000) < thousandths;
        if fails { Err(IoFailed::Error) } else { Ok(()) }
    }

    fn apply(&mut self, event: Event) {
        self.image.apply(&event);
        self.events.push(event);
    }

    /// Carries a write out, or a part of it.
    fn put(
        &mut self,
        at: u64,
        bytes: &[u8],
        event: fn(u64, Box<Block>) -> Event,
    ) -> Result<(), IoFailed> {
        let end = at + u64_from(bytes.len() / CACHE_BLOCK_BYTES);
        assert!(end <= self.blocks, "it ends behind the device");
        let mut result = self.draw(self.faults.writes);
        let mut taken = bytes.len();
        if result.is_err() {
            taken = index64(self.rng.below(u64_from(bytes.len()) + 1));
        } else if let Some(from) = self.faults.full_from.filter(|from| *from < end) {
            taken = index64(from.saturating_sub(at)) * CACHE_BLOCK_BYTES;
            result = Err(IoFailed::NoSpace);
        }
        for (at, part) in (at..end).zip(bytes[..taken].chunks(CACHE_BLOCK_BYTES)) {
            let mut block = *self.image.read(at);
            block[..part.len()].copy_from_slice(part);
            self.apply(event(at, Box::new(block)));
        }
        result
    }
}

impl Store for Disk {
    fn blocks(&self) -> u64 {
        self.lock().blocks
    }

    fn parts(&self) -> Vec<Range<u64>> {
        self.lock().image.held.keys().map(|at| *at..at + 1).collect()
    }

    fn read(&self, at: u64, bytes: &mut [u8]) -> Result<(), IoFailed> {
        let mut inner = self.lock();
        let often = inner.faults.reads;
        inner.draw(often)?;
        for (at, part) in (at..).zip(bytes.chunks_mut(CACHE_BLOCK_BYTES)) {
            assert!(at < inner.blocks, "it begins behind the device");
            part.copy_from_slice(inner.image.read(at));
        }
        Ok(())
    }

    fn write(&self, at: u64, bytes: &[u8]) -> Result<(), IoFailed> {
        self.lock().put(at, bytes, Event::Write)
    }

    fn write_durable(&self, at: u64, bytes: &[u8]) -> Result<(), IoFailed> {
        let mut inner = self.lock();
        let often = inner.faults.syncs;
        inner.draw(often)?;
        inner.put(at, bytes, Event::Durable)
    }

    fn flush(&self) -> Result<(), IoFailed> {
        let mut inner = self.lock();
        let often = inner.faults.syncs;
        if let Err(failed) = inner.draw(often) {
            // What was not written by then is lost, and nobody is told again.
            let kept = inner.rng.next_u64();
            inner.image = inner.image.cut(kept);
            return Err(failed);
        }
        inner.apply(Event::Flush);
        drop(inner);
        let hook = self.1.lock().unwrap().take();
        if let Some(hook) = hook {
            hook();
        }
        Ok(())
    }
}
