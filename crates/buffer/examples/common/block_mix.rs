//! A block mix: what a store that works in files sends, beside a few hot pages.

use onefold_units::convert::low32;
use onefold_units::{Op, Rng};

use crate::zipf::Zipf;

/// One request in the form a study keeps: 12 B.
#[derive(Clone, Copy)]
pub(crate) struct Record {
    pub(crate) lpn: u32,
    pub(crate) n: u32,
    pub(crate) op: Op,
    pub(crate) tenant: u8,
}

/// `files` files of 64 MiB, each written four times in requests of 512 KiB and trimmed some time later,
/// read back once in half of the cases, with one hot single-page request for each of them. Pages
/// accessed are mostly the files'.
pub(crate) fn block_mix(files: u32) -> Vec<Record> {
    const FILE: u32 = 16_384;
    let zipf = Zipf::new(1 << 17);
    let mut rng = Rng::new(7);
    let mut out = Vec::new();
    for file in 0..4 * files {
        let start = file % files * FILE;
        if file >= files {
            out.push(Record { lpn: start, n: FILE, op: Op::Trim, tenant: 0 });
        }
        let old = low32(rng.below(u64::from(files))) * FILE;
        for at in (0..FILE).step_by(128) {
            out.push(Record { lpn: start + at, n: 128, op: Op::Write, tenant: 0 });
            if file % 2 == 0 {
                out.push(Record { lpn: old + at, n: 128, op: Op::Read, tenant: 0 });
            }
            let lpn = files * FILE + zipf.key(&mut rng);
            let op = if rng.below(20) == 0 { Op::Read } else { Op::Write };
            out.push(Record { lpn, n: 1, op, tenant: 1 });
        }
    }
    out
}
