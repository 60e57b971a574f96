//! LRU against a naive model: every action and every counter.

#[path = "common/streams.rs"]
mod streams;
#[path = "common/unmapped.rs"]
mod unmapped;

use std::collections::BTreeSet;
use std::ops::Range;

use onefold_buffer::{
    Action, Actions, BufferConfig, PartMask, PolicyKind, Req, TenantStats, new_policy,
};
use onefold_units::Op;
use proptest::prelude::*;
use streams::{Case, case};
use unmapped::Unmapped;

/// An action without slots.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Hit(u32),
    Fill(u32, u16),
    Store(u32),
    Drop(u32),
    Program(Vec<u32>),
    Pad(u32, u16),
}

struct Entry {
    lpn: u32,
    tenant: usize,
    valid: BTreeSet<u32>,
    dirty: bool,
}

/// LRU as a plain vector, oldest first; parts as sets of numbers.
struct Model {
    entries: Vec<Entry>,
    slots: usize,
    k: usize,
    volatile: bool,
    sectors: u32,
    parts: u32,
    steps: Vec<Step>,
    stats: Vec<TenantStats>,
}

impl Model {
    fn new(case: &Case) -> Self {
        let sectors = u32::from(case.sectors);
        Self {
            entries: Vec::new(),
            slots: usize::try_from(case.slots).unwrap(),
            k: usize::try_from(case.k).unwrap(),
            volatile: case.volatile,
            sectors,
            parts: sectors.min(16),
            steps: Vec::new(),
            stats: vec![TenantStats::default(); 3],
        }
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

    fn missing(&self, at: usize) -> u16 {
        let valid = &self.entries[at].valid;
        (0..self.parts).filter(|part| !valid.contains(part)).map(|part| 1 << part).sum()
    }

    fn complete(&mut self, at: usize) {
        self.entries[at].valid = (0..self.parts).collect();
    }

    fn program(&mut self, batch: &[usize]) {
        for at in batch {
            let (lpn, missing, tenant) =
                (self.entries[*at].lpn, self.missing(*at), self.entries[*at].tenant);
            if missing != 0 {
                self.steps.push(Step::Pad(lpn, missing));
                self.stats[tenant].pad_reads += 1;
                self.complete(*at);
            }
            self.entries[*at].dirty = false;
            self.stats[tenant].pages_programmed += 1;
            self.stats[tenant].dirty -= 1;
        }
        let first = &mut self.stats[self.entries[batch[0]].tenant];
        first.programs += 1;
        first.short_programs += u64::from(batch.len() < self.k);
        self.steps.push(Step::Program(batch.iter().map(|at| self.entries[*at].lpn).collect()));
    }

    fn make_room(&mut self) {
        if self.entries.len() < self.slots {
            return;
        }
        if !self.entries[0].dirty {
            self.steps.push(Step::Drop(self.entries[0].lpn));
            self.entries.remove(0);
            return;
        }
        let dirty = (0..self.entries.len().min(64)).filter(|at| self.entries[*at].dirty);
        let batch: Vec<usize> = dirty.take(self.k).collect();
        self.program(&batch);
        for at in batch.into_iter().rev() {
            self.entries.remove(at);
        }
    }

    /// Moves or inserts the page at the recent end. Returns whether it was there.
    fn touch(&mut self, lpn: u32) -> bool {
        let found = self.entries.iter().position(|entry| entry.lpn == lpn);
        let entry = if let Some(at) = found {
            self.entries.remove(at)
        } else {
            self.make_room();
            Entry { lpn, tenant: 0, valid: BTreeSet::new(), dirty: false }
        };
        self.entries.push(entry);
        found.is_some()
    }

    fn read(&mut self, r: &Req, lpn: u32) -> bool {
        self.touch(lpn);
        let at = self.entries.len() - 1;
        let mut needed = self.covered(r, lpn).map(|sector| self.part_of(sector));
        if needed.all(|part| self.entries[at].valid.contains(&part)) {
            self.steps.push(Step::Hit(lpn));
            return true;
        }
        self.steps.push(Step::Fill(lpn, self.missing(at)));
        self.stats[usize::from(r.tenant)].flash_reads += 1;
        self.complete(at);
        false
    }

    fn write(&mut self, r: &Req, lpn: u32) -> bool {
        let tenant = usize::from(r.tenant);
        let hit = self.touch(lpn);
        let at = self.entries.len() - 1;
        let covered = self.covered(r, lpn);
        let parts: BTreeSet<u32> = covered.clone().map(|sector| self.part_of(sector)).collect();
        let torn =
            |part: u32| (0..self.sectors).any(|s| self.part_of(s) == part && !covered.contains(&s));
        if parts.iter().any(|part| torn(*part) && !self.entries[at].valid.contains(part)) {
            self.steps.push(Step::Pad(lpn, self.missing(at)));
            self.stats[tenant].pad_reads += 1;
            self.complete(at);
        }
        let entry = &mut self.entries[at];
        if entry.dirty {
            self.stats[entry.tenant].overwritten += 1;
            self.stats[entry.tenant].dirty -= 1;
        }
        entry.valid.extend(parts);
        (entry.dirty, entry.tenant) = (true, tenant);
        self.stats[tenant].dirty += 1;
        self.steps.push(Step::Store(lpn));
        hit
    }

    fn program_all(&mut self, which: impl Fn(&Entry) -> bool, by_lpn: bool) {
        let all = 0..self.entries.len();
        let mut dirty: Vec<usize> =
            all.filter(|at| self.entries[*at].dirty && which(&self.entries[*at])).collect();
        if by_lpn {
            dirty.sort_by_key(|at| self.entries[*at].lpn);
        }
        for batch in dirty.chunks(self.k) {
            self.program(batch);
        }
    }

    fn trim(&mut self, r: &Req) {
        let pages = r.lpn.raw()..r.lpn.raw() + r.n;
        let whole: Vec<u32> =
            pages.filter(|lpn| self.covered(r, *lpn) == (0..self.sectors)).collect();
        let tenant = &mut self.stats[usize::from(r.tenant)];
        tenant.trim_requests += 1;
        tenant.trim_pages += u64::try_from(whole.len()).unwrap();
        for lpn in whole {
            if let Some(at) = self.entries.iter().position(|entry| entry.lpn == lpn) {
                let entry = self.entries.remove(at);
                self.steps.push(Step::Drop(lpn));
                self.stats[entry.tenant].trim_discards += u64::from(entry.dirty);
                self.stats[entry.tenant].dirty -= u64::from(entry.dirty);
            }
        }
    }

    fn accesses(&mut self, r: &Req) {
        let (mut hits, mut bytes_hit) = (0, 0);
        let read = r.op == Op::Read;
        for lpn in r.lpn.raw()..r.lpn.raw() + r.n {
            if if read { self.read(r, lpn) } else { self.write(r, lpn) } {
                hits += 1;
                bytes_hit += 512 * u64::try_from(self.covered(r, lpn).len()).unwrap();
            }
        }
        let tenant = &mut self.stats[usize::from(r.tenant)];
        let counts = if read { &mut tenant.reads } else { &mut tenant.writes };
        counts.requests += 1;
        counts.pages += u64::from(r.n);
        counts.hits += hits;
        counts.bytes_hit += bytes_hit;
        counts.full_hits += u64::from(hits == u64::from(r.n));
    }

    fn request(&mut self, r: &Req) {
        self.steps.clear();
        match r.op {
            Op::Read => self.accesses(r),
            Op::Write | Op::WriteZeroes => {
                self.accesses(r);
                if r.fua {
                    self.stats[usize::from(r.tenant)].fua_writes += 1;
                    let range = r.lpn.raw()..r.lpn.raw() + r.n;
                    let mine = |entry: &Entry| range.contains(&entry.lpn);
                    if self.volatile {
                        self.program_all(mine, true);
                    }
                }
            }
            Op::Trim => self.trim(r),
            Op::Flush => {
                self.stats[usize::from(r.tenant)].flushes += 1;
                if self.volatile {
                    self.program_all(|_| true, false);
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
        Action::Program { batch, .. } => {
            Step::Program(out.batch(batch).iter().map(|entry| entry.lpn.raw()).collect())
        }
        Action::PadRead { lpn, missing, .. } => Step::Pad(lpn.raw(), bits(missing)),
        Action::Bypass { lpn } => panic!("LRU admits everything, but bypassed {lpn:?}"),
    };
    out.as_slice().iter().map(step).collect()
}

fn agrees(case: &Case) {
    let entry = u32::from(case.sectors) * 512;
    let bytes = u64::from(case.slots) * u64::from(entry);
    let config = BufferConfig { policy: PolicyKind::Lru, bytes, volatile: case.volatile };
    let mut policy = new_policy(&config, entry, case.k * entry).unwrap();
    let mut model = Model::new(case);
    let mut out = Actions::new();
    for r in &case.requests {
        policy.request(r, &Unmapped, &mut out);
        policy.check().unwrap();
        model.request(r);
        assert_eq!(without_slots(&out), model.steps, "{r:?}");
    }
    for (tenant, expected) in (0..).zip(&model.stats) {
        assert_eq!(policy.stats().tenant(tenant), *expected, "tenant {tenant}");
    }
    model.steps.clear();
    model.program_all(|_| true, false);
    policy.drain(&mut out);
    assert_eq!(without_slots(&out), model.steps, "drain");
    assert_eq!(policy.stats().total().dirty, 0);
    policy.check().unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lru_equals_the_naive_model(case in case()) {
        agrees(&case);
    }
}
