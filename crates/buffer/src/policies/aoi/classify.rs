//! Which area the pages of a request belong to.

use onefold_units::{Keep, Keeper, Lpn};

use super::cursors::Cursors;
use super::lat::{ChunkBits, Lat, Piece};
use crate::{FtlView, Learnt, Req, Setup, Tables};

/// An area of the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) enum Destination {
    /// Append-only writes.
    #[default]
    Baw,
    /// Append-only reads.
    Bar,
    /// Small or re-accessed.
    Sorb,
}

onefold_units::keep_enum!(Destination { Baw, Bar, Sorb });

/// What happens to the pages of a [`Piece`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Class {
    /// Where pages go that are not buffered.
    pub(super) destination: Destination,
    /// Whether buffered pages go to SORB. If not they are refreshed where they are.
    pub(super) hits_migrate: bool,
    /// Whether a buffered page sets W of its chunk.
    pub(super) hits_rewrite: bool,
}

onefold_units::keep!(Class { destination, hits_migrate, hits_rewrite });

impl Class {
    /// A read of pages of which no append is known.
    pub(super) const SORB: Self =
        Self { destination: Destination::Sorb, hits_migrate: false, hits_rewrite: false };
}

/// What tells an update from an append.
#[derive(Clone, Debug)]
enum Reaccess {
    /// Most of the pages are mapped: "re-write for the logical address allocated to valid data"
    /// (Jeong 2021, sec. IV-A), by majority because a log rewrites its tail page.
    Mapped,
    /// The write does not continue the latest one in its chunk: for FTLs with a cached map.
    Cursor(Cursors),
    /// The printed rules: every write to a chunk whose L is set.
    Literal,
}

