//! The part that all policies over single entries share: what a request does page by page.

use onefold_units::{Lpn, Op};

use crate::cover::{Cover, Covers, cover_of};
use crate::stats::Written;
use crate::{
    Action, Actions, Area, BufferError, Entries, FtlView, ListId, NodeId, Policy, Req, Setup,
    Stats, Tables, Violation,
};

/// Why a page is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A read.
    Read,
    /// A write.
    Write,
}

/// What one policy decides: which list an entry is in, and which entry leaves.
///
/// The lists and everything about dirty data are in [`Entries`]; ghosts are entries of further
/// lists without a slot.
pub trait Replacement {
    /// The lists of entries, then those of ghosts.
    const AREAS: &'static [Area];

    /// The policy with nothing buffered.
    fn new(setup: &Setup) -> Self;

    /// Refuses parameters that do not fit one another or the sizes.
    fn validate(_: &Setup) -> Result<(), BufferError> {
        Ok(())
    }

    /// Keys without bytes that the policy remembers at most.
    #[must_use]
    fn ghosts(_: &Setup) -> u32 {
        0
    }

    /// Memory of tables that the policy keeps besides entries and ghosts.
    #[must_use]
    fn tables(_: &Setup) -> Tables {
        Tables::default()
    }

    /// Entries the policy cannot do without.
    #[must_use]
    fn least(setup: &Setup) -> u32 {
        setup.shape.per_program()
    }

    /// Looks at a request before its pages are handled.
    #[inline]
    fn begin(&mut self, _: &Req, _: &dyn FtlView, _: &Entries, _: &mut Actions) {}

    /// A buffered page is accessed. The entry must stay buffered.
    fn hit(&mut self, e: &mut Entries, id: NodeId, access: Access, out: &mut Actions);

    /// A page that is not buffered is accessed: makes room and inserts it. `ghost` is what the
    /// policy remembers of it; it has to be removed before. `None` refuses a read, which is then
    /// served from flash; a write has to be admitted.
    fn admit(
        &mut self,
        e: &mut Entries,
        key: u32,
        ghost: Option<NodeId>,
        access: Access,
        out: &mut Actions,
    ) -> Option<NodeId>;

    /// The entry, or ghost, is about to leave because of a TRIM.
    #[inline]
    fn forget(&mut self, _: &mut Entries, _: NodeId) {}

    /// The entry was programmed and stays, clean: the end of a FLUSH or FUA write.
    #[inline]
    fn cleaned(&mut self, _: &mut Entries, _: NodeId) {}

    /// Programs all dirty entries; afterwards [`Replacement::cleaned`] is called for each. The
    /// default goes through the lists in their order, oldest entry first.
    fn flush(&mut self, e: &mut Entries, out: &mut Actions) {
        for list in (0..).take(Self::AREAS.len()) {
            e.flush(ListId(list), out);
        }
    }

    /// Checks the limits of the policy.
    fn check(&self, _: &Entries) -> Result<(), Violation> {
        Ok(())
    }
}

/// What the pages of a request hit.
#[derive(Clone, Copy, Default)]
struct Hits {
    pages: u64,
    sectors: u64,
}

impl Hits {
    #[inline]
    fn count(&mut self, hit: bool, cover: Cover) {
        self.pages += u64::from(hit);
        self.sectors += if hit { u64::from(cover.sectors) } else { 0 };
    }
}

/// A [`Policy`] made of a [`Replacement`]: write-back, write-allocate, reads and writes admitted.
#[derive(Clone, Debug)]
pub struct Cache<R> {
    entries: Entries,
    replacement: R,
}

impl<R: Replacement> Cache<R> {
    /// An empty buffer.
    #[must_use]
    pub fn new(setup: &Setup) -> Self {
        let entries = Entries::new(setup.shape, R::ghosts(setup), R::AREAS);
        Self { entries, replacement: R::new(setup) }
    }

