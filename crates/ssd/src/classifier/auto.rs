//! Streams without being asked: by what the writes of an unmodified host show.
//!
//! Terms. A *chunk* is 1 MiB of addresses, a *piece* 16 KiB of it (or a mapping unit, if that is larger). A *lap* of a chunk is as
//! many writes as it has pieces, and the *life* of data is how many units the device writes until it is overwritten.
//! Of each piece one unit is measured and speaks for its neighbours.
//!
//! 1. A lap takes the mean life of the data in its chunk, if all pieces are alike. The first lap after power-on tells
//!    nothing, and a lap that takes longer than those before it counts as long as it is already.
//! 2. The *heat* of a piece, 0 to 3, rises with each write and falls with each lap: its life is so much shorter or longer than
//!    that of the chunk. So a hot piece of a cold chunk is told in 2 bits.
//! 3. The class of a write is a matter of these two and of [`Appends`], so a chunk takes 22 B and a quarter.
//! 4. The state is counts of writes; it is volatile, and a wrong class only misplaces.

use onefold_buffer::{Appends, Req};
use onefold_units::Lpn;
use onefold_units::convert::{index, index64, low8, low16, narrow};

use super::{BuildClassifier, Classifier, ClassifierInfo, ClassifierSetup, UnitWrite};

/// Name and source.
pub(super) static INFO: ClassifierInfo = ClassifierInfo {
    name: "auto",
    about: "By measured lives, appends and rings, whatever the request names: eight classes, which share the \
            streams there are, neighbours first.",
    source: "Yang et al. 2017 (AutoStream); Wang et al. 2022 (SepBIT); Jeong et al. 2021",
    parameters: &[],
    build: BuildClassifier::of::<Auto>(),
};

const CHUNK_BYTES: u32 = 1 << 20;
const PIECES_MOST: u32 = 64;
/// 2-bit counters in a word.
const HEATS: u32 = 8;
/// Logarithms have this many steps for each doubling.
const STEPS: u32 = 8;
/// The life of a piece beside that of its chunk, by heat, in steps: 3, 1, 1/2 and 1/5 of it.
const BY_HEAT: [i32; 4] = [13, 0, -8, -19];

/// Classes in the order in which neighbours share a stream: by how soon their data dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    /// A life of a drive write or more, or one that nobody has seen.
    Cold,
    /// Written in order and not updated since: files.
    Append,
    /// A life of half a drive write or more.
    Half,
    /// Of a quarter or more.
    Quarter,
    /// Of an eighth or more.
    Eighth,
    /// Of a 32nd or more.
    Short,
    /// Shorter and scattered: metadata of file systems, and what is as hot.
    Metadata,
    /// Appends with a short life: journals and write-ahead logs.
    Journal,
}

impl Class {
    const COUNT: u32 = 8;

    /// Its stream of so many.
    fn stream(self, streams: u32) -> u32 {
        let rank = match self {
            Self::Cold => 0,
            Self::Append => 1,
            Self::Half => 2,
            Self::Quarter => 3,
            Self::Eighth => 4,
            Self::Short => 5,
            Self::Metadata => 6,
            Self::Journal => 7,
        };
        rank * streams.min(Self::COUNT) / Self::COUNT
    }
}

/// What is known of a chunk. Words of 16 bits, because a table of these has no gaps then.
#[derive(Clone, Copy, Debug, Default)]
struct Chunk {
    /// Two bits for each piece.
    heat: [u16; index(PIECES_MOST / HEATS)],
    /// Number of the write that ended the latest lap, low half first.
    began: [u16; 2],
    /// Logarithm of the writes of a lap; 0: no lap was seen from its beginning.
    lap: u8,
    /// Writes since the latest lap, or since power-on: below the number of pieces.
    writes: u8,
}

onefold_units::keep!(Chunk { heat, began, lap, writes });

/// A life as a logarithm; `None` if nobody knows.
type Life = Option<i32>;

impl Chunk {
    fn began(&self) -> u32 {
        u32::from(self.began[0]) | (u32::from(self.began[1]) << 16)
    }

    /// Lives of the data that a write to `piece` replaces at `now`: mean of the chunk, and of the piece.
    fn lives(&self, now: u32, piece: u32) -> (Life, Life) {
        if self.lap == 0 {
            return (None, None);
        }
        let mean = i32::from(self.lap).max(i32::from(log(now.wrapping_sub(self.began()))));
        let heat = (self.heat[index(piece / HEATS)] >> (piece % HEATS * 2)) & 3;
        (Some(mean), Some(mean + BY_HEAT[usize::from(heat)]))
    }

