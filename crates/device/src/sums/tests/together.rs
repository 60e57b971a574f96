//! Requests at once: no read sees a half of a write, and nothing becomes clean under a write.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::*;

#[test]
fn reads_beside_writes_and_cleaning_are_no_errors() {
    const BLOCKS: u64 = 2 * CACHE_REGION_BLOCKS;
    let (disk, summed) = made(BLOCKS);
    super::super::lock(&summed.state).pages.set_max(1);
    let (over, first) = (AtomicBool::new(false), 1016);
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let (summed, over) = (&summed, &over);
            scope.spawn(move || {
                let mut rng = Rng::fork(1, writer);
                for version in 0..1500 {
                    let (at, len) = (first + rng.below(12), 1 + rng.below(4));
                    let bytes: Vec<u8> =
                        (at..at + len).flat_map(|block| content(block, version)).collect();
                    summed.write(at, &bytes).unwrap();
                }
                over.store(true, Relaxed);
            });
        }
        scope.spawn(|| {
            let mut now = Duration::ZERO;
            while !over.load(Relaxed) {
                now += LATER;
                summed.flush(now).unwrap();
            }
        });
        let mut rng = Rng::fork(1, 9);
        while !over.load(Relaxed) {
            read(&summed, first + rng.below(16)).unwrap();
        }
    });
    for block in first..first + 16 {
        read(&summed, block).unwrap();
    }
    summed.flush(Duration::ZERO).unwrap();
    let again = open(&Disk::of(disk.blocks(), disk.image().cut(0)));
    assert_eq!(again.scan().differing, 0);
}
