//! The flash array in a file against the one in memory, and what the file looks like on the way.

use std::fs;

use crate::common::{Folder, TEXT, plain};
use onefold_device::{Access, FileMedia, Held, Image};
use onefold_nand::{
    ERASED_HEAD, ERASED_SPARE, Geometry, Media, MediaError, MemoryMedia, SPARE_BYTES, Spare,
};
use onefold_units::SuperblockId;
use onefold_units::convert::{index, index64, low8};
use proptest::prelude::*;

struct Fixture {
    folder: Folder,
    image: Image,
    geometry: Geometry,
}

impl Fixture {
    fn new() -> Self {
        let folder = Folder::new(&plain());
        let image = Image::open(&folder.path(), Access::Exclusive).unwrap();
        Self { folder, image, geometry: plain().geometry }
    }

    fn media(&self) -> FileMedia {
        FileMedia::new(&self.image, self.geometry)
    }

    /// Head, spare areas and data of a superblock as they are in the file, at the offsets that
    /// docs/spec.md gives.
    fn in_file(&self, superblock: usize) -> [Vec<u8>; 3] {
        let file = fs::read(self.folder.path()).unwrap();
        let label = self.image.label();
        let (superblocks, slots) = (index(label.superblocks), index(label.slots));
        let heads = (131_072 + index64(label.nvram_bytes)).next_multiple_of(4096);
        let spares = (heads + superblocks * 64).next_multiple_of(4096);
        let data = (spares + superblocks * slots * 24).next_multiple_of(1 << 20);
        let part = |from: usize, len: usize| file[from + superblock * len..][..len].to_vec();
        [part(heads, 64), part(spares, slots * 24), part(data, slots * 4096)]
    }

    fn is_blank(&self, superblock: usize) -> [bool; 3] {
        self.in_file(superblock).map(|bytes| bytes.iter().all(|byte| *byte == 0))
    }
}

const A: SuperblockId = SuperblockId::new(1);

fn program_all(media: &mut FileMedia, geometry: &Geometry) {
    media.program_head(A, &[9; 64]).unwrap();
    for slot in 0..geometry.slots() {
        media.program(geometry.ppn(A, slot), &[[7; SPARE_BYTES]], &[8; 4096]).unwrap();
    }
    media.sync().unwrap();
}

/// If the host loses power, an erase must not be in the file without the copies made before it, nor
/// half of it without the rest being ignored.
#[test]
fn an_erase_reaches_the_file_head_first_and_after_synchronisations() {
    let fixture = Fixture::new();
    let mut media = fixture.media();
    program_all(&mut media, &fixture.geometry);
    assert_eq!(fixture.is_blank(1), [false; 3]);
    media.erase(A).unwrap();
    assert_eq!(fixture.is_blank(1), [false; 3]);
    assert_eq!(media.read_head(A), Ok(ERASED_HEAD));
    assert!(media.read_spares(A).unwrap().iter().all(|spare| *spare == ERASED_SPARE));
    let mut data = [1; 4096];
    assert_eq!(media.read(fixture.geometry.ppn(A, 3), &mut data), Ok(ERASED_SPARE));
    assert_eq!(data, [0; 4096]);
    media.sync().unwrap();
    assert_eq!(fixture.is_blank(1), [true, false, false]);
    media.sync().unwrap();
    assert_eq!(fixture.is_blank(1), [true, true, false], "data without spare areas stays");
    assert_eq!(fixture.is_blank(0), [true; 3]);
}

#[test]
fn programming_waits_for_the_erase() {
    let fixture = Fixture::new();
    let mut media = fixture.media();
    program_all(&mut media, &fixture.geometry);
    media.erase(A).unwrap();
    media.program_head(A, &[5; 64]).unwrap();
    let [head, spares, _] = fixture.in_file(1);
    assert_eq!(head, [5; 64]);
    assert!(spares.iter().all(|byte| *byte == 0));
    assert_eq!(media.read_head(A), Ok([5; 64]));
}

#[test]
fn nvram_ends_where_the_label_says() {
    let fixture = Fixture::new();
    let mut media = fixture.media();
    let end = fixture.image.label().nvram_bytes;
    media.nvram_write(end - 8, &[3; 8]).unwrap();
    let mut back = [0; 8];
    media.nvram_read(end - 8, &mut back).unwrap();
    assert_eq!(back, [3; 8]);
    for offset in [end - 7, end, u64::MAX - 3] {
        assert_eq!(media.nvram_write(offset, &[3; 8]), Err(MediaError::Unreadable));
        assert_eq!(media.nvram_read(offset, &mut back), Err(MediaError::Unreadable));
    }
    assert_eq!(fixture.is_blank(0), [true; 3]);
}

