//! CFLRU.

use super::lists::Lists;
use super::nested::Nested;
use crate::common::model::{Order, Pages, agrees};
use crate::common::replay::{cells, g2};
use crate::common::streams::{Case, case};
use onefold_buffer::{PolicySpec, Ratio, Stream};
use onefold_units::convert::index;
use proptest::prelude::*;

/// One LRU list; the window is looked through for every victim.
pub(super) struct Cflru {
    lists: Lists<1>,
    window: usize,
}

impl Order for Cflru {
    fn new(case: &Case, spec: &PolicySpec) -> Self {
        let own = spec.name() == "cflru";
        let window = if own { spec.value("window").ratio() } else { Ratio::new(1, 3) };
        Self { lists: Lists::new(), window: index(window.of(case.slots)) }
    }

    fn hit(&mut self, lpn: u32, _: bool, _: &mut Pages) {
        self.lists.move_to(0, lpn);
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

impl Nested for Cflru {
    fn evict(&mut self, pages: &mut Pages) {
        let mut window = self.lists.0[0].iter().take(self.window);
        let clean = window.position(|page| !pages.is_dirty(*page));
        self.lists.evict(0, clean.unwrap_or(0), pages);
    }

    fn insert(&mut self, lpn: u32, _: bool, _: bool, _: &mut Pages) {
        self.lists.move_to(0, lpn);
    }

    fn join(&mut self, lpn: u32) {
        self.lists.move_to(0, lpn);
    }
}

#[test]
fn g2_counts() {
    assert_eq!(cells(&g2("cflru", 512, 1)), [7_004, 12_347, 239_531]);
    assert_eq!(cells(&g2("cflru", 2048, 1)), [18_908, 22_771, 211_815]);
}

#[test]
fn without_a_window_it_is_lru() {
    assert_eq!(g2("cflru:window=0", 512, 4), g2("lru", 512, 4));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn cflru_equals_the_naive_model(
        case in case(),
        spec in prop::sample::select(vec!["cflru", "cflru:window=0.6", "cflru:window=1"]),
    ) {
        agrees::<Cflru>(spec, &case);
    }
}
