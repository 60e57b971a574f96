//! Append-only isolation with plain sets and vectors, from buffer specification section 2.

use std::collections::{BTreeMap, BTreeSet};

use onefold_buffer::{FtlView, PolicySpec, Req, Stream};
use onefold_units::{Lpn, Op};

use crate::common::model::{Order, Pages};
use crate::common::streams::Case;
use crate::policies::nested::Nested;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Dest {
    Baw,
    Bar,
    Sorb,
}

/// What a request does in one of its chunks.
#[derive(Clone, Copy)]
struct Part {
    chunk: u32,
    dest: Dest,
}

/// Lists are oldest page first.
pub(super) struct Aoi<S> {
    reaccess: &'static str,
    trim_reset: &'static str,
    restart: bool,
    chunk: u32,
    threshold: u64,
    entry: u64,
    device: u64,
    most: usize,
    l: BTreeSet<u32>,
    w: BTreeSet<u32>,
    cursors: BTreeMap<u32, u32>,
    /// Next page of the sequential rewrite in progress, by chunk.
    rewrites: BTreeMap<u32, u32>,
    parts: BTreeMap<u32, Part>,
    baw: Vec<u32>,
    bar: Vec<u32>,
    sorb: S,
    deadline: usize,
}

/// Takes the pages that left out of a list.
fn leave(list: &mut Vec<u32>, gone: &[u32]) {
    list.retain(|page| !gone.contains(page));
}

impl<S: Nested> Aoi<S> {
    fn is_large(&self, r: &Req) -> bool {
        u64::from(r.n) * self.entry >= self.threshold
    }

    /// Chunk, first page and the page after the last one of each part of a request.
    fn split(&self, r: &Req) -> Vec<(u32, u32, u32)> {
        let mut parts: Vec<(u32, u32, u32)> = Vec::new();
        for page in r.lpn.raw()..r.lpn.raw() + r.n {
            match parts.last_mut() {
                Some(part) if part.0 == page / self.chunk => part.2 = page + 1,
                _ => parts.push((page / self.chunk, page, page + 1)),
            }
        }
        parts
    }

    fn continues(cursor: u32, k0: u32, k1: u32) -> bool {
        k0 <= cursor && 2 * (cursor - k0) <= k1 - k0
    }

    /// The extension: large writes from the first page of a chunk on, without a gap.
    fn restarts(&mut self, c: u32, k0: u32, k1: u32, large: bool) -> bool {
        let next = self.rewrites.get(&(c % 4096)).copied().unwrap_or(0);
        let runs = large && (k0 == c * self.chunk || Self::continues(next, k0, k1));
        self.rewrites.insert(c % 4096, if runs { k1 } else { 0 });
        if runs && k1 == (c + 1) * self.chunk {
            self.l.insert(c);
            self.w.remove(&c);
        }
        runs
    }

    fn is_update(&self, c: u32, k0: u32, k1: u32, ftl: &dyn FtlView) -> bool {
        let l = self.l.contains(&c);
        let cursor = self.cursors.get(&(c % 4096)).copied().unwrap_or(0);
        match self.reaccess {
            "literal" => l,
            "cursor" => l && !Self::continues(cursor, k0, k1),
            _ => 2 * (k0..k1).filter(|page| ftl.mapped(Lpn::new(*page))).count() > (k0..k1).len(),
        }
    }

    fn write_part(&mut self, r: &Req, (c, k0, k1): (u32, u32, u32), ftl: &dyn FtlView) -> Dest {
        let large = self.is_large(r);
        let restarts = self.restart && self.restarts(c, k0, k1, large);
        let (l, w) = (self.l.contains(&c), self.w.contains(&c));
        let update = !restarts && self.is_update(c, k0, k1, ftl);
        self.cursors.insert(c % 4096, k1);
        if k1 == (c + 1) * self.chunk && k1 < r.lpn.raw() + r.n {
            self.cursors.insert((c + 1) % 4096, k1);
        }
        if large && !update && !w {
            self.l.insert(c);
            return Dest::Baw;
        }
        if update && l {
            self.w.insert(c);
        }
        Dest::Sorb
    }

    /// Entries that a TRIM only cuts stay, so it does not touch the chunk because of them.
    fn trim(&mut self, r: &Req) {
        let (head, tail) = (u64::from(r.head != 0), u64::from(r.tail != 0));
        let first = u64::from(r.lpn.raw()) + head;
        let end = u64::from(r.lpn.raw()) + u64::from(r.n) - tail;
        if !self.is_large(r) || self.trim_reset == "off" || first >= end {
            return;
        }
        let (size, device, full) = (u64::from(self.chunk), self.device, self.trim_reset == "full");
        let keeps = |c: &u32| {
            let (from, to) = (u64::from(*c) * size, ((u64::from(*c) + 1) * size).min(device));
            if full { first > from || to > end } else { end <= from || to <= first }
        };
        self.l.retain(keeps);
        self.w.retain(keeps);
    }

    fn count(&self, dest: Dest) -> usize {
        match dest {
            Dest::Baw => self.baw.len(),
            Dest::Bar => self.bar.len(),
            Dest::Sorb => self.sorb.all().len(),
        }
    }

    fn evict(&mut self, dest: Dest, pages: &mut Pages) {
        match dest {
            Dest::Baw => {
                let group: Vec<u32> = self.baw.iter().copied().take(pages.k).collect();
                pages.evict_group(&group, Stream::AppendOnly);
                leave(&mut self.baw, &group);
            }
            Dest::Bar => {
                let gone = pages.evict(&self.bar, Stream::Other);
                leave(&mut self.bar, &gone);
            }
            Dest::Sorb => self.sorb.evict(pages),
        }
    }

