//! A row for each request: with the row, the distributions can be had again.

use std::cell::RefCell;

use crate::common::{sets, setup, workload};
use onefold_sim::{Control, Logged, simulate};
use onefold_units::Op;

/// The rows are what the result sums up, on a drive and on one under a volume; none of the warm-up, none twice.
#[test]
fn rows_add_up_to_the_result() {
    for layer in ["volume.mode=none", "volume.mode=log"] {
        let small = ["geometry.channels=1", "geometry.ways=1", "geometry.blocks=280"];
        let more = ["geometry.pages=64", "run.warmup=500", layer];
        let sets = sets(&[&small[..], &more].concat());
        let load = workload("mix,bs=4KiB,qd=8,requests=3000,read_share=0.5,flush_every=50");
        let rows = RefCell::new(Vec::new());
        let note = |row: &Logged<'_>| {
            assert_eq!((row.pass, row.tenant), (1, "host"));
            assert!(
                row.op == Op::Flush || (row.bytes == 4096 && row.offset.is_multiple_of(4096)),
                "{row:?}"
            );
            let latency = row.latency_ns.expect("nothing fails here");
            rows.borrow_mut().push((row.number, row.op, latency, row.issued_ns));
        };
        let control = Control { on_request: Some(&note), ..Control::default() };
        let result = simulate(&setup("s1", &sets, &load), &control).unwrap();
        let mut rows = rows.into_inner();
        rows.sort_unstable_by_key(|row| row.0);
        let numbers: Vec<u64> = rows.iter().map(|row| row.0).collect();
        assert_eq!(numbers, (500..3000).collect::<Vec<_>>(), "{layer}");
        for (op, summary) in
            [(Op::Read, &result.latency_ns.read), (Op::Write, &result.latency_ns.write)]
        {
            let of: Vec<u64> = rows.iter().filter(|row| row.1 == op).map(|row| row.2).collect();
            assert_eq!(u64::try_from(of.len()).unwrap(), summary.count, "{layer}");
            assert_eq!(of.iter().max(), Some(&summary.max));
            #[expect(clippy::cast_precision_loss, reason = "a mean of small numbers")]
            let mean = of.iter().sum::<u64>() as f64 / of.len() as f64;
            assert!((mean / summary.mean - 1.0).abs() < 1e-9, "{layer}");
        }
        let plain = simulate(&setup("s1", &sets, &load), &Control::default()).unwrap();
        assert_eq!(plain.latency_ns, result.latency_ns, "who watches changes nothing");
    }
}
