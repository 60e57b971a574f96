//! A buffer as plainly as possible: pages in a map, lists as vectors, everything by walking.
//!
//! [`Model`] knows what all policies have in common (dirty parts, programs, statistics); the
//! [`Order`] of one policy decides who stays. Both are written from the buffer specification and
//! share nothing with the code under test.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use onefold_buffer::{Action, Actions, FtlView, PartMask, PolicySpec, Req, Stream, TenantStats};
use onefold_units::{Lpn, Op};

use crate::common::build::try_build;
use crate::common::replay::Written;
use crate::common::streams::Case;

/// An action without slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A read is served.
    Hit(u32),
    /// A read loads parts.
    Fill(u32, u16),
    /// A write is taken.
    Store(u32),
    /// A clean or trimmed page leaves.
    Drop(u32),
    /// A flash page is programmed; of each page, the parts that were written.
    Program(Stream, Vec<(u32, u16)>),
    /// A read passes by.
    Bypass(u32),
    /// Parts are loaded to complete a page.
    Pad(u32, u16),
}

/// What one policy decides.
pub(crate) trait Order {
    /// An empty buffer. `spec` has the parameters.
    fn new(case: &Case, spec: &PolicySpec) -> Self;
    /// A request begins.
    fn begin(&mut self, _: &Req, _: &dyn FtlView, _: &Pages) {}
    /// A buffered page is accessed; `write` says how.
    fn hit(&mut self, lpn: u32, write: bool, pages: &mut Pages);
    /// Another page is accessed: makes room with the `evict` methods of `pages` (which remove what
    /// they evict from `pages`, not from the lists of the order) and takes it into its lists.
    /// `false`: the read passes by.
    fn admit(&mut self, lpn: u32, write: bool, pages: &mut Pages) -> bool;
    /// The page was trimmed (buffered or not): forgets it.
    fn forget(&mut self, lpn: u32);
    /// The page was programmed and stays.
    fn cleaned(&mut self, _: u32, _: &Pages) {}
    /// All buffered pages in the order of a FLUSH, list by list with the stream of each.
    fn flush_order(&self) -> Vec<(Stream, Vec<u32>)>;
    /// Stream of a buffered page.
    fn stream(&self, _: u32) -> Stream {
        Stream::Other
    }
}

struct Page {
    tenant: usize,
    valid: BTreeSet<u32>,
    dirty: BTreeSet<u32>,
}

/// The buffered pages of a [`Model`].
pub(crate) struct Pages {
    entries: BTreeMap<u32, Page>,
    /// Pages the buffer holds: C.
    pub(crate) slots: usize,
    /// Pages in a flash page.
    pub(crate) k: usize,
    sectors: u32,
    parts: u32,
    steps: Vec<Step>,
    stats: Vec<TenantStats>,
}

impl Pages {
    fn new(case: &Case) -> Self {
        let sectors = u32::from(case.sectors);
        Self {
            entries: BTreeMap::new(),
            slots: usize::try_from(case.slots).unwrap(),
            k: usize::try_from(case.k).unwrap(),
            sectors,
            parts: sectors.min(16),
            steps: Vec::new(),
            stats: vec![TenantStats::default(); 3],
        }
    }

    /// Pages now buffered.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no page is free.
    pub(crate) fn is_full(&self) -> bool {
        self.len() >= self.slots
    }

    /// Whether the page is buffered.
    pub(crate) fn contains(&self, lpn: u32) -> bool {
        self.entries.contains_key(&lpn)
    }

    /// Whether the page has data newer than flash.
    pub(crate) fn is_dirty(&self, lpn: u32) -> bool {
        self.entries.get(&lpn).is_some_and(|page| !page.dirty.is_empty())
    }

    /// Evicts `order[0]`; if it is dirty, with the next dirty pages of `order`, k in all, looking at
    /// 64. Returns the pages that left.
    pub(crate) fn evict(&mut self, order: &[u32], stream: Stream) -> Vec<u32> {
        let victim = order[0];
        if !self.is_dirty(victim) {
            self.drop_clean(victim);
            return vec![victim];
        }
        let seen = order.iter().copied().take(64);
        let batch: Vec<u32> = seen.filter(|lpn| self.is_dirty(*lpn)).take(self.k).collect();
        self.program_out(&batch, stream);
        batch
    }