impl Keep for Reaccess {
    fn keep(&mut self, keeper: &mut Keeper<'_>) {
        match self {
            Self::Cursor(cursors) => cursors.keep(keeper),
            Self::Mapped | Self::Literal => {}
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TrimReset {
    /// TRIMs that touch the chunk.
    Touch,
    /// TRIMs that cover the chunk.
    Full,
    /// None, as in the paper.
    Off,
}

/// The LAT and the rules that read and change it.
#[derive(Clone, Debug)]
pub(super) struct Classifier {
    lat: Lat,
    reaccess: Reaccess,
    /// Ends of the sequential large rewrites in progress, if those restart a chunk.
    rewrites: Option<Cursors>,
    trim_reset: TrimReset,
    /// Pages from which a request is large.
    threshold: u64,
}

onefold_units::keep!(Classifier { lat, reaccess } each { rewrites } but { trim_reset, threshold });

impl Classifier {
    pub(super) fn new(setup: &Setup) -> Self {
        let parameters = &setup.parameters;
        Self {
            lat: Lat::new(setup),
            reaccess: match parameters.value("reaccess").word() {
                "cursor" => Reaccess::Cursor(Cursors::new()),
                "literal" => Reaccess::Literal,
                _ => Reaccess::Mapped,
            },
            rewrites: (parameters.value("restart").word() == "on").then(Cursors::new),
            trim_reset: match parameters.value("trim_reset").word() {
                "full" => TrimReset::Full,
                "off" => TrimReset::Off,
                _ => TrimReset::Touch,
            },
            threshold: parameters
                .value("threshold")
                .bytes()
                .div_ceil(setup.shape.entry_bytes().into()),
        }
    }

    /// The paper charges the LAT only; it has no cursors.
    pub(super) fn tables(setup: &Setup) -> Tables {
        let paper = Lat::bytes(setup);
        let cursor = setup.parameters.value("reaccess").word() == "cursor";
        let restart = setup.parameters.value("restart").word() == "on";
        Tables { paper, full: paper + (u64::from(cursor) + u64::from(restart)) * Cursors::bytes() }
    }

    /// The LAT.
    pub(super) fn learnt(&self) -> Learnt<'_> {
        self.lat.learnt()
    }

    /// Goes on from a LAT.
    pub(super) fn learn(&mut self, learnt: Learnt<'_>) -> bool {
        self.lat.learn(learnt)
    }

    /// The pages of a request, chunk by chunk.
    #[inline]
    pub(super) fn pieces(&self, r: &Req) -> impl Iterator<Item = Piece> + use<> {
        self.lat.pieces(r)
    }

    /// Whether a request is large, all chunks together.
    #[inline]
    pub(super) fn is_large(&self, r: &Req) -> bool {
        u64::from(r.n) >= self.threshold
    }

    /// Whether the chunk of a page has appends and no updates.
    #[inline]
    pub(super) fn is_append_only(&self, page: u32) -> bool {
        self.lat.get(self.lat.chunk(page)).is_append_only()
    }

    /// Jeong 2021, algorithm 2: reads never change the LAT.
    #[inline]
    pub(super) fn read(&self, piece: &Piece) -> Class {
        let appended = self.lat.get(piece.chunk).is_append_only();
        let destination = if appended { Destination::Bar } else { Destination::Sorb };
        Class { destination, ..Class::SORB }
    }

    /// The paper's algorithm 1, which its text lacks, as sec. IV-A describes it. `ftl` is asked
    /// only where the answer matters.
    #[inline]
    pub(super) fn write(&mut self, piece: &Piece, large: bool, ftl: &dyn FtlView) -> Class {
        let restarts = self.rewrites.is_some() && self.is_whole_rewrite(piece, large);
        let bits = self.lat.get(piece.chunk);
        let matters = !bits.rewritten && (large || bits.large);
        let update = matters && !restarts && self.is_update(bits, piece, ftl);
        if let Reaccess::Cursor(cursors) = &mut self.reaccess {
            cursors.set(piece.chunk, piece.next());
            if piece.goes_on {
                cursors.set(piece.chunk + 1, piece.next());
            }
        }
        let literal = matches!(self.reaccess, Reaccess::Literal);
        if large && !update && !bits.rewritten {
            self.lat.set_large(piece.chunk);
            // A hit is the tail page of a log, but the printed rules take it for an update.
            return Class {
                destination: Destination::Baw,
                hits_migrate: literal,
                hits_rewrite: literal,
            };
        }
        if update && bits.large {
            self.lat.set_rewritten(piece.chunk);
        }
        // In a chunk without appends only the printed rules let a page that is written twice set W.
        let hits_rewrite = !bits.rewritten && (literal || bits.large);
        Class { destination: Destination::Sorb, hits_migrate: true, hits_rewrite }
    }

    fn is_update(&mut self, bits: ChunkBits, piece: &Piece, ftl: &dyn FtlView) -> bool {
        match &mut self.reaccess {
            Reaccess::Mapped => {
                let mapped = ftl.mapped_count(Lpn::new(piece.first), piece.n);
                u64::from(mapped) * 2 > u64::from(piece.n)
            }
            Reaccess::Cursor(cursors) => bits.large && !cursors.continues(piece),
            Reaccess::Literal => bits.large,
        }
    }

    /// Whether the write is part of a sequential rewrite of its chunk by large requests, from its
    /// first page on. One that reaches the end of the chunk restarts it: L = 1, W = 0.
    ///
    /// An addition to the paper, for logs that reuse their space without a TRIM.
    fn is_whole_rewrite(&mut self, piece: &Piece, large: bool) -> bool {
        let Some(rewrites) = &mut self.rewrites else { return false };
        let sequential = large && (self.lat.is_head(piece) || rewrites.continues(piece));
        rewrites.set(piece.chunk, if sequential { piece.next() } else { 0 });
        if sequential && self.lat.is_tail(piece) {
            self.lat.restart(piece.chunk);
        }
        sequential
    }

    /// A buffered page of an append-only chunk was written again.
    #[inline]
    pub(super) fn rewrite(&mut self, key: u32) {
        self.lat.set_rewritten(self.lat.chunk(key));
    }

    /// A large TRIM makes its chunks as good as new. Pages that it only cuts stay, so they do not
    /// count. The paper assumes TRIM (sec. II-B), but none of its rules clears a bit. Chunks whose
    /// bits nobody clears end up in SORB for ever.
    pub(super) fn trim(&mut self, r: &Req) {
        let Some(whole) = r.whole_only().filter(|_| self.is_large(r)) else { return };
        match self.trim_reset {
            TrimReset::Touch => self.lat.clear(&whole, false),
            TrimReset::Full => self.lat.clear(&whole, true),
            TrimReset::Off => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Classifier;
    use crate::policies::aoi::lat::ChunkBits;
    use crate::{FtlView, Learnt, PolicySpec, Req, Setup, Shape, Sizes};
    use onefold_units::convert::low32;
    use onefold_units::{Lpn, Op, Rng};

    /// Pages of the device: 21 chunks of 4, the last one short.
    const PAGES: u32 = 82;
    const CHUNKS: u32 = 21;

    struct EveryOther;

    impl FtlView for EveryOther {
        fn mapped(&self, lpn: Lpn) -> bool {
            lpn.raw() % 8 < 4
        }
    }

    fn classifier(more: &str) -> Classifier {
        let sizes = Sizes::of_one_die(4096, 1 << 30);
        let shape = Shape::new(1 << 20, true, &sizes).unwrap();
        let spec = PolicySpec::parse(&format!("aoi:chunk=16KiB,threshold=12KiB,{more}")).unwrap();
        Classifier::new(&Setup {
            shape,
            parameters: spec.parameters(),
            device_entries: u64::from(PAGES),
            channels: 1,
            ways: 1,
        })
    }

    fn bits(classifier: &Classifier) -> Vec<ChunkBits> {
        (0..CHUNKS).map(|chunk| classifier.lat.get(chunk)).collect()
    }

    fn request(op: Op, rng: &mut Rng) -> Req {
        let first = low32(rng.below(u64::from(PAGES)));
        let n = 1 + low32(rng.below(u64::from(PAGES - first)));
        Req::new(op, Lpn::new(first), if rng.below(2) == 0 { n } else { n.min(2) })
    }

    #[test]
    fn bits_only_rise_between_trims() {
        let mut rng = Rng::new(9);
        for mode in ["mapped", "cursor", "literal"] {
            let mut classifier = classifier(&format!("reaccess={mode}"));
            let mut set = (0, 0);
            for _ in 0..2_000 {
                let r = request(Op::Write, &mut rng);
                let before = bits(&classifier);
                let large = classifier.is_large(&r);
                for piece in classifier.pieces(&r) {
                    if classifier.write(&piece, large, &EveryOther).hits_rewrite
                        && rng.below(2) == 0
                    {
                        classifier.rewrite(piece.first);
                    }
                    classifier.read(&piece);
                }
                for (before, after) in before.iter().zip(bits(&classifier)) {
                    assert!(after.large || !before.large, "{r:?}");
                    assert!(after.rewritten || !before.rewritten, "{r:?}");
                    set.0 += u32::from(after.large && !before.large);
                    set.1 += u32::from(after.rewritten && !before.rewritten);
                }
                if rng.below(16) == 0 {
                    classifier.trim(&request(Op::Trim, &mut rng));
                }
            }
            assert!(set.0 > 90 && set.1 > 90, "{mode}: {set:?}");
        }
    }

    /// A table goes on where it was kept; one of another shape would be about other addresses.
    #[test]
    fn a_table_of_the_same_chunks_is_taken_and_no_other() {
        let (mut taught, mut blank) = (classifier("restart=off"), classifier("restart=off"));
        for chunk in 0..CHUNKS {
            if chunk % 3 == 0 {
                taught.lat.set_large(chunk);
            }
            if chunk % 2 == 0 {
                taught.lat.set_rewritten(chunk);
            }
        }
        let kept = taught.learnt();
        assert_eq!((kept.chunk, kept.bits.len()), (4, 6));
        for other in [Learnt { chunk: 8, ..kept }, Learnt { bits: &kept.bits[..5], ..kept }] {
            assert!(!blank.learn(other));
            assert_eq!(bits(&blank), bits(&classifier("restart=off")));
        }
        assert!(blank.learn(kept));
        assert_eq!(bits(&blank), bits(&taught));
    }

    /// Against one chunk at a time; a long TRIM clears whole bytes of the table.
    #[test]
    fn trims_clear_the_chunks_they_reach() {
        let mut rng = Rng::new(3);
        for (reset, whole) in [("touch", false), ("full", true)] {
            let mut classifier = classifier(&format!("trim_reset={reset}"));
            for _ in 0..3_000 {
                for chunk in 0..CHUNKS {
                    classifier.lat.restart(chunk);
                    classifier.lat.set_rewritten(chunk);
                }
                let r = request(Op::Trim, &mut rng);
                classifier.trim(&r);
                let (first, end) = (r.lpn.raw(), r.lpn.raw() + r.n);
                for (chunk, bits) in (0..).zip(bits(&classifier)) {
                    let (from, to) = (chunk * 4, (chunk * 4 + 4).min(PAGES));
                    let reached =
                        if whole { first <= from && to <= end } else { first < to && from < end };
                    let set = !(reached && r.n >= 3);
                    assert_eq!(bits, ChunkBits { large: set, rewritten: set }, "{reset} {r:?}");
                }
            }
        }
    }
}
