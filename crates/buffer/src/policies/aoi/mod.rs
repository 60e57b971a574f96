//! Append-only isolation. Source: Jeong et al., "Buffer management with append-only data isolation
//! for improving SSD performance", 2021.
//!
//! Terms. A *chunk* is an aligned range of addresses with two bits in the large-append table
//! ([`lat::Lat`]): L, a large write was no update; W, its data was written again. A request is
//! *large* from a threshold on. Three areas share the buffer:
//!
//! - *BAW*: large writes into chunks without rewritten data;
//! - *BAR*: reads of chunks with L and without W;
//! - *SORB*: everything else, small or re-accessed.
//!
//! BAW and BAR hold one flash page per die at most, SORB the whole buffer. Who makes room:
//!
//! | for | gives up pages, in this order |
//! |---|---|
//! | SORB | all of BAR; BAW in flash pages; SORB |
//! | BAW, if it cannot grow to its limit | all of BAR; SORB; BAW |
//! | BAR, if it cannot grow to its limit | BAW in flash pages; SORB; BAR |
//! | BAW or BAR, if it can | itself |
//!
//! Pages never leave SORB for another area. [`classify`] decides about pages, [`areas`] about the
//! victim's area, a [`Nested`] policy about the order inside SORB.
//!
//! The paper's algorithm 1 is missing from its text, nobody clears its bits, and its second
//! sequential request into a chunk counts as an update. `reaccess=literal,trim_reset=off` is what
//! is printed; the defaults are what it describes.

mod appends;
mod areas;
mod classify;
mod cursors;
mod lat;

pub use appends::Appends;

use onefold_units::{Keep, Keeper, Op};

use self::areas::Areas;
use self::classify::{Class, Classifier};
use self::lat::Piece;
use super::Lru;
use super::cflru::Cflru;
use super::nested::{Nested, Newcomer};
use super::pt_lru::PtLru;
use super::s3_fifo::S3Fifo;
use super::sieve::Sieve;
use super::two_level::TwoLevel;
use crate::table::cache;
use crate::{
    Access, Actions, Area, BufferConfig, BufferError, Build, Entries, FtlView, Learnt, Limits,
    ListId, NodeId, Pages, Parameter, Parameters, Policy, PolicyInfo, Replacement, Req, Setup,
    Sizes, Tables, Value, Violation,
};

/// Append-only writes.
const BAW: ListId = ListId(0);
/// Append-only reads.
const BAR: ListId = ListId(1);
/// The first list of SORB; its others follow.
const SORB: ListId = ListId(2);
/// Lists of all areas, if SORB has three.
const LISTS_MOST: usize = 5;

/// Name, source and parameters.
pub(crate) static INFO: PolicyInfo = PolicyInfo {
    name: "aoi",
    about: "Append-only isolation: data written once leaves before anything that is used again.",
    source: "Jeong et al. 2021",
    parameters: &[
        Parameter {
            name: "reaccess",
            default: Value::Word("mapped"),
            limits: Limits::Words(&["mapped", "cursor", "literal"]),
            about: "What tells an update from an append: most pages are mapped, the write does not \
                    continue the one before, or any write to a chunk with appends.",
        },
        Parameter {
            name: "chunk",
            default: Value::Bytes(1 << 20),
            limits: Limits::PowerOfTwo { least: 512, most: 1 << 30 },
            about: "Addresses that share two bits of the large-append table.",
        },
        Parameter {
            name: "threshold",
            default: Value::Bytes(16 << 10),
            limits: Limits::Bytes { least: 0, most: 1 << 40 },
            about: "Size from which a write or TRIM is large.",
        },
        Parameter {
            name: "channels",
            default: Value::Count(0),
            limits: Limits::Count { least: 0, most: 4096 },
            about: "Flash channels: an append-only area holds a flash page for each die; 0: those of \
                    the drive.",
        },
        Parameter {
            name: "ways",
            default: Value::Count(0),
            limits: Limits::Count { least: 0, most: 4096 },
            about: "Dies on a channel; 0: those of the drive.",
        },
        Parameter {
            name: "trim_reset",
            default: Value::Word("touch"),
            limits: Limits::Words(&["touch", "full", "off"]),
            about: "Large TRIMs that reset the bits of a chunk: all that touch it, that cover it, none.",
        },
        Parameter {
            name: "area",
            default: Value::Word("lru"),
            limits: Limits::Words(&["lru", "2l", "pt-lru", "cflru", "s3-fifo", "sieve"]),
            about: "Replacement inside the area of small and re-accessed pages.",
        },
        Parameter {
            name: "restart",
            default: Value::Word("off"),
            limits: Limits::Words(&["off", "on"]),
            about: "Whether a chunk that large writes rewrite from end to end is append-only again.",
        },
    ],
    build: Build::with(&build, OverLru::asks_ftl),
};

