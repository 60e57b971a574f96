//! Golden traces of the buffer specification, section 6.

use onefold_buffer::Req;
use onefold_units::convert::low32;
use onefold_units::{Lpn, Op, Rng};

use crate::common::zipf::Zipf;

/// FNV-1a-64 of 32-bit words, little-endian.
struct Fnv(u64);

impl Fnv {
    fn new() -> Self {
        Self(0xCBF2_9CE4_8422_2325)
    }

    fn add(&mut self, word: u32) {
        for byte in word.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        }
    }
}

/// Golden trace G1: the keys of 1,000,000 single-page reads.
pub(crate) fn g1() -> Vec<u32> {
    let zipf = Zipf::new(100_000);
    let mut rng = Rng::new(42);
    let keys: Vec<u32> = (0..1_000_000).map(|_| zipf.key(&mut rng)).collect();
    let mut fnv = Fnv::new();
    for key in &keys {
        fnv.add(*key);
    }
    assert_eq!(keys[..6], [12, 14_425, 3_427, 1_548, 63_099, 2]);
    assert_eq!(fnv.0, 0x57A7_DEBB_8843_AFE7, "the keys of G1 differ: see ln and exp");
    keys
}

/// Golden trace G2: requests with TRIM.
pub(crate) struct G2 {
    pub(crate) requests: Vec<Req>,
    rng: Rng,
    live: [bool; 64],
    journal: u64,
}

impl G2 {
    pub(crate) fn new() -> Self {
        let mut trace =
            Self { requests: Vec::new(), rng: Rng::new(2026), live: [false; 64], journal: 0 };
        for _ in 0..60_000 {
            trace.round();
        }
        trace.assert_is_golden();
        trace
    }

    fn emit(&mut self, op: Op, lpn: u64, n: u64) {
        self.requests.push(Req::new(op, Lpn::new(low32(lpn)), low32(n)));
    }

    fn round(&mut self) {
        match self.rng.below(100) {
            0..70 => self.small(),
            70..72 => self.file(),
            72..74 => self.append(),
            74..99 => {
                let (file, n) = (self.rng.below(64), 1 + self.rng.below(16));
                let at = self.rng.below(256 - n);
                if self.live[usize::try_from(file).unwrap()] {
                    self.emit(Op::Read, file * 256 + at, n);
                }
            }
            _ => {
                let file = self.rng.below(64);
                if self.live[usize::try_from(file).unwrap()] {
                    self.emit(Op::Write, file * 256 + 255, 1);
                }
            }
        }
    }

    fn small(&mut self) {
        let e = self.rng.below(8192);
        let e = (e * e * e) >> 26;
        let n = if self.rng.below(10) == 0 { 8 } else { 1 + self.rng.below(3) };
        let op = if self.rng.below(10) < 3 { Op::Read } else { Op::Write };
        self.emit(op, 16_384 + e.min(8192 - n), n);
    }

    fn file(&mut self) {
        let file = self.rng.below(64);
        let at = usize::try_from(file).unwrap();
        if self.live[at] {
            self.emit(Op::Trim, file * 256, 256);
        } else {
            for i in 0..8 {
                self.emit(Op::Write, file * 256 + 32 * i, 32);
            }
        }
        self.live[at] = !self.live[at];
    }

    fn append(&mut self) {
        if self.journal + 16 > 2048 {
            self.emit(Op::Trim, 24_576, 2048);
            self.journal = 0;
        }
        let from = self.journal.saturating_sub(1);
        self.emit(Op::Write, 24_576 + from, self.journal + 16 - from);
        self.journal += 16;
    }

    fn assert_is_golden(&self) {
        let mut fnv = Fnv::new();
        for r in &self.requests {
            let op = match r.op {
                Op::Read => 0,
                Op::Write => 1,
                _ => 2,
            };
            for word in [op, r.lpn.raw(), r.n] {
                fnv.add(word);
            }
        }
        assert_eq!((self.requests.len(), fnv.0), (56_383, 0xD748_EB89_FAEC_6E4A));
    }
}
