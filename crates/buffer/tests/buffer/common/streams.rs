//! Random request streams that shrink.

use onefold_buffer::Req;
use onefold_units::{Lpn, Nanos, Op};
use proptest::prelude::*;

/// Pages the streams touch: several times the buffers, so that everything is evicted often.
pub(crate) const PAGES: u32 = 40;

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => Just(Op::Read),
        10 => Just(Op::Write),
        3 => Just(Op::Trim),
        1 => Just(Op::Flush),
        1 => Just(Op::WriteZeroes),
    ]
}

prop_compose! {
    /// One request. Half of them are cut to sectors, if the entry has `sectors` and `cut` says so.
    fn request(sectors: u8, cut: bool)(
        op in op(),
        near in 0..PAGES,
        reach in prop_oneof![6 => 1..4_u32, 1 => 4..PAGES],
        fua in prop::bool::weighted(0.15),
        tenant in 0..3_u8,
        edges in (0..sectors, 0..sectors),
        whole in any::<bool>(),
    ) -> Req {
        let n = reach.min(PAGES - near);
        let (mut head, mut tail) = if whole || !cut { (0, 0) } else { edges };
        if n == 1 && head + tail >= sectors {
            (head, tail) = (head / 2, tail / 2);
        }
        let n = if op == Op::Flush { 0 } else { n };
        Req { op, fua, tenant, lpn: Lpn::new(near), n, head, tail, t: Nanos::ZERO }
    }
}

/// A buffer and what it is asked.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) slots: u32,
    pub(crate) k: u32,
    pub(crate) volatile: bool,
    pub(crate) sectors: u8,
    pub(crate) requests: Vec<Req>,
}

prop_compose! {
    fn sizes()(
        k in prop_oneof![Just(1_u32), Just(4)],
        more in 0..12_u32,
        volatile in prop::bool::weighted(0.8),
        sectors in prop_oneof![Just(8_u8), Just(32)],
        cut in any::<bool>(),
    ) -> (Case, bool) {
        (Case { slots: k + more, k, volatile, sectors, requests: Vec::new() }, cut)
    }
}

/// Cases with and without cut entries, for entries of 4 KiB and 16 KiB.
pub(crate) fn case() -> impl Strategy<Value = Case> {
    sizes().prop_flat_map(|(case, cut)| {
        let requests = prop::collection::vec(request(case.sectors, cut), 1..120);
        requests.prop_map(move |requests| Case { requests, ..case.clone() })
    })
}
