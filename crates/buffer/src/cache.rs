//! The part that all policies over single entries share: what a request does page by page.

use onefold_units::{Lpn, Op};

use crate::cover::{Cover, cover_of};
use crate::index::GROUP_KEYS;
use crate::stats::Written;
use crate::{
    Accesses, Action, Actions, Area, BufferError, Entries, FtlView, ListId, NodeId, Pages, Policy,
    Req, Setup, Stats, Tables, Violation,
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
pub trait Replacement: Clone + Send + 'static {
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

    /// Slots behind those of the entries that the policy uses within an eviction.
    #[must_use]
    fn scratch(&self) -> u32 {
        0
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

    /// Does for several pages of a request, from the first on, what [`Replacement::admit`] and the
    /// transfer of their bytes do for one after the other, if none of them is buffered or remembered
    /// ([`Entries::fresh`]). Returns how many; the others are handled one by one. A policy that has
    /// no faster way than that admits none.
    #[inline]
    fn admit_fresh(&mut self, _: &mut Entries, _: Pages, _: &mut Actions) -> u32 {
        0
    }

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

/// What became of the pages of a request.
#[derive(Clone, Copy, Default)]
struct Done {
    pages: u64,
    hits: u64,
    bytes: u64,
    /// Bytes of the request in pages that hit.
    bytes_hit: u64,
    written: Written,
}

impl Done {
    #[inline]
    const fn count(&self, accesses: &mut Accesses) {
        accesses.add(self.pages, self.hits, self.bytes_hit);
        accesses.bytes += self.bytes;
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

    /// Handles the pages of a read or write that touches whole entries. Compiled for each of both and
    /// for each policy, so that no decision is called for, or asked twice, for every page.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "two callers, and each knows what it accesses")]
    fn pages(&mut self, r: &Req, access: Access, out: &mut Actions) -> Done {
        let (mut hits, mut written) = (0, Written::default());
        let whole = Cover::whole(self.entries.shape());
        let (first, count) = (r.lpn.raw(), r.count());
        if count == 1 {
            hits = u64::from(self.page(first, access, whole, r.tenant, &mut written, out));
        } else {
            let mut at = 0;
            while at < count {
                let len = (count - at).min(GROUP_KEYS - (first + at) % GROUP_KEYS);
                let pages = Pages { first: first + at, len, access, tenant: r.tenant };
                hits += self.group(pages, whole, &mut written, out);
                at += len;
            }
        }
        let (pages, bytes) = (u64::from(count), u64::from(self.entries.shape().entry_bytes()));
        Done { pages, hits, bytes: pages * bytes, bytes_hit: hits * bytes, written }
    }

    /// Handles pages of one group of the index: first those that are fresh, if the policy can, then
    /// one after the other. Returns the hits.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the body of a loop")]
    fn group(
        &mut self,
        pages: Pages,
        whole: Cover,
        written: &mut Written,
        out: &mut Actions,
    ) -> u64 {
        let fresh = self.replacement.admit_fresh(&mut self.entries, pages, out);
        if pages.access == Access::Write {
            written.dirtied += u64::from(fresh);
        }
        let mut hits = 0;
        for at in fresh..pages.len {
            let hit = self.page(pages.first + at, pages.access, whole, pages.tenant, written, out);
            hits += u64::from(hit);
        }
        hits
    }

    /// The same for a request that touches its first or last page only in part.
    #[cold]
    fn cut_pages(&mut self, r: &Req, access: Access, out: &mut Actions) -> Done {
        let mut done = Done { pages: u64::from(r.count()), ..Done::default() };
        for at in 0..r.count() {
            let cover = cover_of(r, at, self.entries.shape());
            let bytes = u64::from(cover.sectors) * 512;
            let key = r.lpn.raw() + at;
            let hit = self.page(key, access, cover, r.tenant, &mut done.written, out);
            done.hits += u64::from(hit);
            done.bytes += bytes;
            done.bytes_hit += if hit { bytes } else { 0 };
        }
        done
    }

    /// Handles one page. Returns whether it hits.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the body of a loop")]
    fn page(
        &mut self,
        key: u32,
        access: Access,
        cover: Cover,
        tenant: u8,
        written: &mut Written,
        out: &mut Actions,
    ) -> bool {
        let e = &mut self.entries;
        let found = e.find_any(key);
        let (id, hit) = match found {
            Some(id) if !e.slab().is_ghost(id) => {
                self.replacement.hit(e, id, access, out);
                (id, true)
            }
            ghost => {
                let Some(id) = self.replacement.admit(e, key, ghost, access, out) else {
                    assert!(access == Access::Read, "a policy refused to buffer a write");
                    out.push(Action::Bypass { lpn: Lpn::new(key) });
                    return false;
                };
                (id, false)
            }
        };
        match access {
            Access::Read => e.load(id, cover, out),
            Access::Write => {
                e.store(id, cover, tenant, written, out);
                hit
            }
        }
    }

    #[inline]
    fn read(&mut self, r: &Req, out: &mut Actions) {
        // Counted apart: where both meet, the numbers would go through memory.
        if r.is_cut() {
            let done = self.cut_pages(r, Access::Read, out);
            self.count_read(r, done);
        } else {
            let done = self.pages(r, Access::Read, out);
            self.count_read(r, done);
        }
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "see its callers")]
    fn count_read(&mut self, r: &Req, done: Done) {
        let tenant = self.entries.end_request(r.tenant);
        tenant.flash_reads += done.pages - done.hits;
        done.count(&mut tenant.reads);
    }

    #[inline]
    fn write(&mut self, r: &Req, out: &mut Actions) {
        if r.is_cut() {
            let done = self.cut_pages(r, Access::Write, out);
            self.count_write(r, done);
        } else {
            let done = self.pages(r, Access::Write, out);
            self.count_write(r, done);
        }
        if r.fua {
            self.end_forced(r, out);
        }
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "see its callers")]
    fn count_write(&mut self, r: &Req, done: Done) {
        let tenant = self.entries.end_request(r.tenant);
        tenant.count_written(done.written);
        done.count(&mut tenant.writes);
    }

    /// A FUA write is in flash when it completes.
    #[cold]
    fn end_forced(&mut self, r: &Req, out: &mut Actions) {
        self.entries.stats_mut().tenant_mut(r.tenant).fua_writes += 1;
        if self.entries.shape().volatile() {
            self.entries.program_request(r, out);
            self.tell_cleaned();
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

    fn boxed_clone(&self) -> Box<dyn Policy + Send> {
        Box::new(self.clone())
    }

    fn stats(&self) -> &Stats {
        self.entries.stats()
    }

    fn part_bytes(&self) -> u32 {
        self.entries.shape().part_sectors() * 512
    }

    fn slots(&self) -> u32 {
        self.entries.shape().slots() + self.replacement.scratch()
    }

    fn check(&self) -> Result<(), Violation> {
        self.entries.check()?;
        self.replacement.check(&self.entries)
    }
}
