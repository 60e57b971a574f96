//! ext3 and ext4: the FS header, the journal's inode, and devices that are a journal. All numbers are little-endian.
//!
//! Source: chapters "Global Structures" and "Dynamic Structures" of the kernel's ext4 documents; zoned.md, section 7.

use crate::blocks::{Blocks, Stop, expect};
use crate::class::{Class, System};
use crate::extents::{self, Geometry};
use crate::fields::{byte, joined, le16, le32};
use crate::jbd2;
use crate::parsed::{Journal, Parsed, Tail};
use crate::ring::{Extent, Ring};

/// Where the FS header lies in the file system, and its length.
const HEADER: u64 = 1024;
const HEADER_BYTES: usize = 1024;
const MAGIC: u16 = 0xEF53;

const COMPAT_JOURNAL: u32 = 0x4;
const COMPAT_FAST_COMMIT: u32 = 0x400;
const INCOMPAT_JOURNAL_DEVICE: u32 = 0x8;
const INCOMPAT_META_BG: u32 = 0x10;
const INCOMPAT_64BIT: u32 = 0x80;
/// The backup in the FS header: 15 words of the block map, then the size of the file, high word first.
const BACKUP: usize = 0x10C;
const MAP_BYTES: usize = 60;

const NO_JOURNAL: &str = "it has no journal";
const ELSEWHERE: &str = "its journal is on another device";
const HEADER_PART: &str = "journal header";
const FAST_PART: &str = "fast-commit area of the journal";

/// The file system, if there is one.
pub(crate) fn parse(source: &mut Blocks, place: Extent) -> Result<Option<Parsed>, Stop> {
    if place.bytes < HEADER + 1024 {
        return Ok(None);
    }
    let header = source.read(place.at.saturating_add(HEADER), HEADER_BYTES)?;
    if le16(&header, 0x38) != MAGIC {
        return Ok(None);
    }
    let geometry = geometry(&header, place)?;
    if le32(&header, 0x60) & INCOMPAT_JOURNAL_DEVICE != 0 {
        return journal_device(source, &header, geometry).map(Some);
    }
    if le32(&header, 0x5C) & COMPAT_JOURNAL == 0 {
        return Ok(Some(Parsed::remark(System::Ext4, NO_JOURNAL)));
    }
    let inode = le32(&header, 0xE0);
    if inode == 0 {
        return Ok(Some(Parsed::remark(System::Ext4, ELSEWHERE)));
    }
    let by_backup = backup(source, &header, geometry);
    match by_backup {
        Ok(parsed) => return Ok(Some(parsed)),
        Err(Stop::Missing) => return Err(Stop::Missing),
        Err(Stop::Rejected(_)) => {}
    }
    by_inode(source, &header, geometry, inode).map(Some)
}

fn geometry(header: &[u8], place: Extent) -> Result<Geometry, Stop> {
    let shift = le32(header, 0x18);
    expect(shift <= 6, "its block size is above 64 KiB")?;
    let block_bytes = 1024_u32 << shift;
    let is_64bit = le32(header, 0x60) & INCOMPAT_64BIT != 0;
    let high = if is_64bit { le32(header, 0x150) } else { 0 };
    let blocks = joined(high, le32(header, 0x04));
    let bytes = blocks.checked_mul(block_bytes.into());
    expect(
        blocks > 0 && bytes.is_some_and(|bytes| bytes <= place.bytes),
        "it is larger than its place",
    )?;
    let first = le32(header, 0x14);
    expect(first == u32::from(shift == 0), "its first data block is impossible")?;
    Ok(Geometry { at: place.at, block_bytes, blocks })
}

/// The journal's inode as the FS header repeats it.
fn backup(source: &mut Blocks, header: &[u8], geometry: Geometry) -> Result<Parsed, Stop> {
    expect(byte(header, 0xFD) == 1, "it has no backup of the journal's inode")?;
    let root = &header[BACKUP..BACKUP + MAP_BYTES];
    let size = joined(le32(header, BACKUP + MAP_BYTES), le32(header, BACKUP + MAP_BYTES + 4));
    let file = File {
        root,
        size,
        is_fast: is_fast(header),
        why: "log of the journal, by the backup of its inode",
    };
    internal(source, geometry, &file)
}

