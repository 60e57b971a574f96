//! Drives of data centres: units of 32 bits reach 16 TiB at 4 KiB each, and more where they are larger.

use crate::common::{sets, setup};
use onefold_config::Load;
use onefold_sim::{Control, simulate};

#[test]
fn a_drive_of_64_tib_is_filled_and_read() {
    let drive = [
        "geometry.channels=16",
        "geometry.ways=16",
        "geometry.planes=4",
        "geometry.pages=1024",
        "geometry.blocks=4386",
        "ftl.indirection=32KiB",
        "capacity.logical=64TiB",
        "precondition.fill=0.005",
    ];
    let load = Load::Workload("randread,bs=32KiB,qd=32,requests=2000".to_owned());
    let result = simulate(&setup("qlc-16k", &sets(&drive), &load), &Control::default()).unwrap();
    assert_eq!(result.host.read_requests, 2_000);
    assert_eq!(result.device.logical_bytes, 64 << 40);
}