    /// Evicts all pages of `group`: clean ones first, then the dirty ones, k in a flash page.
    pub(crate) fn evict_group(&mut self, group: &[u32], stream: Stream) {
        let (dirty, clean): (Vec<u32>, Vec<u32>) =
            group.iter().partition(|lpn| self.is_dirty(**lpn));
        for lpn in clean {
            self.drop_clean(lpn);
        }
        for batch in dirty.chunks(self.k) {
            self.program_out(batch, stream);
        }
    }

    /// Evicts all buffered pages of the block `all` by programming every page of it: those that are
    /// not buffered are loaded first.
    pub(crate) fn evict_padded(&mut self, all: &[u32]) {
        let owner = all.iter().find(|lpn| self.is_dirty(**lpn));
        let owner = self.tenant(*owner.expect("a dirty page"));
        let mut entries = Vec::new();
        for lpn in all {
            if self.is_dirty(*lpn) {
                entries.push(self.finish(*lpn));
                continue;
            }
            entries.push((*lpn, 0));
            self.stats[owner].pages_padded += 1;
            if !self.contains(*lpn) {
                self.steps.push(Step::Pad(*lpn, self.all_parts()));
                self.stats[owner].pad_reads += 1;
            }
        }
        for batch in entries.chunks(self.k) {
            self.stats[owner].programs += 1;
            self.stats[owner].short_programs += u64::from(batch.len() < self.k);
            self.steps.push(Step::Program(Stream::Other, batch.to_vec()));
        }
        self.entries.retain(|lpn, _| !all.contains(lpn));
    }

    fn drop_clean(&mut self, lpn: u32) {
        self.steps.push(Step::Drop(lpn));
        self.entries.remove(&lpn);
    }

    fn program_out(&mut self, batch: &[u32], stream: Stream) {
        self.program(batch, stream);
        for lpn in batch {
            self.entries.remove(lpn);
        }
    }

    /// Tenant that wrote the page last.
    fn tenant(&self, lpn: u32) -> usize {
        self.entries[&lpn].tenant
    }

    fn all_parts(&self) -> u16 {
        (0..self.parts).map(|part| 1 << part).sum()
    }

    fn part_of(&self, sector: u32) -> u32 {
        sector / (self.sectors / self.parts)
    }

    /// Sectors of page `lpn` that the request covers.
    fn covered(&self, r: &Req, lpn: u32) -> Range<u32> {
        let start = if lpn == r.lpn.raw() { u32::from(r.head) } else { 0 };
        let cut = if lpn == r.lpn.raw() + r.n - 1 { u32::from(r.tail) } else { 0 };
        start..self.sectors - cut
    }

    fn missing(&self, lpn: u32) -> u16 {
        let valid = &self.entries[&lpn].valid;
        (0..self.parts).filter(|part| !valid.contains(part)).map(|part| 1 << part).sum()
    }

    fn complete(&mut self, lpn: u32) {
        let all = (0..self.parts).collect();
        self.entries.get_mut(&lpn).unwrap().valid = all;
    }

    /// Makes a page complete and clean; what was dirty of it.
    fn finish(&mut self, lpn: u32) -> (u32, u16) {
        let (missing, tenant) = (self.missing(lpn), self.tenant(lpn));
        if missing != 0 {
            self.steps.push(Step::Pad(lpn, missing));
            self.stats[tenant].pad_reads += 1;
            self.complete(lpn);
        }
        let dirty = std::mem::take(&mut self.entries.get_mut(&lpn).unwrap().dirty);
        self.stats[tenant].pages_programmed += 1;
        self.stats[tenant].dirty -= 1;
        (lpn, dirty.into_iter().map(|part| 1 << part).sum())
    }

    /// Programs one flash page; its pages stay.
    fn program(&mut self, batch: &[u32], stream: Stream) {
        let entries = batch.iter().map(|lpn| self.finish(*lpn)).collect();
        let first = self.tenant(batch[0]);
        self.stats[first].programs += 1;
        self.stats[first].short_programs += u64::from(batch.len() < self.k);
        self.steps.push(Step::Program(stream, entries));
    }

    fn load(&mut self, r: &Req, lpn: u32) -> bool {
        let mut needed = self.covered(r, lpn).map(|sector| self.part_of(sector));
        let valid = &self.entries[&lpn].valid;
        if needed.all(|part| valid.contains(&part)) {
            self.steps.push(Step::Hit(lpn));
            return true;
        }
        self.steps.push(Step::Fill(lpn, self.missing(lpn)));
        self.stats[usize::from(r.tenant)].flash_reads += 1;
        self.complete(lpn);
        false
    }

