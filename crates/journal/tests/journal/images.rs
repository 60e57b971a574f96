//! Disks with the least of a file system that a reading looks at.

use std::collections::BTreeMap;

use onefold_journal::{Found, Survey};
use onefold_units::Lba;

pub(crate) type Block = [u8; 4096];

/// A device of which only blocks that were written are kept.
#[derive(Clone, Default)]
pub(crate) struct Disk {
    pub(crate) blocks: u64,
    pub(crate) kept: BTreeMap<u64, Block>,
}

impl Disk {
    pub(crate) fn new(blocks: u64) -> Self {
        Self { blocks, kept: BTreeMap::new() }
    }

    pub(crate) fn read(&self, lba: Lba) -> Block {
        self.kept.get(&lba.raw()).copied().unwrap_or([0; 4096])
    }

    pub(crate) fn write(&mut self, at: u64, bytes: &[u8]) {
        for (n, byte) in bytes.iter().enumerate() {
            let at = at + n as u64;
            self.kept.entry(at / 4096).or_insert([0; 4096])[(at % 4096) as usize] = *byte;
        }
    }

    pub(crate) fn le16(&mut self, at: u64, value: u16) {
        self.write(at, &value.to_le_bytes());
    }

    pub(crate) fn le32(&mut self, at: u64, value: u32) {
        self.write(at, &value.to_le_bytes());
    }

    pub(crate) fn le64(&mut self, at: u64, value: u64) {
        self.write(at, &value.to_le_bytes());
    }

    pub(crate) fn be32(&mut self, at: u64, value: u32) {
        self.write(at, &value.to_be_bytes());
    }

    /// What a reading finds; it asks for no block twice.
    pub(crate) fn survey(&self) -> Found {
        let mut survey = Survey::new(self.blocks);
        let mut asked = 0;
        while let Some(lba) = survey.ask() {
            assert!(lba.raw() < self.blocks, "{lba:?} is behind the device");
            asked += 1;
            survey.supply(lba, Some(&self.read(lba)));
        }
        assert!(asked <= onefold_journal::READS_MAX);
        let found = survey.finish().unwrap();
        assert_eq!(found.read_from.len(), asked);
        found
    }
}

/// An ext4 whose journal is described by the backup in its header.
#[derive(Clone, Copy)]
pub(crate) struct Ext4 {
    /// Byte where it begins.
    pub(crate) at: u64,
    pub(crate) block_bytes: u64,
    pub(crate) blocks: u32,
    /// First block and length of the journal.
    pub(crate) journal: (u32, u32),
    /// Blocks of the fast-commit area.
    pub(crate) fast: u32,
    /// Tail of the log.
    pub(crate) start: u32,
}

/// 64 MiB with a journal of 4 MiB at block 1000.
pub(crate) const EXT4: Ext4 =
    Ext4 { at: 0, block_bytes: 4096, blocks: 16384, journal: (1000, 1024), fast: 0, start: 0 };

impl Ext4 {
    pub(crate) fn header(&self) -> u64 {
        self.at + 1024
    }

    /// Byte of the journal header.
    pub(crate) fn journal_header(&self) -> u64 {
        self.at + u64::from(self.journal.0) * self.block_bytes
    }

    pub(crate) fn make(&self, disk: &mut Disk) {
        let header = self.header();
        disk.le16(header + 0x38, 0xEF53);
        disk.le32(header + 0x04, self.blocks);
        disk.le32(header + 0x14, u32::from(self.block_bytes == 1024));
        disk.le32(header + 0x18, (self.block_bytes / 1024).trailing_zeros());
        disk.le32(header + 0x28, 1024);
        disk.le32(header + 0x4C, 1);
        disk.le16(header + 0x58, 256);
        disk.le32(header + 0x5C, 0x4);
        disk.le32(header + 0xE0, 8);
        disk.write(header + 0xFD, &[1]);
        self.extents(disk, header + 0x10C);
        disk.le32(header + 0x14C + 4 - 4, self.journal.1 * self.block_bytes as u32);
        self.write_journal_header(disk);
    }

    /// The map of the journal as one extent.
    pub(crate) fn extents(&self, disk: &mut Disk, at: u64) {
        for (offset, value) in [(0, 0xF30A), (2, 1), (4, 4), (6, 0)] {
            disk.le16(at + offset, value);
        }
        disk.le32(at + 12, 0);
        disk.le16(at + 16, self.journal.1 as u16);
        disk.le16(at + 18, 0);
        disk.le32(at + 20, self.journal.0);
    }

    pub(crate) fn write_journal_header(&self, disk: &mut Disk) {
        disk.write(self.journal_header(), &self.journal_block());
    }

