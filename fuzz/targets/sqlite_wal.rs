//! Recovery of an aligned WAL: any bytes are refused or give a WAL of whole frames; a WAL that is built from the input gives
//! exactly the frames up to the last commit before the first that does not belong to it.
//! The first byte is the page size and whether the WAL is paired, then comes a byte for each frame: what is wrong with it, whether it commits, what it holds.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onefold_sqlite::{Layout, standard_wal};

/// Frames of one input: two groups and a bit.
const FRAMES_MOST: usize = 350;

fuzz_target!(|data: &[u8]| {
    any(data);
    let Some((&size, frames)) = data.split_first() else { return };
    let page_bytes = 512_u32 << (size % 4);
    let layout = Layout::new(page_bytes).expect("a page size of SQLite");
    let layout = if size & 0x40 == 0 { layout } else { layout.paired() };
    let is_big_endian = size & 0x80 != 0;
    let mut built = Built::new(layout, page_bytes, is_big_endian);
    for &frame in frames.iter().take(FRAMES_MOST) {
        built.push(frame);
    }
    assert!(standard_wal(&built.aligned).expect("an aligned WAL") == built.expected());
});

fn any(data: &[u8]) {
    let Some(standard) = standard_wal(data) else { return };
    let page_bytes = u32::from_be_bytes(standard[8..12].try_into().expect("four bytes")) as usize;
    assert_eq!((standard.len() - 32) % (page_bytes + 24), 0);
    assert!(standard_wal(&standard).is_none());
}

/// An aligned WAL, and the standard one as SQLite would have written it.
struct Built {
    layout: Layout,
    is_big_endian: bool,
    aligned: Vec<u8>,
    standard: Vec<u8>,
    sums: [u32; 2],
    frames: u64,
    committed: usize,
    is_broken: bool,
}

impl Built {
    fn new(layout: Layout, page_bytes: u32, is_big_endian: bool) -> Self {
        let header = |version: u32| {
            let magic = 0x377f_0682_u32 | u32::from(is_big_endian);
            let words = [magic, version, page_bytes, 7, 0x1234_5678, 0x9abc_def0];
            let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
            let sums = checksum(is_big_endian, [0, 0], &bytes);
            bytes.extend(sums.iter().flat_map(|sum| sum.to_be_bytes()));
            (bytes, sums)
        };
        let (standard, sums) = header(3_007_000);
        let (mut aligned, _) = header(0x4f46_5731 + u32::from(layout.is_paired()));
        aligned.resize(4096, 0);
        let committed = standard.len();
        let (frames, is_broken) = (0, false);
        Self { layout, is_big_endian, aligned, standard, sums, frames, committed, is_broken }
    }

    fn push(&mut self, kind: u8) {
        let page = vec![kind; self.layout.page_bytes() as usize];
        let (is_commit, wrong) = (kind & 1 == 1, kind >> 5);
        let number: u32 = if wrong == 1 { 0 } else { u32::from(kind) + 1 };
        let mut head = [number, u32::from(is_commit) * 9].map(u32::to_be_bytes).concat();
        let sums = checksum(self.is_big_endian, self.sums, &head);
        let mut sums = checksum(self.is_big_endian, sums, &page);
        let salt: u32 = if wrong == 2 { 1 } else { 0x1234_5678 };
        head.extend([salt, 0x9abc_def0].map(u32::to_be_bytes).concat());
        sums[1] ^= u32::from(wrong == 3);
        head.extend(sums.map(u32::to_be_bytes).concat());
        self.is_broken |= (1..=3).contains(&wrong);
        self.sums = sums;
        self.standard.extend_from_slice(&head);
        self.standard.extend_from_slice(&page);
        if is_commit && !self.is_broken {
            self.committed = self.standard.len();
        }
        self.put(self.layout.header_at(self.frames), &head);
        self.put(self.layout.page_at(self.frames), &page);
        self.frames += 1;
    }

    fn put(&mut self, at: u64, bytes: &[u8]) {
        let (from, to) = (at as usize, at as usize + bytes.len());
        if self.aligned.len() < to {
            self.aligned.resize(to, 0);
        }
        self.aligned[from..to].copy_from_slice(bytes);
    }

    fn expected(&self) -> &[u8] {
        &self.standard[..self.committed]
    }
}

/// The checksum of the SQLite file format, section 4.2.
fn checksum(is_big_endian: bool, [mut a, mut b]: [u32; 2], bytes: &[u8]) -> [u32; 2] {
    for pair in bytes.chunks_exact(8) {
        let word = |at: usize| {
            let bytes: [u8; 4] = pair[at..at + 4].try_into().expect("four bytes");
            if is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
        };
        a = a.wrapping_add(word(0)).wrapping_add(b);
        b = b.wrapping_add(word(4)).wrapping_add(a);
    }
    [a, b]
}
