//! PT-LRU.

use super::lists::Lists;
use super::nested::Nested;
use crate::common::model::{Order, Pages, agrees};
use crate::common::replay::{cells, g2};
use crate::common::streams::{Case, case};
use onefold_buffer::{PolicySpec, Stream};
use onefold_units::Rng;
use proptest::prelude::*;

const LC: usize = 0;
const LD: usize = 1;
const LH: usize = 2;

pub(super) struct PtLru {
    lists: Lists<3>,
    p: f64,
    rng: Rng,
}

impl PtLru {
    fn victims(&mut self) -> usize {
        match self.lists.0.each_ref().map(|list| !list.is_empty()) {
            [true, _, _] => LC,
            [_, true, false] => LD,
            [_, false, _] => LH,
            _ if self.rng.unit() < self.p => LD,
            _ => LH,
        }
    }
}

impl Order for PtLru {
    fn new(_: &Case, spec: &PolicySpec) -> Self {
        let own = spec.name() == "pt-lru";
        let p = if own { spec.value("p").ratio().real() } else { 0.999 };
        Self { lists: Lists::new(), p, rng: Rng::new(3) }
    }

    fn hit(&mut self, lpn: u32, _: bool, _: &mut Pages) {
        self.lists.move_to(LH, lpn);
    }

    fn admit(&mut self, lpn: u32, write: bool, pages: &mut Pages) -> bool {
        self.make_room_and_insert(lpn, write, pages)
    }

    fn forget(&mut self, lpn: u32) {
        self.lists.forget(lpn);
    }

    fn flush_order(&self) -> Vec<(Stream, Vec<u32>)> {
        self.lists.flush_order()
    }
}

impl Nested for PtLru {
    fn evict(&mut self, pages: &mut Pages) {
        let victims = self.victims();
        self.lists.evict(victims, 0, pages);
    }

    fn insert(&mut self, lpn: u32, _: bool, write: bool, _: &mut Pages) {
        self.lists.move_to(if write { LD } else { LC }, lpn);
    }

    fn join(&mut self, lpn: u32) {
        self.lists.move_to(LH, lpn);
    }
}

#[test]
fn g2_counts() {
    assert_eq!(cells(&g2("pt-lru", 512, 1)), [10_709, 25_436, 228_558]);
    assert_eq!(cells(&g2("pt-lru", 2048, 1)), [19_825, 38_184, 201_794]);
    assert_eq!(cells(&g2("pt-lru:p=0.75", 512, 1)), [5_195, 8_497, 240_572]);
    assert_eq!(cells(&g2("pt-lru:p=0.75", 2048, 1)), [15_996, 16_183, 210_855]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pt_lru_equals_the_naive_model(
        case in case(),
        spec in prop::sample::select(vec!["pt-lru", "pt-lru:p=0", "pt-lru:p=0.5", "pt-lru:p=1"]),
    ) {
        agrees::<PtLru>(spec, &case);
    }
}
