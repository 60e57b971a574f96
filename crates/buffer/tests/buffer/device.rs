//! The actions, executed on bytes: what the host reads is what it wrote, at any time and after a
//! power cut that follows a FLUSH or a FUA write.

use crate::common::build::{every_policy, try_build};
use crate::common::replay::Written;
use crate::common::streams::{Case, PAGES, case};
use onefold_buffer::{Action, Actions, PartMask, Policy, Req, Slot};
use onefold_units::convert::index;
use onefold_units::{Lpn, Op};
use proptest::prelude::*;

/// Which write a sector holds; 0 = none.
type Sector = u32;

/// Contents of a slot nobody loaded: no read may ever see it.
const GARBAGE: Sector = Sector::MAX;

/// Pages of the device: whole blocks of the policies that program blocks, all pages of the streams.
const DEVICE_PAGES: u32 = PAGES.next_multiple_of(64);

/// A device with one word per sector.
struct Device {
    policy: Box<dyn Policy + Send>,
    out: Actions,
    sectors: usize,
    k: usize,
    flash: Vec<Vec<Sector>>,
    slots: Vec<Vec<Sector>>,
    /// Page whose bytes each slot holds.
    owner: Vec<Option<Lpn>>,
    /// Slots programmed or dropped since they were last used: another page may take them over.
    released: Vec<bool>,
    /// What the host wrote last.
    truth: Vec<Vec<Sector>>,
    writes: Sector,
    written: Written,
}

impl Device {
    fn new(case: &Case, policy: Box<dyn Policy + Send>) -> Self {
        let slots = index(policy.slots());
        let sectors = usize::from(case.sectors);
        Self {
            policy,
            out: Actions::new(),
            sectors,
            k: index(case.k),
            flash: vec![vec![0; sectors]; index(DEVICE_PAGES)],
            slots: vec![vec![GARBAGE; sectors]; slots],
            owner: vec![None; slots],
            released: vec![true; slots],
            truth: vec![vec![0; sectors]; index(DEVICE_PAGES)],
            writes: 0,
            written: Written::default(),
        }
    }

    /// Sectors of page `lpn` that the request covers.
    fn covered(&self, r: &Req, lpn: Lpn) -> std::ops::Range<usize> {
        let first = if lpn == r.lpn { usize::from(r.head) } else { 0 };
        let last = if lpn.raw() == r.lpn.raw() + r.n - 1 { usize::from(r.tail) } else { 0 };
        first..self.sectors - last
    }

    fn take(&mut self, lpn: Lpn, slot: Slot) {
        let released = std::mem::replace(&mut self.released[slot.index()], false);
        let before = self.owner[slot.index()].replace(lpn);
        if before != Some(lpn) {
            assert!(released, "{lpn:?} takes {slot:?} from {before:?}");
            self.slots[slot.index()].fill(GARBAGE);
        }
    }

    fn load(&mut self, lpn: Lpn, slot: Slot, missing: PartMask) {
        self.take(lpn, slot);
        for range in missing.ranges(self.policy.part_bytes()) {
            let range = range.start / 512..range.end / 512;
            self.slots[slot.index()][range.clone()]
                .copy_from_slice(&self.flash[lpn.index()][range]);
        }
    }

    fn verify(&self, r: &Req, lpn: Lpn, slot: Slot) {
        let range = self.covered(r, lpn);
        assert_eq!(self.owner[slot.index()], Some(lpn));
        assert_eq!(
            self.slots[slot.index()][range.clone()],
            self.truth[lpn.index()][range],
            "{r:?} of {lpn:?}"
        );
    }

