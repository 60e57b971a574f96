mod common;
use common::{Folder, rich};
use onefold_device::BlockDevice;
use onefold_ssd::{SsdConfig, Ssd, Command, Payload};
use onefold_nand::MemoryMedia;
use onefold_units::{Op, Nanos};

fn word(b: &[u8]) -> u64 { u64::from_le_bytes(b[..8].try_into().unwrap()) }

fn file(config: SsdConfig) -> String {
    let folder = Folder::new(config);
    let mut rng = onefold_units::Rng::new(7);
    let (mut durable, mut issued) = (vec![0_u64; 768], vec![0_u64; 768]);
    for round in 0..12_u64 {
        let o = folder.open();
        let device = o.device;
        for page in 0..768 {
            let mut back = [0; 4096];
            if device.read(page as u64 * 4096, &mut back).is_err() { return format!("round {round} page {page} unreadable {:?}", o.recovery); }
            let f = word(&back) >> 16;
            if f < durable[page] || f > issued[page] { return format!("round {round} page {page} found {f} durable {} issued {} {:?}", durable[page], issued[page], o.recovery); }
            durable[page] = f;
        }
        let writes = 200 + rng.below(1500);
        let flush_at = rng.below(writes);
        for n in 0..writes {
            let page = rng.below(768);
            issued[page as usize] += 1;
            let w = issued[page as usize] << 16 | page;
            device.write(page * 4096, &w.to_le_bytes().repeat(512), false).unwrap();
            if n == flush_at { device.flush().unwrap(); durable.clone_from(&issued); }
        }
    }
    "ok".into()
}
fn memory(config: SsdConfig) -> String {
    let b = Ssd::new(config, onefold_nand::NullMedia).unwrap().ftl().layout().nvram_bytes();
    let mut media = MemoryMedia::new(&config.geometry, b);
    let mut rng = onefold_units::Rng::new(7);
    let (mut durable, mut issued) = (vec![0_u64; 768], vec![0_u64; 768]);
    for round in 0..12_u64 {
        let (mut ssd, rep) = Ssd::recover(config, media).unwrap();
        for page in 0..768 {
            let mut back = [0; 4096];
            if ssd.submit(Nanos::ZERO, &Command::new(Op::Read, page as u64 * 4096, 4096), Payload::Read(&mut back)).is_err() { return format!("round {round} page {page} unreadable {rep:?}"); }
            let f = word(&back) >> 16;
            if f < durable[page] || f > issued[page] { return format!("round {round} page {page} found {f} durable {} issued {} {rep:?}", durable[page], issued[page]); }
            durable[page] = f;
        }
        let writes = 200 + rng.below(1500);
        let flush_at = rng.below(writes);
        for n in 0..writes {
            let page = rng.below(768);
            issued[page as usize] += 1;
            let w = issued[page as usize] << 16 | page;
            ssd.submit(Nanos::ZERO, &Command::new(Op::Write, page * 4096, 4096), Payload::Write(&w.to_le_bytes().repeat(512))).unwrap();
            if n == flush_at { ssd.submit(Nanos::ZERO, &Command::new(Op::Flush, 0, 0), Payload::None).unwrap(); durable.clone_from(&issued); }
        }
        media = ssd.into_media();
    }
    "ok".into()
}
#[test]
fn diag() {
    for mask in 0..16 {
        let mut c = rich();
        if mask & 1 == 0 { c.ftl.metadata_pages = false; }
        if mask & 2 == 0 { c.ftl.checkpoint = 0.0; }
        if mask & 4 == 0 { c.ftl.wear_threshold = 0; }
        if mask & 8 == 0 { c.buffer.bytes = 0; }
        println!("{mask:04b} file {} \n     memory {}", file(c), memory(c));
    }
}
