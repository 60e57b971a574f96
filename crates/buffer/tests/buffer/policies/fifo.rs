//! First in, first out.

use super::lists::Lists;
use crate::common::model::{Order, Pages, agrees};
use crate::common::replay::assert_g1;
use crate::common::streams::{Case, case};
use onefold_buffer::{PolicySpec, Stream};
use proptest::prelude::*;

struct Fifo(Lists<1>);

impl Order for Fifo {
    fn new(_: &Case, _: &PolicySpec) -> Self {
        Self(Lists::new())
    }

    fn hit(&mut self, _: u32, _: bool, _: &mut Pages) {}

    fn admit(&mut self, lpn: u32, _: bool, pages: &mut Pages) -> bool {
        if pages.is_full() {
            self.0.evict(0, 0, pages);
        }
        self.0.move_to(0, lpn);
        true
    }

    fn forget(&mut self, lpn: u32) {
        self.0.forget(lpn);
    }

    fn flush_order(&self) -> Vec<(Stream, Vec<u32>)> {
        self.0.flush_order()
    }
}

#[test]
fn g1_miss_ratios() {
    assert_g1("fifo", 1_000, 0.534_934);
    assert_g1("fifo", 10_000, 0.300_541);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn fifo_equals_the_naive_model(case in case()) {
        agrees::<Fifo>("fifo", &case);
    }
}