/// A file opened for reading refuses writes: what a full or broken disk does, too. The array goes on in memory, and the
/// file gets nothing out of order.
#[test]
fn what_the_file_does_not_take_waits_and_is_read_from_memory() {
    let folder = Folder::new(&plain());
    let image = Image::open(&folder.path(), Access::ReadOnly).unwrap();
    let mut media = FileMedia::new(&image, plain().geometry);
    assert_eq!(media.drain(), Ok(()));
    media.program_head(A, &[1; 64]).unwrap();
    let held = Held::Refused(9);
    assert_eq!((media.held(), media.is_held_up()), (Some(held), true));
    media.program(plain().geometry.ppn(A, 0), &[[7; SPARE_BYTES]], &[8; 4096]).unwrap();
    media.sync().unwrap();
    let mut data = [0; 4096];
    assert_eq!(media.read_head(A), Ok([1; 64]));
    assert_eq!(media.read(plain().geometry.ppn(A, 0), &mut data), Ok([7; SPARE_BYTES]));
    assert_eq!((data, media.drain()), ([8; 4096], Err(held)));
    media.erase(A).unwrap();
    assert_eq!(media.read_head(A), Ok(ERASED_HEAD));
}

#[derive(Clone, Debug)]
enum Step {
    Program { superblock: u32, count: u32, byte: u8, with_data: bool },
    Erase { superblock: u32 },
    Nvram { offset: u64, byte: u8 },
    Sync,
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let superblock = 0_u32..4;
    prop_oneof![
        8 => (superblock.clone(), 1_u32..40, 1_u8..255, any::<bool>()).prop_map(
            |(superblock, count, byte, with_data)| Step::Program {
                superblock, count, byte, with_data
            }),
        3 => superblock.prop_map(|superblock| Step::Erase { superblock }),
        2 => (0_u64..4000, any::<u8>()).prop_map(|(offset, byte)| Step::Nvram { offset, byte }),
        2 => Just(Step::Sync),
        1 => Just(Step::Reopen),
    ]
}

fn same(file: &mut FileMedia, memory: &mut MemoryMedia, geometry: &Geometry) {
    for superblock in (0..4).map(SuperblockId::new) {
        assert_eq!(file.read_head(superblock), memory.read_head(superblock));
        assert_eq!(file.read_spares(superblock), memory.read_spares(superblock));
        for slot in 0..geometry.slots() {
            let ppn = geometry.ppn(superblock, slot);
            let (mut a, mut b) = ([1; 4096], [2; 4096]);
            assert_eq!(file.read(ppn, &mut a), memory.read(ppn, &mut b));
            assert!(a == b, "{superblock:?} slot {slot}");
        }
    }
    let (mut a, mut b) = ([1; 4096], [2; 4096]);
    file.nvram_read(0, &mut a).unwrap();
    memory.nvram_read(0, &mut b).unwrap();
    assert!(a == b, "nvram");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn file_and_memory_hold_the_same(steps in prop::collection::vec(step(), 1..60)) {
        let fixture = Fixture::new();
        let geometry = fixture.geometry;
        let mut file = fixture.media();
        let mut memory = MemoryMedia::new(&geometry, fixture.image.label().nvram_bytes);
        let mut next = [0; 4];
        for step in steps {
            match step {
                Step::Program { superblock, count, byte, with_data } => {
                    let at = &mut next[index(superblock)];
                    let count = count.min(geometry.slots() - *at);
                    if *at == 0 {
                        for media in [&mut file as &mut dyn Heads, &mut memory] {
                            media.head(SuperblockId::new(superblock), byte);
                        }
                    }
                    let spares: Vec<Spare> =
                        (0..count).map(|n| [byte ^ low8(n.into()) | 1; SPARE_BYTES]).collect();
                    let data = vec![byte; if with_data { index(count) * 4096 } else { 0 }];
                    let ppn = geometry.ppn(SuperblockId::new(superblock), *at);
                    file.program(ppn, &spares, &data).unwrap();
                    memory.program(ppn, &spares, &data).unwrap();
                    *at += count;
                }
                Step::Erase { superblock } => {
                    next[index(superblock)] = 0;
                    file.erase(SuperblockId::new(superblock)).unwrap();
                    memory.erase(SuperblockId::new(superblock)).unwrap();
                }
                Step::Nvram { offset, byte } => {
                    file.nvram_write(offset, &[byte; 48]).unwrap();
                    memory.nvram_write(offset, &[byte; 48]).unwrap();
                }
                Step::Sync => file.sync().unwrap(),
                Step::Reopen => {
                    // Erases that were not finished are not in the file.
                    file.sync().unwrap();
                    file.sync().unwrap();
                    drop(file);
                    file = fixture.media();
                }
            }
        }
        same(&mut file, &mut memory, &geometry);
    }
}

/// Both media as one type.
trait Heads {
    fn head(&mut self, superblock: SuperblockId, byte: u8);
}

impl<M: Media> Heads for M {
    fn head(&mut self, superblock: SuperblockId, byte: u8) {
        self.program_head(superblock, &[byte; 64]).unwrap();
    }
}

#[test]
fn the_label_text_is_kept() {
    assert_eq!(Fixture::new().image.label().config, TEXT);
}