    /// Executes one action; returns the page if it completes a read or a write of one.
    fn execute(&mut self, r: &Req, action: Action) -> Option<Lpn> {
        match action {
            Action::Hit { lpn, slot } => {
                self.verify(r, lpn, slot);
                Some(lpn)
            }
            Action::Fill { lpn, slot, missing } => {
                self.load(lpn, slot, missing);
                self.verify(r, lpn, slot);
                Some(lpn)
            }
            Action::Store { lpn, slot } => {
                self.take(lpn, slot);
                let range = self.covered(r, lpn);
                self.slots[slot.index()][range].fill(self.writes);
                Some(lpn)
            }
            Action::Drop { lpn, slot } => {
                assert_eq!(self.owner[slot.index()].take(), Some(lpn));
                self.released[slot.index()] = true;
                None
            }
            Action::Program { batch, .. } => {
                let entries = self.out.batch(batch).to_vec();
                assert!((1..=self.k).contains(&entries.len()));
                for entry in entries {
                    let bytes = &self.slots[entry.slot.index()];
                    assert!(!bytes.contains(&GARBAGE), "programs an incomplete entry");
                    assert_eq!(self.owner[entry.slot.index()], Some(entry.lpn));
                    self.released[entry.slot.index()] = true;
                    self.flash[entry.lpn.index()].clone_from(bytes);
                }
                None
            }
            Action::Bypass { lpn } => {
                assert_eq!(r.op, Op::Read, "writes are buffered");
                let range = self.covered(r, lpn);
                assert_eq!(self.flash[lpn.index()][range.clone()], self.truth[lpn.index()][range]);
                Some(lpn)
            }
            Action::PadRead { lpn, slot, missing } => {
                self.load(lpn, slot, missing);
                None
            }
        }
    }

    fn request(&mut self, r: &Req) {
        self.policy.request(r, &self.written, &mut self.out);
        self.written.note(r);
        self.policy.check().unwrap();
        let pages = (0..r.n).map(|at| Lpn::new(r.lpn.raw() + at));
        if matches!(r.op, Op::Write | Op::WriteZeroes) {
            self.writes += 1;
            for lpn in pages.clone() {
                let range = self.covered(r, lpn);
                self.truth[lpn.index()][range].fill(self.writes);
            }
        }
        let mut done = Vec::new();
        for action in self.out.as_slice().to_vec() {
            done.extend(self.execute(r, action));
        }
        if matches!(r.op, Op::Read | Op::Write | Op::WriteZeroes) {
            assert_eq!(done, pages.clone().collect::<Vec<Lpn>>(), "one answer per page, in order");
        }
        if r.op == Op::Trim {
            let whole = pages.filter(|lpn| self.covered(r, *lpn) == (0..self.sectors));
            for lpn in whole.collect::<Vec<Lpn>>() {
                self.flash[lpn.index()].fill(0);
                self.truth[lpn.index()].fill(0);
            }
        }
    }

    fn assert_durable(&self, pages: impl Iterator<Item = u32>, why: &str) {
        for lpn in pages {
            assert_eq!(self.flash[index(lpn)], self.truth[index(lpn)], "{why}: page {lpn}");
        }
    }

    fn drain(&mut self) {
        self.policy.drain(&mut self.out);
        let r = Req::new(Op::Flush, Lpn::new(0), 0);
        for action in self.out.as_slice().to_vec() {
            self.execute(&r, action);
        }
        self.assert_durable(0..DEVICE_PAGES, "drain");
    }
}

/// Runs the case on a device with the policy, unless that cannot be built so small.
fn reads_back(spec: &str, case: &Case) {
    let entry = u32::from(case.sectors) * 512;
    let Ok(policy) = try_build(spec, case.slots, entry, case.k, case.volatile) else { return };
    let mut device = Device::new(case, policy);
    for r in &case.requests {
        device.request(r);
        if case.volatile && r.op == Op::Flush {
            device.assert_durable(0..DEVICE_PAGES, "flush");
            assert_eq!(device.policy.stats().total().dirty, 0);
        }
        if case.volatile && r.fua && matches!(r.op, Op::Write | Op::WriteZeroes) {
            device.assert_durable(r.lpn.raw()..r.lpn.raw() + r.n, "FUA write");
        }
    }
    device.drain();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_host_reads_what_it_wrote(case in case()) {
        for spec in every_policy() {
            reads_back(spec, &case);
        }
    }
}

#[test]
fn a_request_larger_than_the_buffer() {
    let case = Case { slots: 5, k: 4, volatile: true, sectors: 8, requests: Vec::new() };
    for spec in every_policy() {
        let Ok(policy) = try_build(spec, case.slots, 4096, case.k, true) else { continue };
        let mut device = Device::new(&case, policy);
        let all = |op, fua| Req { fua, ..Req::new(op, Lpn::new(0), PAGES) };
        for (op, fua) in [(Op::Write, false), (Op::Read, false), (Op::Write, true)] {
            device.request(&all(op, fua));
        }
        device.assert_durable(0..PAGES, spec);
        device.request(&all(Op::Trim, false));
        let total = device.policy.stats().total();
        let programmed = total.pages_programmed + total.overwritten;
        assert_eq!(programmed, 2 * u64::from(PAGES), "{spec}");
        assert_eq!(total.dirty, 0, "{spec}");
    }
}