    /// What the journal header holds.
    pub(crate) fn journal_block(&self) -> Vec<u8> {
        let mut block = vec![0; self.block_bytes as usize];
        let features = if self.fast > 0 { 0x20 } else { 0 };
        let fields = [
            (0, 0xC03B_3998),
            (4, 4),
            (0xC, self.block_bytes as u32),
            (0x10, self.journal.1),
            (0x14, 1),
            (0x18, 7),
            (0x1C, self.start),
            (0x28, features),
            (0x54, self.fast),
        ];
        for (at, value) in fields {
            block[at..at + 4].copy_from_slice(&value.to_be_bytes());
        }
        block
    }
}

/// An XFS of 8 groups of 2,048 blocks of 4 KiB whose log has 512 blocks in group 4.
pub(crate) fn xfs(disk: &mut Disk, at: u64) {
    disk.write(at, b"XFSB");
    disk.be32(at + 4, 4096);
    disk.write(at + 8, &(8 * 2000_u64).to_be_bytes());
    disk.write(at + 48, &(4_u64 * 2048 + 10).to_be_bytes());
    disk.be32(at + 84, 2000);
    disk.be32(at + 88, 8);
    disk.be32(at + 96, 512);
    disk.write(at + 124, &[11]);
}

/// The header of an F2FS of 64 MiB.
pub(crate) fn f2fs_header(disk: &mut Disk, at: u64) {
    disk.le32(at, 0xF2F5_2010);
    disk.le32(at + 16, 12);
    disk.le32(at + 20, 9);
    disk.le64(at + 36, 16384);
    for (n, count) in [2, 2, 2, 1].into_iter().enumerate() {
        disk.le32(at + 52 + 4 * n as u64, count);
    }
    for (n, first) in [512, 1536, 2560, 3584, 4096].into_iter().enumerate() {
        disk.le32(at + 76 + 4 * n as u64, first);
    }
}

/// The first header of a btrfs of 128 MiB.
pub(crate) fn btrfs(disk: &mut Disk, at: u64) {
    let header = at + 65536;
    disk.le64(header + 48, 65536);
    disk.write(header + 64, b"_BHRfS_M");
    disk.le32(header + 148, 16384);
    disk.le64(header + 0xC9 + 8, 128 << 20);
}

/// A GPT in units of 512 B with partitions from the first to the last unit of each.
pub(crate) fn gpt(disk: &mut Disk, partitions: &[(u64, u64)]) {
    disk.write(510, &[0x55, 0xAA]);
    disk.write(446 + 4, &[0xEE]);
    disk.le32(446 + 8, 1);
    disk.le32(446 + 12, u32::MAX);
    let mut entries = vec![0_u8; 128 * 128];
    for (n, (first, last)) in partitions.iter().enumerate() {
        let entry = &mut entries[128 * n..][..128];
        entry[..16].fill(0x11);
        entry[32..40].copy_from_slice(&first.to_le_bytes());
        entry[40..48].copy_from_slice(&last.to_le_bytes());
    }
    let mut header = vec![0_u8; 92];
    header[..8].copy_from_slice(b"EFI PART");
    header[12..16].copy_from_slice(&92_u32.to_le_bytes());
    header[72..80].copy_from_slice(&2_u64.to_le_bytes());
    header[80..84].copy_from_slice(&128_u32.to_le_bytes());
    header[84..88].copy_from_slice(&128_u32.to_le_bytes());
    header[88..92].copy_from_slice(&crc32(&entries).to_le_bytes());
    let sum = crc32(&header);
    header[16..20].copy_from_slice(&sum.to_le_bytes());
    disk.write(512, &header);
    disk.write(1024, &entries);
}

/// An entry of an MBR or of a link in a chain of extended partitions, in units of 512 B.
pub(crate) fn mbr_entry(disk: &mut Disk, at: u64, number: u64, kind: u8, first: u32, count: u32) {
    let entry = at + 446 + 16 * number;
    disk.write(at + 510, &[0x55, 0xAA]);
    disk.write(entry + 4, &[kind]);
    disk.le32(entry + 8, first);
    disk.le32(entry + 12, count);
}

/// CRC-32 of Ethernet, by the check value of the catalogue: `crc32("123456789")` is 0xCBF43926.
fn crc32(bytes: &[u8]) -> u32 {
    let table: Vec<u32> = (0..256_u32)
        .map(|n| (0..8).fold(n, |c, _| if c & 1 == 1 { c >> 1 ^ 0xEDB8_8320 } else { c >> 1 }))
        .collect();
    assert_eq!(table[1], 0x7707_3096);
    !bytes
        .iter()
        .fold(u32::MAX, |crc, byte| crc >> 8 ^ table[((crc ^ u32::from(*byte)) & 0xFF) as usize])
}