    fn evict_all(&mut self, dest: Dest, pages: &mut Pages) {
        while self.count(dest) > 0 {
            self.evict(dest, pages);
        }
    }

    fn free(&self, pages: &Pages) -> usize {
        pages.slots - self.count(Dest::Sorb) - self.baw.len() - self.bar.len()
    }

    fn room(&mut self, d: Dest, pages: &mut Pages) {
        let k = pages.k;
        if d != Dest::Sorb && self.free(pages) >= self.most - self.count(d) {
            while self.count(d) >= self.most {
                self.evict(d, pages);
            }
            if d == Dest::Baw {
                self.deadline = 0;
            }
            return;
        }
        if self.free(pages) < 1 && d != Dest::Baw && !self.baw.is_empty() && self.baw.len() < k {
            self.deadline += 1;
        }
        while self.free(pages) < 1 {
            if d != Dest::Bar && !self.bar.is_empty() {
                self.evict_all(Dest::Bar, pages);
            } else if d != Dest::Baw && self.baw.len() >= k {
                self.deadline = 0;
                self.evict(Dest::Baw, pages);
            } else if d != Dest::Baw && !self.baw.is_empty() && self.deadline >= pages.slots {
                self.deadline = 0;
                self.evict_all(Dest::Baw, pages);
            } else if self.count(Dest::Sorb) > 0 {
                self.evict(Dest::Sorb, pages);
            } else if self.count(d) > 0 {
                self.evict(d, pages);
            } else {
                self.deadline = 0;
                self.evict_all(Dest::Baw, pages);
            }
        }
    }
}

impl<S: Nested> Order for Aoi<S> {
    fn new(case: &Case, spec: &PolicySpec) -> Self {
        let entry = u64::from(case.sectors) * 512;
        let dies = spec.value("channels").count() * spec.value("ways").count();
        Self {
            reaccess: spec.value("reaccess").word(),
            trim_reset: spec.value("trim_reset").word(),
            restart: spec.value("restart").word() == "on",
            chunk: u32::try_from(spec.value("chunk").bytes() / entry).unwrap(),
            threshold: spec.value("threshold").bytes(),
            entry,
            device: (1 << 32) / entry,
            most: usize::try_from(dies * case.k).unwrap(),
            l: BTreeSet::new(),
            w: BTreeSet::new(),
            cursors: BTreeMap::new(),
            rewrites: BTreeMap::new(),
            parts: BTreeMap::new(),
            baw: Vec::new(),
            bar: Vec::new(),
            sorb: S::new(case, spec),
            deadline: 0,
        }
    }

    fn begin(&mut self, r: &Req, ftl: &dyn FtlView, _: &Pages) {
        self.parts.clear();
        if r.op == Op::Trim {
            self.trim(r);
        }
        if matches!(r.op, Op::Trim | Op::Flush) {
            return;
        }
        for (chunk, k0, k1) in self.split(r) {
            let dest = if r.op != Op::Read {
                self.write_part(r, (chunk, k0, k1), ftl)
            } else if self.l.contains(&chunk) && !self.w.contains(&chunk) {
                Dest::Bar
            } else {
                Dest::Sorb
            };
            self.parts.extend((k0..k1).map(|page| (page, Part { chunk, dest })));
        }
    }

    fn hit(&mut self, lpn: u32, write: bool, pages: &mut Pages) {
        let Part { chunk, dest } = self.parts[&lpn];
        let literal = self.reaccess == "literal";
        let refresh = !write || (dest == Dest::Baw && !literal);
        if !refresh && (literal || self.l.contains(&chunk)) {
            self.w.insert(chunk);
        }
        let lists = [&mut self.baw, &mut self.bar];
        let Some(own) = lists.into_iter().find(|list| list.contains(&lpn)) else {
            return self.sorb.hit(lpn, write, pages);
        };
        leave(own, &[lpn]);
        if refresh {
            own.push(lpn);
        } else {
            self.sorb.join(lpn);
        }
    }

    fn admit(&mut self, lpn: u32, write: bool, pages: &mut Pages) -> bool {
        let dest = self.parts[&lpn].dest;
        let known = self.sorb.take_ghost(lpn);
        self.room(dest, pages);
        match dest {
            Dest::Baw => self.baw.push(lpn),
            Dest::Bar => self.bar.push(lpn),
            Dest::Sorb => self.sorb.insert(lpn, known, write, pages),
        }
        true
    }

    fn forget(&mut self, lpn: u32) {
        leave(&mut self.baw, &[lpn]);
        leave(&mut self.bar, &[lpn]);
        self.sorb.forget(lpn);
    }

    fn cleaned(&mut self, lpn: u32, pages: &Pages) {
        self.sorb.cleaned(lpn, pages);
    }

    fn flush_order(&self) -> Vec<(Stream, Vec<u32>)> {
        let mut lists = vec![(Stream::AppendOnly, self.baw.clone())];
        lists.extend(self.sorb.flush_order());
        lists.push((Stream::Other, self.bar.clone()));
        lists
    }

    fn stream(&self, lpn: u32) -> Stream {
        if self.baw.contains(&lpn) { Stream::AppendOnly } else { Stream::Other }
    }
}
