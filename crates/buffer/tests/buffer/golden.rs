//! Exact counts on the golden traces of the buffer specification, section 6.

use crate::common::build::build;
use crate::common::replay::{assert_g1, cells, g2, read_all};
use crate::common::traces::{G2, g1};
use crate::common::unmapped::Unmapped;
use onefold_buffer::{Actions, Req};
use onefold_units::convert::index;

/// Adds to one element of a Fenwick tree.
fn add(tree: &mut [i64], at: usize, by: i64) {
    let mut at = at + 1;
    while at < tree.len() {
        tree[at] += by;
        at += at & at.wrapping_neg();
    }
}
/// Sum of the elements before one.
fn sum(tree: &[i64], before: usize) -> i64 {
    let mut at = before;
    let mut sum = 0;
    while at > 0 {
        sum += tree[at];
        at &= at - 1;
    }
    sum
}

/// Hits of LRU at every size at once: `hits[d]` reads had stack distance d, so a buffer of C
/// entries hits those with d < C. Source: Mattson, Gecsei, Slutz, Traiger, 1970, with the counts
/// of distinct keys in a Fenwick tree.
fn stack_distances(keys: &[u32]) -> Vec<u64> {
    let mut tree = vec![0_i64; keys.len() + 1];
    let mut last: Vec<Option<usize>> = vec![None; 100_000];
    let mut hits = vec![0; 100_000];
    for (now, key) in keys.iter().enumerate() {
        if let Some(then) = last[index(*key)].replace(now) {
            let distance = sum(&tree, now) - sum(&tree, then + 1);
            hits[usize::try_from(distance).unwrap()] += 1;
            add(&mut tree, then, -1);
        }
        add(&mut tree, now, 1);
    }
    hits
}

#[test]
fn g1_miss_ratios_and_stack_distances() {
    let keys = g1();
    let distances = stack_distances(&keys);
    for (slots, golden) in
        [(1, None), (64, None), (1_000, Some(0.493_925)), (10_000, Some(0.265_361)), (65_537, None)]
    {
        let reads = read_all(&keys, build("lru", slots, 4096, 1, true)).total().reads;
        assert_eq!((reads.requests, reads.pages), (1_000_000, 1_000_000));
        let expected: u64 = distances[..index(slots)].iter().sum();
        assert_eq!(reads.hits, expected, "{slots} slots");
        if let Some(golden) = golden {
            assert_g1("lru", slots, golden);
        }
    }
}

#[test]
fn g2_counts() {
    for (slots, golden) in [(512, [7_011, 11_947, 241_195]), (2048, [18_810, 22_595, 215_888])] {
        let total = g2("lru", slots, 1);
        assert_eq!(cells(&total), golden);
        assert_eq!(
            [total.reads.pages, total.writes.pages, total.trim_pages],
            [92_919, 255_921, 168_960]
        );
        assert_eq!(total.programs, total.pages_programmed);
        assert_eq!((total.pad_reads, total.short_programs), (0, 0));
        assert_eq!(total.flash_reads, total.reads.misses());
    }
}

/// Tags decide nothing, and the counters of all tenants add up to those of one.
#[test]
fn tenants_only_split_the_counts() {
    let trace = G2::new();
    let (mut one, mut many) = (build("lru", 512, 4096, 4, true), build("lru", 512, 4096, 4, true));
    let (mut out, mut tagged_out) = (Actions::new(), Actions::new());
    for (tenant, r) in [0, 7, 255, 7, 1].into_iter().cycle().zip(&trace.requests) {
        one.request(r, &Unmapped, &mut out);
        many.request(&Req { tenant, ..*r }, &Unmapped, &mut tagged_out);
        assert_eq!(out.as_slice(), tagged_out.as_slice());
    }
    many.check().unwrap();
    assert_eq!(one.stats().total(), many.stats().total());
    assert_eq!(many.stats().tenants().len(), 256);
    assert!(many.stats().tenant(7).writes.pages > many.stats().tenant(1).writes.pages);
    assert!(one.stats().total().programs < one.stats().total().pages_programmed / 2);
}
