//! Prints what the workload generators reach beside what they should.
//!
//!     cargo run --release -p onefold-trace --example calibration

use onefold_trace::workload::{Lsm, PageRequest, PageSource};
use onefold_units::convert::float;

fn main() {
    for spec in std::env::args().skip(1) {
        let start = std::time::Instant::now();
        let mut lsm = Lsm::parse(&spec).unwrap().instantiate(300 << 30, 1).unwrap();
        let mut batch = [PageRequest::EMPTY; 1024];
        let mut warm = 0;
        loop {
            let got = lsm.fill_warm_up(&mut batch);
            warm += got;
            if got < batch.len() {
                break;
            }
        }
        let mid = start.elapsed();
        let mut n = 0;
        loop {
            let got = lsm.fill_pages(&mut batch);
            n += got;
            if got < batch.len() {
                break;
            }
        }
        let t = lsm.totals();
        let user = float(t.user_bytes);
        let traffic = float(t.read_bytes + t.write_bytes);
        println!("{spec}: warm {warm} in {mid:?}, {n} requests in {:?}", start.elapsed() - mid);
        println!(
            "R% {:.1} WA {:.1} RA {:.1} DW {:.2} user GiB {:.1} traffic {:.1} live {:.1}",
            100.0 * float(t.read_bytes) / traffic,
            float(t.write_bytes) / user,
            float(t.read_bytes) / user,
            float(t.write_bytes) / float(300 << 30),
            user / float(1 << 30),
            traffic / float(1 << 30),
            float(lsm.live_bytes()) / float(1 << 30)
        );
    }
}