    /// The entry that serves an access, `None` if the policy refuses it; and whether it was there.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the loop over pages: a call costs a tenth of a page")]
    fn access(&mut self, key: u32, access: Access, out: &mut Actions) -> (Option<NodeId>, bool) {
        let e = &mut self.entries;
        match e.find_any(key) {
            Some(id) if !e.slab().is_ghost(id) => {
                self.replacement.hit(e, id, access, out);
                (Some(id), true)
            }
            ghost => (self.replacement.admit(e, key, ghost, access, out), false),
        }
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the loop over pages: a call costs a tenth of a page")]
    fn read_page(&mut self, key: u32, cover: Cover, hits: &mut Hits, out: &mut Actions) {
        let Some(id) = self.access(key, Access::Read, out).0 else {
            out.push(Action::Bypass { lpn: Lpn::new(key) });
            return;
        };
        let hit = self.entries.load(id, cover, out);
        hits.count(hit, cover);
    }

    #[inline]
    fn read(&mut self, r: &Req, out: &mut Actions) {
        let mut hits = Hits::default();
        match Covers::new(r, self.entries.shape()) {
            Covers::Whole(cover) => {
                for key in r.keys() {
                    self.read_page(key, cover, &mut hits, out);
                }
            }
            Covers::Cut => {
                for (at, key) in (0..).zip(r.keys()) {
                    let cover = cover_of(r, at, self.entries.shape());
                    self.read_page(key, cover, &mut hits, out);
                }
            }
        }
        let pages = u64::from(r.count());
        let tenant = self.entries.end_request(r.tenant);
        tenant.flash_reads += pages - hits.pages;
        tenant.reads.add(pages, hits.pages, hits.sectors * 512);
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the loop over pages: a call costs a tenth of a page")]
    fn write_page(
        &mut self,
        key: u32,
        cover: Cover,
        tenant: u8,
        hits: &mut Hits,
        written: &mut Written,
        out: &mut Actions,
    ) {
        let (id, hit) = self.access(key, Access::Write, out);
        let Some(id) = id else { panic!("a policy refused to buffer a write") };
        hits.count(hit, cover);
        self.entries.store(id, cover, tenant, written, out);
    }

    #[inline]
    fn write(&mut self, r: &Req, out: &mut Actions) {
        let (mut hits, mut written) = (Hits::default(), Written::default());
        match Covers::new(r, self.entries.shape()) {
            Covers::Whole(cover) => {
                for key in r.keys() {
                    self.write_page(key, cover, r.tenant, &mut hits, &mut written, out);
                }
            }
            Covers::Cut => {
                for (at, key) in (0..).zip(r.keys()) {
                    let cover = cover_of(r, at, self.entries.shape());
                    self.write_page(key, cover, r.tenant, &mut hits, &mut written, out);
                }
            }
        }
        let tenant = self.entries.end_request(r.tenant);
        tenant.count_written(written);
        tenant.writes.add(u64::from(r.count()), hits.pages, hits.sectors * 512);
        if r.fua {
            tenant.fua_writes += 1;
            if self.entries.shape().volatile() {
                self.entries.program_request(r, out);
                self.tell_cleaned();
            }
        }
    }

    /// Entries that the TRIM only cuts stay as they are: it is a hint, and their other sectors live.
    fn trim(&mut self, r: &Req, out: &mut Actions) {
        let mut pages = 0;
        if let Some(inner) = r.whole_only() {
            pages = u64::from(inner.count());
            let found = self.entries.take_found(&inner);
            for id in &found {
                self.replacement.forget(&mut self.entries, *id);
                self.entries.discard(*id, out);
            }
            self.entries.give_back_found(found);
        }
        let tenant = self.entries.stats_mut().tenant_mut(r.tenant);
        tenant.trim_requests += 1;
        tenant.trim_pages += pages;
    }

    fn flush(&mut self, out: &mut Actions) {
        self.replacement.flush(&mut self.entries, out);
        self.tell_cleaned();
    }

    fn tell_cleaned(&mut self) {
        let cleaned = self.entries.take_cleaned();
        for id in &cleaned {
            self.replacement.cleaned(&mut self.entries, *id);
        }
        self.entries.give_back_cleaned(cleaned);
    }
}

impl<R: Replacement> Policy for Cache<R> {
    fn request(&mut self, r: &Req, ftl: &dyn FtlView, out: &mut Actions) {
        out.clear();
        self.replacement.begin(r, ftl, &self.entries, out);
        match r.op {
            Op::Read => self.read(r, out),
            Op::Write | Op::WriteZeroes => self.write(r, out),
            Op::Trim => self.trim(r, out),
            Op::Flush => {
                self.entries.stats_mut().tenant_mut(r.tenant).flushes += 1;
                if self.entries.shape().volatile() {
                    self.flush(out);
                }
            }
        }
        self.entries.stats_mut().lookups += u64::from(out.counts().lookups);
    }

    fn touch(&self, lpn: Lpn) -> u32 {
        self.entries.touch(lpn.raw())
    }

    fn drain(&mut self, out: &mut Actions) {
        out.clear();
        self.flush(out);
    }

    fn stats(&self) -> &Stats {
        self.entries.stats()
    }

    fn part_bytes(&self) -> u32 {
        self.entries.shape().part_sectors() * 512
    }

    fn slots(&self) -> u32 {
        self.entries.shape().slots()
    }

    fn check(&self) -> Result<(), Violation> {
        self.entries.check()?;
        self.replacement.check(&self.entries)
    }
}
