//! The part that all policies over single entries share: what a request does page by page.

use onefold_units::{Keep, Keeper, Lpn, Op};

use crate::cover::{Cover, cover_of};
use crate::index::GROUP_KEYS;
use crate::sizing::setup_of;
use crate::stats::Written;
use crate::{
    Access, Accesses, Action, Actions, BufferConfig, BufferError, Entries, FtlView, Learnt, Pages,
    Policy, Replacement, Req, Sizes, Stats, Violation,
};

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
    /// An empty buffer: as many entries as fit with the tables of the policy into the configured
    /// size. The parameters are those of the configured policy, `R` or not.
    pub fn new(config: &BufferConfig, sizes: &Sizes) -> Result<Self, BufferError> {
        let setup = setup_of::<R>(config, sizes)?;
        let entries = Entries::new(setup.shape, R::ghosts(&setup), R::AREAS);
        Ok(Self { entries, replacement: R::new(&setup) })
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
            let mut rest = Pages { first, len: count, access, tenant: r.tenant };
            while rest.len > 0 {
                let fresh = self.replacement.admit_fresh(&mut self.entries, rest, out);
                if access == Access::Write {
                    written.dirtied += u64::from(fresh);
                }
                rest = rest.after(fresh);
                if fresh == 0 {
                    let group = rest.up_to(GROUP_KEYS - rest.first % GROUP_KEYS);
                    hits += self.group(group, whole, &mut written, out);
                    rest = rest.after(group.len);
                }
            }
        }
        let (pages, bytes) = (u64::from(count), u64::from(self.entries.shape().entry_bytes()));
        Done { pages, hits, bytes: pages * bytes, bytes_hit: hits * bytes, written }
    }

    /// Handles pages of one group of the index one after the other. Returns the hits.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the body of a loop")]
    fn group(
        &mut self,
        pages: Pages,
        whole: Cover,
        written: &mut Written,
        out: &mut Actions,
    ) -> u64 {
        let mut hits = 0;
        for at in 0..pages.len {
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
                let list = e.slab().node(id).list;
                self.replacement.hit(e, id, access, out);
                (id, Some(list))
            }
            ghost => {
                let Some(id) = self.replacement.admit(e, key, ghost, access, out) else {
                    assert!(access == Access::Read, "a policy refused to buffer a write");
                    out.push(Action::Bypass { lpn: Lpn::new(key) });
                    return false;
                };
                (id, None)
            }
        };
        let complete = match access {
            Access::Read => e.load(id, cover, out),
            Access::Write => {
                e.store(id, cover, tenant, written, out);
                true
            }
        };
        let hit = hit.filter(|_| complete);
        if let Some(list) = hit {
            e.stats_mut().count_hit(tenant, list, access);
        }
        hit.is_some()
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

    fn learnt(&self) -> Option<Learnt<'_>> {
        self.replacement.learnt()
    }

    fn learn(&mut self, learnt: Learnt<'_>) -> bool {
        self.replacement.learn(learnt)
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

    fn keep(&mut self, keeper: &mut Keeper<'_>) {
        self.entries.keep(keeper);
        self.replacement.keep(keeper);
    }
}