/// The journal's inode where inodes lie.
fn by_inode(
    source: &mut Blocks,
    header: &[u8],
    geometry: Geometry,
    number: u32,
) -> Result<Parsed, Stop> {
    let per_group = le32(header, 0x28);
    expect(per_group > 0, "its groups have no inodes")?;
    let (group, at) = ((number - 1) / per_group, (number - 1) % per_group);
    let incompat = le32(header, 0x60);
    // With descriptors in their own groups, only the first one is where it is looked for.
    expect(group == 0 || incompat & INCOMPAT_META_BG == 0, "the inode of its journal is too far")?;
    let descriptor_bytes = match (incompat & INCOMPAT_64BIT != 0, le16(header, 0xFE)) {
        (false, _) => 32,
        (true, size) => size,
    };
    expect(
        matches!(descriptor_bytes, 32..=1024) && descriptor_bytes.is_power_of_two(),
        "its group descriptors have an impossible size",
    )?;
    let inode_bytes = if le32(header, 0x4C) == 0 { 128 } else { le16(header, 0x58) };
    expect(
        inode_bytes.is_power_of_two()
            && (128..=geometry.block_bytes).contains(&u32::from(inode_bytes)),
        "its inodes have an impossible size",
    )?;
    let table = geometry.byte_of(u64::from(le32(header, 0x14)) + 1)?;
    let descriptor = table + u64::from(group) * u64::from(descriptor_bytes);
    let descriptor = source.read(descriptor, descriptor_bytes.into())?;
    let high = if descriptor_bytes >= 64 { le32(&descriptor, 0x28) } else { 0 };
    let inodes = geometry.byte_of(joined(high, le32(&descriptor, 8)))?;
    let inode = inodes.saturating_add(u64::from(at) * u64::from(inode_bytes));
    let inode = source.read(inode, 128)?;
    let file = File {
        root: &inode[0x28..0x28 + MAP_BYTES],
        size: joined(le32(&inode, 0x6C), le32(&inode, 4)),
        is_fast: is_fast(header),
        why: "log of the journal, by its inode",
    };
    internal(source, geometry, &file)
}

/// Whether there is a fast-commit area.
fn is_fast(header: &[u8]) -> bool {
    le32(header, 0x5C) & COMPAT_FAST_COMMIT != 0
}

/// A journal that is a file.
struct File<'a> {
    root: &'a [u8],
    size: u64,
    is_fast: bool,
    why: &'static str,
}

fn internal(source: &mut Blocks, geometry: Geometry, file: &File<'_>) -> Result<Parsed, Stop> {
    let is_fast = file.is_fast;
    let blocks = file.size / u64::from(geometry.block_bytes);
    expect((2..=geometry.blocks).contains(&blocks), "its journal has an impossible size")?;
    let whole = extents::map(source, geometry, file.root, blocks)?;
    let Some(at) = whole.locate(0) else { return Err(Stop::Rejected("its journal is empty")) };
    let header = jbd2::Header::parse(&source.read(at, jbd2::HEADER_BYTES)?, is_fast)?;
    expect(header.block_bytes == geometry.block_bytes, "its journal has another block size")?;
    journal((System::Ext4, geometry.at), header, &whole, at, file.why)
}

/// A whole device that is the journal of an ext4 elsewhere. Blocks of the journal count from its beginning.
fn journal_device(
    source: &mut Blocks,
    fs_header: &[u8],
    geometry: Geometry,
) -> Result<Parsed, Stop> {
    let at = geometry.byte_of(u64::from(le32(fs_header, 0x14)) + 1)?;
    let is_fast = is_fast(fs_header);
    let header = jbd2::Header::parse(&source.read(at, jbd2::HEADER_BYTES)?, is_fast)?;
    expect(header.block_bytes == geometry.block_bytes, "its journal has another block size")?;
    let bytes = geometry.blocks.saturating_mul(geometry.block_bytes.into());
    let whole = Ring::of(Extent { at: geometry.at, bytes });
    journal((System::Jbd2, geometry.at), header, &whole, at, "log of a journal device")
}

fn journal(
    owner: (System, u64),
    header: jbd2::Header,
    whole: &Ring,
    at: u64,
    why: &'static str,
) -> Result<Parsed, Stop> {
    let parts = header.divide(whole, at)?;
    let mut parsed = Parsed::new(owner.0);
    parsed.add(Class::JournalLog, parts.log.pieces(), why);
    parsed.add(Class::JournalHot, &[parts.header], HEADER_PART);
    parsed.add(Class::JournalHot, parts.fast.pieces(), FAST_PART);
    parsed.journal = Some(Journal { owner, log: parts.log, tail: Tail::Jbd2 { header, at } });
    Ok(parsed)
}