/// With LRU, or another policy, inside SORB.
pub(crate) type OverLru = Aoi<Lru<{ SORB.0 }>>;
pub(crate) type OverTwoLevel = Aoi<TwoLevel<{ SORB.0 }>>;
pub(crate) type OverPtLru = Aoi<PtLru<{ SORB.0 }>>;
pub(crate) type OverCflru = Aoi<Cflru<{ SORB.0 }>>;
pub(crate) type OverS3Fifo = Aoi<S3Fifo<{ SORB.0 }>>;
pub(crate) type OverSieve = Aoi<Sieve<{ SORB.0 }>>;

/// Append-only isolation over the configured policy of SORB.
fn build(config: &BufferConfig, sizes: &Sizes) -> Result<Box<dyn Policy + Send>, BufferError> {
    match config.policy.value("area").word() {
        "2l" => cache::<OverTwoLevel>(config, sizes),
        "pt-lru" => cache::<OverPtLru>(config, sizes),
        "cflru" => cache::<OverCflru>(config, sizes),
        "s3-fifo" => cache::<OverS3Fifo>(config, sizes),
        "sieve" => cache::<OverSieve>(config, sizes),
        _ => cache::<OverLru>(config, sizes),
    }
}

/// What was decided about consecutive pages of the request.
#[derive(Clone, Copy, Debug, Default)]
struct Stretch {
    last: u32,
    class: Class,
}

onefold_units::keep!(Stretch { last, class });

/// Append-only isolation, with a replacement policy for SORB.
#[derive(Clone, Debug)]
pub(crate) struct Aoi<S> {
    classifier: Classifier,
    areas: Areas<S>,
    /// The pages of the request that are being handled.
    now: Stretch,
    /// Those after them, ascending.
    plan: Vec<Stretch>,
    /// The stretch of the plan that comes next.
    next: usize,
    /// Most pages in BAW, and in BAR.
    most: u32,
}

impl<S: Nested> Aoi<S> {
    /// BAW, BAR, and the lists of SORB from number 2 on.
    const LISTS: [Area; LISTS_MOST] = {
        let mut lists = [Area::new("sorb"); LISTS_MOST];
        lists[0] = Area::append_only("baw");
        lists[1] = Area::new("bar");
        lists
    };

    /// Decides about all pages of a request: before any of them changes the LAT or the FTL.
    #[inline]
    fn plan(
        &mut self,
        r: &Req,
        out: &mut Actions,
        decide: impl Fn(&mut Classifier, &Piece) -> Class,
    ) {
        self.plan.clear();
        self.next = 0;
        let mut pieces = self.classifier.pieces(r);
        let Some(first) = pieces.next() else { return };
        out.look_up();
        self.now = Stretch { last: first.last(), class: decide(&mut self.classifier, &first) };
        for piece in pieces {
            out.look_up();
            let (last, class) = (piece.last(), decide(&mut self.classifier, &piece));
            let before = self.plan.last_mut().unwrap_or(&mut self.now);
            if before.class == class {
                before.last = last;
            } else {
                self.plan.push(Stretch { last, class });
            }
        }
    }

    /// What was decided about a page. Pages are asked for in ascending order.
    #[inline]
    fn class_of(&mut self, key: u32) -> Class {
        while self.now.last < key {
            self.go_on();
        }
        self.now.class
    }

    fn go_on(&mut self) {
        self.now = self.plan[self.next];
        self.next += 1;
    }

    fn limit(&self, e: &Entries, list: ListId) -> Result<(), Violation> {
        let (found, limit) = (e.len(list), self.most);
        if found > limit {
            return Err(Violation::ListLimit { list: usize::from(list.0), found, limit });
        }
        Ok(())
    }
}

impl<S: Nested> Replacement for Aoi<S> {
    const AREAS: &'static [Area] = Self::LISTS.split_at(2 + S::AREAS.len()).0;

    fn asks_ftl(parameters: &Parameters) -> bool {
        parameters.value("reaccess").word() == "mapped"
    }

