//! SIEVE.

use super::lists::{one_stream, take};
use super::nested::Nested;
use crate::common::model::{Order, Pages, agrees};
use crate::common::replay::{assert_g1, assert_g2};
use crate::common::streams::{Case, case};
use onefold_buffer::{PolicySpec, Stream};
use proptest::prelude::*;

/// Oldest page first, with whether it was accessed since the hand passed.
pub(super) struct Sieve {
    pages: Vec<u32>,
    accessed: Vec<u32>,
    /// The page the hand is at; none before the oldest.
    hand: Option<u32>,
}

impl Sieve {
    fn newer(&self, lpn: u32) -> Option<u32> {
        let at = self.pages.iter().position(|page| *page == lpn).unwrap();
        self.pages.get(at + 1).copied()
    }
}

impl Order for Sieve {
    fn new(_: &Case, _: &PolicySpec) -> Self {
        Self { pages: Vec::new(), accessed: Vec::new(), hand: None }
    }

    fn hit(&mut self, lpn: u32, _: bool, _: &mut Pages) {
        take(&mut self.accessed, lpn);
        self.accessed.push(lpn);
    }

    fn admit(&mut self, lpn: u32, write: bool, pages: &mut Pages) -> bool {
        self.make_room_and_insert(lpn, write, pages)
    }

    fn forget(&mut self, lpn: u32) {
        if self.hand == Some(lpn) {
            self.hand = self.newer(lpn);
        }
        take(&mut self.pages, lpn);
        take(&mut self.accessed, lpn);
    }

    fn flush_order(&self) -> Vec<(Stream, Vec<u32>)> {
        one_stream(&[&self.pages])
    }
}

impl Nested for Sieve {
    fn evict(&mut self, pages: &mut Pages) {
        let mut at = self.hand.unwrap_or(self.pages[0]);
        while take(&mut self.accessed, at) {
            at = self.newer(at).unwrap_or(self.pages[0]);
        }
        let from = self.pages.iter().position(|page| *page == at).unwrap();
        for gone in pages.evict(&self.pages[from..], Stream::Other) {
            take(&mut self.pages, gone);
            take(&mut self.accessed, gone);
        }
        self.hand = self.pages.get(from).copied();
    }

    fn insert(&mut self, lpn: u32, _: bool, _: bool, _: &mut Pages) {
        self.pages.push(lpn);
    }

    fn join(&mut self, lpn: u32) {
        self.pages.push(lpn);
    }
}

#[test]
fn golden_counts() {
    assert_g1("sieve", 1_000, 0.402_304);
    assert_g1("sieve", 10_000, 0.223_824);
    assert_g2("sieve", [[10_530, 24_454, 230_352], [19_839, 38_692, 207_150]]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sieve_equals_the_naive_model(case in case()) {
        agrees::<Sieve>("sieve", &case);
    }
}
