//! Golden traces through a policy: the counts of the tables in buffer specification section 6.

use std::collections::BTreeSet;

use onefold_buffer::{Actions, FtlView, Policy, Req, Stats, TenantStats};
use onefold_units::convert::float;
use onefold_units::{Lpn, Op};

use crate::common::build::build;
use crate::common::traces::{G2, g1};
use crate::common::unmapped::Unmapped;

/// Asserts the miss ratio of a policy with `slots` entries on G1, to all digits given.
pub(crate) fn assert_g1(spec: &str, slots: u32, golden: f64) {
    let found = g1_misses(spec, slots);
    assert!((found - golden).abs() < 5e-7, "{spec}, {slots} entries: {found}, not {golden}");
}

/// Miss ratio of a policy with `slots` entries on G1.
pub(crate) fn g1_misses(spec: &str, slots: u32) -> f64 {
    let stats = read_all(&g1(), build(spec, slots, 4096, 1, true));
    float(stats.total().reads.misses()) / 1e6
}

/// Reads single pages.
pub(crate) fn read_all(keys: &[u32], mut policy: Box<dyn Policy + Send>) -> Stats {
    let mut out = Actions::new();
    for key in keys {
        policy.request(&Req::new(Op::Read, Lpn::new(*key), 1), &Unmapped, &mut out);
    }
    policy.check().unwrap();
    policy.stats().clone()
}

/// Pages that hold data: written and not trimmed since.
#[derive(Default)]
pub(crate) struct Written(BTreeSet<u32>);

impl FtlView for Written {
    fn mapped(&self, lpn: Lpn) -> bool {
        self.0.contains(&lpn.raw())
    }
}

impl Written {
    /// Takes note of a request that was handled.
    pub(crate) fn note(&mut self, r: &Req) {
        let pages = r.lpn.raw()..r.lpn.raw() + r.n;
        match r.op {
            Op::Write | Op::WriteZeroes => self.0.extend(pages),
            Op::Trim => pages.for_each(|page| {
                self.0.remove(&page);
            }),
            Op::Read | Op::Flush => {}
        }
    }
}

/// G2 through a policy, with its invariants checked now and then.
pub(crate) fn g2(spec: &str, slots: u32, k: u32) -> TenantStats {
    let mut policy = build(spec, slots, 4096, k, true);
    let (mut out, mut written) = (Actions::new(), Written::default());
    for (at, r) in G2::new().requests.iter().enumerate() {
        policy.request(r, &written, &mut out);
        written.note(r);
        if at % 512 == 0 {
            policy.check().unwrap();
        }
    }
    policy.check().unwrap();
    policy.stats().total()
}

/// Read hits, write hits, pages programmed.
pub(crate) fn cells(total: &TenantStats) -> [u64; 3] {
    [total.reads.hits, total.writes.hits, total.pages_programmed]
}

/// Asserts the counts of a policy on G2 with 512 and 2048 entries.
pub(crate) fn assert_g2(spec: &str, golden: [[u64; 3]; 2]) {
    assert_eq!([512, 2048].map(|slots| cells(&g2(spec, slots, 1))), golden, "{spec}");
}