    fn new(setup: &Setup) -> Self {
        Self {
            classifier: Classifier::new(setup),
            areas: Areas::new(setup),
            plan: Vec::new(),
            now: Stretch { last: 0, class: Class::SORB },
            next: 0,
            most: Areas::<S>::most(setup),
        }
    }

    fn validate(setup: &Setup) -> Result<(), BufferError> {
        let found = setup.parameters.value("chunk").bytes();
        if found < u64::from(setup.shape.entry_bytes()) {
            let limit = "a size not below that of a buffer entry (the mapping unit)";
            let (policy, key) = (INFO.name, "chunk");
            return Err(BufferError::Parameter { policy, key, found, limit });
        }
        Ok(())
    }

    fn ghosts(setup: &Setup) -> u32 {
        S::ghosts(setup)
    }

    fn tables(setup: &Setup) -> Tables {
        Classifier::tables(setup)
    }

    /// An append-only area has to fit in.
    fn least(setup: &Setup) -> u32 {
        Areas::<S>::most(setup)
    }

    #[inline]
    fn begin(&mut self, r: &Req, ftl: &dyn FtlView, _: &Entries, out: &mut Actions) {
        match r.op {
            Op::Read => self.plan(r, out, |classifier, piece| classifier.read(piece)),
            Op::Write | Op::WriteZeroes => {
                let large = self.classifier.is_large(r);
                self.plan(r, out, |classifier, piece| classifier.write(piece, large, ftl));
            }
            Op::Trim => self.classifier.trim(r),
            Op::Flush => {}
        }
    }

    #[inline]
    fn hit(&mut self, e: &mut Entries, id: NodeId, access: Access, out: &mut Actions) {
        let node = e.slab().node(id);
        let (key, own) = (node.key, ListId(node.list));
        let class = self.class_of(key);
        if class.hits_rewrite {
            self.classifier.rewrite(key);
        }
        if own >= SORB {
            self.areas.sorb.hit(e, id, access, out);
        } else if class.hits_migrate {
            self.areas.sorb.join(e, id);
        } else {
            e.move_to_newest(own, id);
        }
    }

    #[inline]
    fn admit(
        &mut self,
        e: &mut Entries,
        key: u32,
        ghost: Option<NodeId>,
        access: Access,
        out: &mut Actions,
    ) -> Option<NodeId> {
        if let Some(ghost) = ghost {
            e.remove_ghost(ghost);
        }
        let destination = self.class_of(key).destination;
        let page = Newcomer { key, access, known: ghost.is_some() };
        Some(self.areas.admit(e, destination, page, out))
    }

    #[inline]
    fn admit_fresh(&mut self, e: &mut Entries, pages: Pages, out: &mut Actions) -> u32 {
        let destination = self.class_of(pages.first).destination;
        let alike = (self.now.last - pages.first).saturating_add(1);
        self.areas.admit_fresh(e, destination, pages.up_to(alike), out)
    }

    fn forget(&mut self, e: &mut Entries, id: NodeId) {
        if e.slab().list_of(id).is_some_and(|list| list >= SORB) {
            self.areas.sorb.forget(e, id);
        }
    }

    fn cleaned(&mut self, e: &mut Entries, id: NodeId) {
        if e.slab().list_of(id).is_some_and(|list| list >= SORB) {
            self.areas.sorb.cleaned(e, id);
        }
    }

    /// Append-only data first, so that its flash pages are not mixed up in time.
    fn flush(&mut self, e: &mut Entries, out: &mut Actions) {
        e.flush(BAW, out);
        for list in (SORB.0..).take(S::AREAS.len()) {
            e.flush(ListId(list), out);
        }
        e.flush(BAR, out);
    }

    fn learnt(&self) -> Option<Learnt<'_>> {
        Some(self.classifier.learnt())
    }

    fn learn(&mut self, learnt: Learnt<'_>) -> bool {
        self.classifier.learn(learnt)
    }

    fn check(&self, e: &Entries) -> Result<(), Violation> {
        self.limit(e, BAW)?;
        self.limit(e, BAR)?;
        self.areas.sorb.check(e)
    }

    fn keep(&mut self, keeper: &mut Keeper<'_>) {
        let Self { classifier, areas, now, plan, next, most: _ } = self;
        classifier.keep(keeper);
        areas.keep(keeper);
        now.keep(keeper);
        plan.keep(keeper);
        next.keep(keeper);
    }
}