    /// Counts a write to the measured unit of a piece.
    fn count(&mut self, now: u32, piece: u32, pieces: u32) {
        let (word, shift) = (&mut self.heat[index(piece / HEATS)], piece % HEATS * 2);
        if (*word >> shift) & 3 < 3 {
            *word += 1 << shift;
        }
        self.writes += 1;
        if u32::from(self.writes) == pieces {
            self.end_lap(now);
        }
    }

    fn end_lap(&mut self, now: u32) {
        let is_first = self.lap == 0 && self.began == [0, 0];
        if !is_first {
            let took = log(now.wrapping_sub(self.began()));
            self.lap = if self.lap == 0 { took } else { self.lap.midpoint(took) };
        }
        self.writes = 0;
        self.began = [low16(now.into()), low16((now >> 16).into())];
        for word in &mut self.heat {
            // One less for each counter that is not 0.
            *word -= (*word | (*word >> 1)) & 0x5555;
        }
    }
}

/// Logarithm in steps, at least 1.
fn log(count: u32) -> u8 {
    let count = count.max(1);
    let whole = count.ilog2();
    let rest = (u64::from(count) * u64::from(STEPS)) >> whole;
    low8((u64::from(whole * STEPS) + rest - u64::from(STEPS)).clamp(1, 255))
}

/// Eight classes of writes, by the evidence above.
///
/// Chunks of 1 MiB and no per-unit table are `AutoStream`'s (Yang 2017); that the life of the data which a write replaces tells the
/// life of what it writes is `SepBIT`'s (Wang 2022, sec. 3). Differs from both: lives of pieces beside that of
/// their chunk in 2 bits each, and appends apart, as a first life tells nothing of them. Collection has a stream of its own
/// (`ftl.separate_gc`).
#[derive(Debug)]
struct Auto {
    chunks: Vec<Chunk>,
    appends: Option<Appends>,
    /// Units written, with wrap.
    written: u32,
    /// Logarithm of the units of the device.
    capacity: i32,
    streams: u32,
    /// log2 of the units in a piece, and of the pieces in a chunk.
    piece_shift: u32,
    chunk_shift: u32,
}

impl Auto {
    fn class(&self, lpn: Lpn, (mean, own): (Life, Life)) -> Class {
        let beside = |life: i32| life - self.capacity;
        let doublings = |n: i32| n * STEPS.cast_signed();
        let (mean, mut own) = (mean.map_or(i32::MAX, beside), own.map_or(i32::MAX, beside));
        if self.appends.as_ref().is_some_and(|appends| appends.contains(lpn)) {
            // What is written in order dies in order: pieces are alike.
            own = mean;
            if mean >= 0 {
                return Class::Append;
            }
            if mean < doublings(-3) {
                return Class::Journal;
            }
        }
        match own {
            0.. => Class::Cold,
            own if own >= doublings(-1) => Class::Half,
            own if own >= doublings(-2) => Class::Quarter,
            own if own >= doublings(-3) => Class::Eighth,
            own if own >= doublings(-5) => Class::Short,
            _ => Class::Metadata,
        }
    }
}

impl Classifier for Auto {
    const ASKS_AGES: bool = false;

    fn new(setup: &ClassifierSetup) -> Self {
        let unit = setup.unit_bytes.clamp(1, CHUNK_BYTES);
        let piece = (CHUNK_BYTES / PIECES_MOST).max(unit);
        let units_per_chunk = u64::from(CHUNK_BYTES / unit);
        Self {
            chunks: vec![Chunk::default(); index64(setup.units.div_ceil(units_per_chunk))],
            appends: Appends::new(setup.units, setup.unit_bytes),
            written: 0,
            capacity: i32::from(log(narrow(setup.units))),
            streams: setup.streams,
            piece_shift: (piece / unit).ilog2(),
            chunk_shift: (CHUNK_BYTES / piece).ilog2(),
        }
    }

    fn request(&mut self, request: &Req) {
        if let Some(appends) = &mut self.appends {
            appends.request(request);
        }
    }

    fn stream(&mut self, write: &UnitWrite) -> u32 {
        self.written = self.written.wrapping_add(1);
        let piece = write.lpn.raw() >> self.piece_shift;
        let pieces = 1 << self.chunk_shift;
        let Some(chunk) = self.chunks.get_mut(index(piece >> self.chunk_shift)) else { return 0 };
        let within = piece & (pieces - 1);
        let lives = chunk.lives(self.written, within);
        if write.lpn.raw().is_multiple_of(1 << self.piece_shift) {
            chunk.count(self.written, within, pieces);
        }
        self.class(write.lpn, lives).stream(self.streams)
    }

    onefold_units::keep_fields!({ chunks, written } each { appends } but { capacity, streams, piece_shift, chunk_shift });
}

#[cfg(test)]
mod tests;
