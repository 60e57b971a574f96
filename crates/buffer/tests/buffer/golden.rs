//! Exact counts on the golden traces of the buffer specification, section 6.

use crate::common::build::build;
use crate::common::replay::{assert_g1, cells, g2, read_all};
use crate::common::traces::{G2, g1};
use crate::common::unmapped::Unmapped;
use onefold_buffer::offline::{Request, stack_distances};
use onefold_buffer::{Actions, Req};
use onefold_units::Op;

#[test]
fn g1_miss_ratios_and_stack_distances() {
    let keys = g1();
    let read = |lpn: &u32| Request { op: Op::Read, tenant: 0, lpn: *lpn, n: 1 };
    let distances = stack_distances(&keys.iter().map(read).collect::<Vec<Request>>());
    for (slots, golden) in
        [(1, None), (64, None), (1_000, Some(0.493_925)), (10_000, Some(0.265_361)), (65_537, None)]
    {
        let reads = read_all(&keys, build("lru", slots, 4096, 1, true)).total().reads;
        assert_eq!((reads.requests, reads.pages), (1_000_000, 1_000_000));
        assert_eq!(reads.hits, distances.read_hits(slots), "{slots} slots");
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
