//! A policy written outside the crate, with two streams and ghosts: what `Replacement` and
//! `Entries` promise to policies that LRU does not need.

use crate::common::streams::{Case, PAGES, case};
use crate::common::unmapped::Unmapped;
use onefold_buffer::{
    Access, Action, Actions, Area, BufferConfig, Cache, Charge, Entries, FtlView, ListId, NodeId,
    Policy, PolicySpec, Replacement, Req, Setup, Sizes, Stream, Violation,
};
use onefold_units::{Lpn, Op};
use proptest::prelude::*;

const NEW: ListId = ListId(0);
const KNOWN: ListId = ListId(1);
const GHOSTS: ListId = ListId(2);

/// Pages seen for the first time go to a FIFO; those that come back, also after their eviction, to
/// an LRU list. Writes of one page that hit go to the oldest end of it.
#[derive(Clone)]
struct TwoLists {
    single: bool,
    limit: u32,
}

impl TwoLists {
    fn evict(e: &mut Entries, out: &mut Actions) {
        let list = if e.is_empty(NEW) { KNOWN } else { NEW };
        assert!(e.evict(list, out) > 0);
        for key in e.evicted().to_vec() {
            if e.insert_ghost(GHOSTS, key).is_none() {
                let oldest = e.slab().oldest(GHOSTS).unwrap();
                e.remove_ghost(oldest);
                e.insert_ghost(GHOSTS, key).unwrap();
            }
        }
    }
}

impl Replacement for TwoLists {
    const AREAS: &'static [Area] = &[Area::append_only("new"), Area::new("known"), Area::ghosts()];

    fn new(setup: &Setup) -> Self {
        Self { single: false, limit: setup.shape.slots() }
    }

    fn ghosts(setup: &Setup) -> u32 {
        setup.shape.slots() / 2 + 1
    }

    fn begin(&mut self, r: &Req, ftl: &dyn FtlView, _: &Entries, _: &mut Actions) {
        assert!(!ftl.mapped(r.lpn));
        self.single = r.n == 1;
    }

    fn hit(&mut self, e: &mut Entries, id: NodeId, access: Access, _: &mut Actions) {
        *e.aux_mut(id) += 1;
        assert_eq!(e.find(e.key(id)), Some(id));
        if self.single && access == Access::Write {
            e.move_to_oldest(KNOWN, id);
        } else {
            e.move_to_newest(KNOWN, id);
        }
    }

    fn admit(
        &mut self,
        e: &mut Entries,
        key: u32,
        ghost: Option<NodeId>,
        _: Access,
        out: &mut Actions,
    ) -> Option<NodeId> {
        if let Some(ghost) = ghost {
            e.remove_ghost(ghost);
        }
        if e.is_full() {
            Self::evict(e, out);
        }
        Some(e.insert(if ghost.is_some() { KNOWN } else { NEW }, key))
    }

    fn check(&self, e: &Entries) -> Result<(), Violation> {
        let found = e.len(NEW) + e.len(KNOWN);
        let (list, limit) = (0, self.limit);
        if found > limit { Err(Violation::ListLimit { list, found, limit }) } else { Ok(()) }
    }
}

fn policy(case: &Case) -> Cache<TwoLists> {
    let entry = u32::from(case.sectors) * 512;
    let bytes = u64::from(case.slots) * u64::from(entry);
    let policy = PolicySpec::parse("lru").unwrap();
    let config = BufferConfig { policy, bytes, charge: Charge::None, volatile: case.volatile };
    let page = case.k * entry;
    let sizes = Sizes { flash_page_bytes: page, ..Sizes::of_one_die(entry, 1 << 30) };
    Cache::new(&config, &sizes).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_policy_keeps_the_invariants(case in case()) {
        let mut policy = policy(&case);
        let mut out = Actions::new();
        for r in &case.requests {
            policy.request(r, &Unmapped, &mut out);
            policy.check().unwrap();
            let done = out.as_slice().iter().filter(|action| {
                matches!(action, Action::Hit { .. } | Action::Fill { .. } | Action::Store { .. })
            });
            let pages = if matches!(r.op, Op::Trim | Op::Flush) { 0 } else { r.n };
            prop_assert_eq!(done.count(), usize::try_from(pages).unwrap());
            if case.volatile && r.op == Op::Flush {
                prop_assert_eq!(policy.stats().total().dirty, 0);
            }
        }
        let everything = Req::new(Op::Trim, Lpn::new(0), PAGES);
        policy.request(&everything, &Unmapped, &mut out);
        policy.check().unwrap();
        prop_assert_eq!(policy.stats().total().dirty, 0);
    }
}

#[test]
fn streams_do_not_share_a_flash_page() {
    let case = Case { slots: 8, k: 4, volatile: true, sectors: 8, requests: Vec::new() };
    let mut policy = policy(&case);
    let mut out = Actions::new();
    policy.request(&Req::new(Op::Write, Lpn::new(0), 4), &Unmapped, &mut out);
    policy.request(&Req::new(Op::Read, Lpn::new(2), 2), &Unmapped, &mut out);
    let fua = Req { fua: true, ..Req::new(Op::Write, Lpn::new(4), 2) };
    let programs = |out: &Actions| -> Vec<(Stream, Vec<u32>)> {
        let step = |action: &Action| match *action {
            Action::Program { stream, batch } => {
                Some((stream, out.batch(batch).iter().map(|entry| entry.lpn.raw()).collect()))
            }
            _ => None,
        };
        out.as_slice().iter().filter_map(step).collect()
    };
    policy.request(&fua, &Unmapped, &mut out);
    assert_eq!(programs(&out), [(Stream::AppendOnly, vec![4, 5])]);
    policy.request(&Req { fua: true, ..Req::new(Op::Write, Lpn::new(5), 2) }, &Unmapped, &mut out);
    assert_eq!(programs(&out), [(Stream::AppendOnly, vec![6]), (Stream::Other, vec![5])]);
    policy.request(&Req::new(Op::Flush, Lpn::new(0), 0), &Unmapped, &mut out);
    assert_eq!(programs(&out), [(Stream::AppendOnly, vec![0, 1]), (Stream::Other, vec![2, 3])]);
}

/// Ghosts are forgotten with their page: what a TRIM discarded does not count as seen.
#[test]
fn trim_deletes_ghosts() {
    let case = Case { slots: 2, k: 1, volatile: true, sectors: 8, requests: Vec::new() };
    for trimmed in [false, true] {
        let mut policy = policy(&case);
        let mut out = Actions::new();
        policy.request(&Req::new(Op::Write, Lpn::new(0), 3), &Unmapped, &mut out);
        if trimmed {
            policy.request(&Req::new(Op::Trim, Lpn::new(0), 1), &Unmapped, &mut out);
            assert!(out.as_slice().is_empty(), "a ghost has no slot to drop");
        }
        // Page 0 evicts page 1 and, if known, survives page 7; else it is the oldest new page but
        // one.
        for lpn in [0, 7, 8] {
            policy.request(&Req::new(Op::Read, Lpn::new(lpn), 1), &Unmapped, &mut out);
        }
        policy.request(&Req::new(Op::Read, Lpn::new(0), 1), &Unmapped, &mut out);
        let hit = matches!(out.as_slice().last(), Some(Action::Hit { .. }));
        assert_eq!(hit, !trimmed);
    }
}
