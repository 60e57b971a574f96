//! The part that all policies over single entries share: what a request does page by page.

use onefold_units::Op;

use crate::cover::Covers;
use crate::{
    Actions, Entries, FtlView, ListId, NodeId, Policy, Req, Shape, Stats, Stream, Violation,
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
    /// The lists, each with the kind of data its programs carry. FLUSH programs them in this order.
    const LISTS: &'static [Stream];

    /// The policy with nothing buffered.
    fn new(shape: &Shape) -> Self;

    /// Keys without bytes that the policy remembers at most.
    #[must_use]
    fn ghosts(_: &Shape) -> u32 {
        0
    }

    /// Looks at a request before its pages are handled.
    fn begin(&mut self, _: &Req, _: &dyn FtlView, _: &Entries) {}

    /// A buffered page is accessed. The entry must stay buffered.
    fn hit(&mut self, e: &mut Entries, id: NodeId, access: Access, out: &mut Actions);

    /// A page that is not buffered is accessed: makes room and inserts it. `key` may be a ghost.
    fn admit(&mut self, e: &mut Entries, key: u32, access: Access, out: &mut Actions) -> NodeId;

    /// The entry, or ghost, is about to leave because of a TRIM.
    fn forget(&mut self, _: &Entries, _: NodeId) {}

    /// Checks the limits of the policy.
    fn check(&self, _: &Entries) -> Result<(), Violation> {
        Ok(())
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
    pub fn new(shape: Shape) -> Self {
        let entries = Entries::new(shape, R::ghosts(&shape), R::LISTS);
        Self { entries, replacement: R::new(&shape) }
    }

    fn read(&mut self, r: &Req, out: &mut Actions) {
        let covers = Covers::new(r, self.entries.shape());
        let (mut hits, mut sectors) = (0, 0);
        for (at, key) in (0..).zip(r.keys()) {
            let cover = covers.at(at, self.entries.shape());
            let id = match self.entries.find(key) {
                Some(id) => {
                    self.replacement.hit(&mut self.entries, id, Access::Read, out);
                    id
                }
                None => self.replacement.admit(&mut self.entries, key, Access::Read, out),
            };
            if self.entries.load(id, cover, out) {
                hits += 1;
                sectors += u64::from(cover.sectors);
            }
        }
        let pages = u64::from(r.count());
        let tenant = self.entries.stats_mut().tenant_mut(r.tenant);
        tenant.flash_reads += pages - hits;
        tenant.reads.add(pages, hits, sectors * 512);
    }

    fn write(&mut self, r: &Req, out: &mut Actions) {
        let covers = Covers::new(r, self.entries.shape());
        let (mut hits, mut sectors) = (0, 0);
        for (at, key) in (0..).zip(r.keys()) {
            let cover = covers.at(at, self.entries.shape());
            let id = match self.entries.find(key) {
                Some(id) => {
                    self.replacement.hit(&mut self.entries, id, Access::Write, out);
                    hits += 1;
                    sectors += u64::from(cover.sectors);
                    id
                }
                None => self.replacement.admit(&mut self.entries, key, Access::Write, out),
            };
            self.entries.store(id, cover, r.tenant, out);
        }
        let tenant = self.entries.stats_mut().tenant_mut(r.tenant);
        tenant.writes.add(u64::from(r.count()), hits, sectors * 512);
        if r.fua {
            tenant.fua_writes += 1;
            if self.entries.shape().volatile() {
                self.entries.program_request(r, out);
            }
        }
    }

    /// Entries that the TRIM only cuts stay as they are: it is a hint, and their other sectors live.
    fn trim(&mut self, r: &Req, out: &mut Actions) {
        let cut_head = u32::from(r.head != 0);
        let cut_tail = u32::from(r.tail != 0);
        let n = r.n.saturating_sub(cut_head + cut_tail);
        let inner = r.lpn.checked_add(cut_head).map(|lpn| Req { lpn, n, ..*r });
        let mut pages = 0;
        if let Some(inner) = inner.filter(|inner| inner.n > 0) {
            pages = u64::from(inner.count());
            let found = self.entries.take_found(&inner);
            for id in &found {
                self.replacement.forget(&self.entries, *id);
                self.entries.discard(*id, out);
            }
            self.entries.give_back_found(found);
        }
        let tenant = self.entries.stats_mut().tenant_mut(r.tenant);
        tenant.trim_requests += 1;
        tenant.trim_pages += pages;
    }

    fn flush_lists(&mut self, out: &mut Actions) {
        for list in (0..).take(R::LISTS.len()) {
            self.entries.flush(ListId(list), out);
        }
    }
}

impl<R: Replacement> Policy for Cache<R> {
    fn request(&mut self, r: &Req, ftl: &dyn FtlView, out: &mut Actions) {
        out.clear();
        self.replacement.begin(r, ftl, &self.entries);
        match r.op {
            Op::Read => self.read(r, out),
            Op::Write | Op::WriteZeroes => self.write(r, out),
            Op::Trim => self.trim(r, out),
            Op::Flush => {
                self.entries.stats_mut().tenant_mut(r.tenant).flushes += 1;
                if self.entries.shape().volatile() {
                    self.flush_lists(out);
                }
            }
        }
    }

    fn drain(&mut self, out: &mut Actions) {
        out.clear();
        self.flush_lists(out);
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