    fn store(&mut self, r: &Req, lpn: u32) {
        let tenant = usize::from(r.tenant);
        let covered = self.covered(r, lpn);
        let parts: BTreeSet<u32> = covered.clone().map(|sector| self.part_of(sector)).collect();
        let torn =
            |part: u32| (0..self.sectors).any(|s| self.part_of(s) == part && !covered.contains(&s));
        let valid = &self.entries[&lpn].valid;
        if parts.iter().any(|part| torn(*part) && !valid.contains(part)) {
            self.steps.push(Step::Pad(lpn, self.missing(lpn)));
            self.stats[tenant].pad_reads += 1;
            self.complete(lpn);
        }
        let page = self.entries.get_mut(&lpn).unwrap();
        if !page.dirty.is_empty() {
            self.stats[page.tenant].overwritten += 1;
            self.stats[page.tenant].dirty -= 1;
        }
        page.valid.extend(&parts);
        page.dirty.extend(parts);
        page.tenant = tenant;
        self.stats[tenant].dirty += 1;
        self.steps.push(Step::Store(lpn));
    }
}

/// A buffer with the given order.
pub(crate) struct Model<O> {
    /// Who stays.
    pub(crate) order: O,
    /// What is there.
    pub(crate) pages: Pages,
    volatile: bool,
}

impl<O: Order> Model<O> {
    fn new(case: &Case, spec: &PolicySpec) -> Self {
        Self { order: O::new(case, spec), pages: Pages::new(case), volatile: case.volatile }
    }

    /// Whether the page was there; `None` if a read passes by.
    fn touch(&mut self, lpn: u32, write: bool) -> Option<bool> {
        if self.pages.contains(lpn) {
            self.order.hit(lpn, write, &mut self.pages);
            return Some(true);
        }
        if !self.order.admit(lpn, write, &mut self.pages) {
            return None;
        }
        let page = Page { tenant: 0, valid: BTreeSet::new(), dirty: BTreeSet::new() };
        self.pages.entries.insert(lpn, page);
        Some(false)
    }

    fn access(&mut self, r: &Req, lpn: u32) -> bool {
        if r.op == Op::Read {
            if self.touch(lpn, false).is_some() {
                return self.pages.load(r, lpn);
            }
            self.pages.steps.push(Step::Bypass(lpn));
            self.pages.stats[usize::from(r.tenant)].flash_reads += 1;
            return false;
        }
        let hit = self.touch(lpn, true).expect("writes are admitted");
        self.pages.store(r, lpn);
        hit
    }

    fn accesses(&mut self, r: &Req) {
        let (mut hits, mut bytes_hit) = (0, 0);
        let mut bytes = 0;
        for lpn in r.lpn.raw()..r.lpn.raw() + r.n {
            let covered = 512 * u64::try_from(self.pages.covered(r, lpn).len()).unwrap();
            bytes += covered;
            if self.access(r, lpn) {
                hits += 1;
                bytes_hit += covered;
            }
        }
        let tenant = &mut self.pages.stats[usize::from(r.tenant)];
        let counts = if r.op == Op::Read { &mut tenant.reads } else { &mut tenant.writes };
        counts.requests += 1;
        counts.pages += u64::from(r.n);
        counts.hits += hits;
        counts.bytes += bytes;
        counts.bytes_hit += bytes_hit;
        counts.full_hits += u64::from(hits == u64::from(r.n));
    }

    fn program_in_place(&mut self, lpns: impl Iterator<Item = u32>, stream: Stream) {
        let dirty: Vec<u32> = lpns.filter(|lpn| self.pages.is_dirty(*lpn)).collect();
        for batch in dirty.chunks(self.pages.k) {
            self.pages.program(batch, stream);
        }
        for lpn in dirty {
            self.order.cleaned(lpn, &self.pages);
        }
    }

    fn program_request(&mut self, r: &Req) {
        for stream in Stream::ALL {
            let of_stream =
                |lpn: &u32| self.pages.contains(*lpn) && self.order.stream(*lpn) == stream;
            let lpns: Vec<u32> = (r.lpn.raw()..r.lpn.raw() + r.n).filter(of_stream).collect();
            self.program_in_place(lpns.into_iter(), stream);
        }
    }

    fn program_all(&mut self) {
        for (stream, lpns) in self.order.flush_order() {
            self.program_in_place(lpns.into_iter(), stream);
        }
    }

