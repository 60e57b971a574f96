//! What must not change anything.

use crate::common::build::{build, try_build};
use crate::common::replay::Written;
use crate::common::streams::{Case, case};
use crate::common::text::text;
use crate::common::traces::G2;
use onefold_buffer::{Actions, Policy, Req, TenantStats};
use onefold_units::Op;
use proptest::prelude::*;

const MODES: [&str; 3] = ["mapped", "cursor", "literal"];

/// The answers of a policy to requests.
struct Run {
    policy: Box<dyn Policy + Send>,
    out: Actions,
    written: Written,
}

impl Run {
    fn new(policy: Box<dyn Policy + Send>) -> Self {
        Self { policy, out: Actions::new(), written: Written::default() }
    }

    fn answer(&mut self, r: &Req) -> String {
        self.policy.request(r, &self.written, &mut self.out);
        self.written.note(r);
        text(&self.out)
    }

    fn totals(mut self, requests: &[Req]) -> TenantStats {
        for r in requests {
            self.policy.request(r, &self.written, &mut self.out);
            self.written.note(r);
        }
        self.policy.check().unwrap();
        self.policy.stats().total()
    }
}

/// If nothing is large there is only SORB, which then is the whole buffer.
fn is_its_area(case: &Case) {
    let entry = u32::from(case.sectors) * 512;
    let build = |spec: &str| try_build(spec, case.slots, entry, case.k, case.volatile).unwrap();
    for mode in MODES {
        for area in ["lru", "2l", "pt-lru", "cflru", "s3-fifo", "sieve"] {
            let aoi = format!(
                "aoi:reaccess={mode},area={area},threshold=1024GiB,chunk=16KiB,channels=1,ways=1"
            );
            let (mut one, mut other) = (Run::new(build(area)), Run::new(build(&aoi)));
            for r in &case.requests {
                assert_eq!(one.answer(r), other.answer(r), "{aoi}: {r:?}");
            }
            assert_eq!(one.policy.stats().tenants(), other.policy.stats().tenants());
            assert_eq!(other.policy.stats().areas()[0].write_backs(), 0);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn without_large_requests_aoi_is_the_policy_of_its_area(case in case()) {
        is_its_area(&case);
    }
}

#[test]
fn without_large_requests_aoi_is_lru_on_g2() {
    let trace = G2::new().requests;
    for k in [1, 4] {
        let lru = Run::new(build("lru", 512, 4096, k, true)).totals(&trace);
        for mode in MODES {
            let spec = format!("aoi:reaccess={mode},threshold=1024GiB");
            assert_eq!(Run::new(build(&spec, 512, 4096, k, true)).totals(&trace), lru, "{spec}");
        }
    }
}

#[test]
fn without_trims_their_reset_does_not_matter() {
    let mut trace = G2::new().requests;
    trace.retain(|r| r.op != Op::Trim);
    for mode in MODES {
        let run = |reset: &str| {
            let spec = format!("aoi:reaccess={mode},trim_reset={reset}");
            Run::new(build(&spec, 512, 4096, 1, true)).totals(&trace)
        };
        let (off, touch, full) = (run("off"), run("touch"), run("full"));
        assert_eq!(off, touch, "{mode}");
        assert_eq!(off, full, "{mode}");
    }
}

#[test]
fn tenants_decide_nothing() {
    for mode in MODES {
        let spec = format!("aoi:reaccess={mode},channels=4,ways=4");
        let run = || Run::new(build(&spec, 512, 4096, 4, true));
        let (mut one, mut many) = (run(), run());
        for (tenant, r) in [0, 7, 255, 7, 1].into_iter().cycle().zip(&G2::new().requests) {
            assert_eq!(one.answer(r), many.answer(&Req { tenant, ..*r }), "{spec}: {r:?}");
        }
        assert_eq!(one.policy.stats().total(), many.policy.stats().total());
        assert!(one.policy.stats().total().programs > 0);
    }
}