    fn trim(&mut self, r: &Req) {
        let whole = |lpn: &u32| self.pages.covered(r, *lpn) == (0..self.pages.sectors);
        let lpns: Vec<u32> = (r.lpn.raw()..r.lpn.raw() + r.n).filter(whole).collect();
        let tenant = &mut self.pages.stats[usize::from(r.tenant)];
        tenant.trim_requests += 1;
        tenant.trim_pages += u64::try_from(lpns.len()).unwrap();
        for lpn in lpns {
            self.order.forget(lpn);
            if let Some(page) = self.pages.entries.remove(&lpn) {
                self.pages.steps.push(Step::Drop(lpn));
                let dirty = u64::from(!page.dirty.is_empty());
                self.pages.stats[page.tenant].trim_discards += dirty;
                self.pages.stats[page.tenant].dirty -= dirty;
            }
        }
    }

    fn request(&mut self, r: &Req, ftl: &dyn FtlView) {
        self.pages.steps.clear();
        self.order.begin(r, ftl, &self.pages);
        match r.op {
            Op::Read => self.accesses(r),
            Op::Write | Op::WriteZeroes => {
                self.accesses(r);
                if r.fua {
                    self.pages.stats[usize::from(r.tenant)].fua_writes += 1;
                    if self.volatile {
                        self.program_request(r);
                    }
                }
            }
            Op::Trim => self.trim(r),
            Op::Flush => {
                self.pages.stats[usize::from(r.tenant)].flushes += 1;
                if self.volatile {
                    self.program_all();
                }
            }
        }
    }
}

fn without_slots(out: &Actions) -> Vec<Step> {
    let bits = |mask: PartMask| mask.bits();
    let step = |action: &Action| match *action {
        Action::Hit { lpn, .. } => Step::Hit(lpn.raw()),
        Action::Fill { lpn, missing, .. } => Step::Fill(lpn.raw(), bits(missing)),
        Action::Store { lpn, .. } => Step::Store(lpn.raw()),
        Action::Drop { lpn, .. } => Step::Drop(lpn.raw()),
        Action::Program { stream, batch } => {
            let entries = out.batch(batch).iter();
            Step::Program(stream, entries.map(|one| (one.lpn.raw(), bits(one.dirty))).collect())
        }
        Action::PadRead { lpn, missing, .. } => Step::Pad(lpn.raw(), bits(missing)),
        Action::Bypass { lpn } => Step::Bypass(lpn.raw()),
    };
    out.as_slice().iter().map(step).collect()
}

fn counted(steps: &[Step]) -> (usize, usize) {
    let reads = |step: &&Step| matches!(step, Step::Fill(..) | Step::Bypass(_) | Step::Pad(..));
    let programs = |step: &&Step| matches!(step, Step::Program(..));
    (steps.iter().filter(reads).count(), steps.iter().filter(programs).count())
}

/// Runs the case through the policy and the model: every action and every counter has to agree.
/// Cases the policy cannot be built for are left out.
pub(crate) fn agrees<O: Order>(spec: &str, case: &Case) {
    let entry = u32::from(case.sectors) * 512;
    let Ok(mut policy) = try_build(spec, case.slots, entry, case.k, case.volatile) else { return };
    let mut model = Model::<O>::new(case, &PolicySpec::parse(spec).unwrap());
    let (mut out, mut written) = (Actions::new(), Written::default());
    for (at, r) in case.requests.iter().enumerate() {
        policy.request(r, &written, &mut out);
        policy.check().unwrap();
        model.request(r, &written);
        assert_eq!(without_slots(&out), model.pages.steps, "request {at}: {r:?}");
        let (reads, programs) = counted(&model.pages.steps);
        let counts = out.counts();
        let count = |n: u32| usize::try_from(n).unwrap();
        assert_eq!((count(counts.reads), count(counts.programs)), (reads, programs));
        written.note(r);
    }
    for (tenant, expected) in (0..).zip(&model.pages.stats) {
        assert_eq!(policy.stats().tenant(tenant), *expected, "tenant {tenant}");
    }
    model.pages.steps.clear();
    model.program_all();
    policy.drain(&mut out);
    assert_eq!(without_slots(&out), model.pages.steps, "drain");
    assert_eq!(policy.stats().total().dirty, 0);
    policy.check().unwrap();
    let everything = Req::new(Op::Trim, Lpn::new(0), u32::MAX);
    policy.request(&everything, &written, &mut out);
    policy.check().unwrap();
}
