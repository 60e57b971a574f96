//! A log of writes as the target dm-log-writes of Linux keeps it (log-writes.rst of the kernel's documentation, section "Log Ordering";
//! the structures are those of drivers/md/dm-log-writes.c), so that the tools made for it read ours, and we read its.
//!
//! All sizes count sectors of the length that the first one tells.
//!
//! | where | content |
//! |---|---|
//! | sector 0 | magic 8, version 8, entries 8, bytes of a sector 4 |
//! | sector 1 and on, for each entry | one sector: sector 8, sectors 8, flags 8, bytes of the text 8, the text of a mark, zeroes; then, unless it is a discard, that many sectors of data |
//!
//! Nothing has a checksum. What a later flush made durable is in the log, in the order in which it completed; the flush follows it.

use thiserror::Error;

use crate::bytes::{Reader, Writer};

/// First bytes of a log.
pub const WRITE_LOG_MAGIC: u64 = 0x006A_7366_7773_6872;
/// The only version there is.
pub const WRITE_LOG_VERSION: u64 = 1;
/// Bytes of an entry before the text of a mark.
pub const WRITE_LOG_ENTRY_BYTES: usize = 32;
/// Bytes of the first sector that say something.
pub const WRITE_LOG_SUPER_BYTES: usize = 28;
/// Bytes of a sector, at least and at most.
const SECTOR_BYTES: std::ops::RangeInclusive<u32> = 512..=65_536;

const FLUSH: u64 = 1;
const FUA: u64 = 1 << 1;
const DISCARD: u64 = 1 << 2;
const MARK: u64 = 1 << 3;
const METADATA: u64 = 1 << 4;
const NAMES: [(u64, &str); 5] =
    [(FLUSH, "flush"), (FUA, "fua"), (DISCARD, "discard"), (MARK, "mark"), (METADATA, "metadata")];

/// Why a log cannot be used. Where in it, whoever reads knows.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteLogDamage {
    /// The record ends early.
    #[error("it ends early")]
    Short,
    /// It begins with something else.
    #[error("it begins with {0:#x}, expected {WRITE_LOG_MAGIC:#x}: it is no log of dm-log-writes")]
    Magic(u64),
    /// It has another version.
    #[error("it has version {0}, expected {WRITE_LOG_VERSION}")]
    Version(u64),
    /// Its sectors have a length that no device has.
    #[error("its sectors have {0} bytes, expected a power of two from 512 to 65536")]
    SectorBytes(u32),
    /// Flags that do not exist.
    #[error("its flags are {0:#x}, expected some of 0x1f")]
    Flags(u64),
    /// A write of nothing.
    #[error("it is no flush and no mark, and has no sectors")]
    Empty,
    /// The text of a mark does not fit.
    #[error("its text has {found} bytes, expected at most {most}")]
    Text {
        /// Bytes.
        found: u64,
        /// What a sector has room for.
        most: u64,
    },
    /// The range ends beyond what 64 bits count.
    #[error("it is about {sectors} sectors from {sector} on, which no device has")]
    Range {
        /// The first one.
        sector: u64,
        /// How many.
        sectors: u64,
    },
}

/// The first sector of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteLogSuper {
    /// Entries that count.
    pub entries: u64,
    /// Bytes of a sector.
    pub sector_bytes: u32,
}

impl WriteLogSuper {
    /// What the sector begins with; zeroes follow.
    #[must_use]
    pub fn encode(&self) -> [u8; WRITE_LOG_SUPER_BYTES] {
        let mut bytes = [0; WRITE_LOG_SUPER_BYTES];
        let mut writer = Writer::new(&mut bytes);
        for word in [WRITE_LOG_MAGIC, WRITE_LOG_VERSION, self.entries] {
            writer.uint(word, 8);
        }
        writer.uint(self.sector_bytes.into(), 4);
        bytes
    }

    /// Reads the beginning of a log.
    ///
    /// # Errors
    /// It is none, or none that can be read.
    pub fn decode(bytes: &[u8]) -> Result<Self, WriteLogDamage> {
        let mut reader = Reader::new(bytes);
        let mut word = || reader.uint(8).ok_or(WriteLogDamage::Short);
        let (magic, version, entries) = (word()?, word()?, word()?);
        if magic != WRITE_LOG_MAGIC {
            return Err(WriteLogDamage::Magic(magic));
        }
        if version != WRITE_LOG_VERSION {
            return Err(WriteLogDamage::Version(version));
        }
        let sector_bytes = reader.u32().ok_or(WriteLogDamage::Short)?;
        if !SECTOR_BYTES.contains(&sector_bytes) || !sector_bytes.is_power_of_two() {
            return Err(WriteLogDamage::SectorBytes(sector_bytes));
        }
        Ok(Self { entries, sector_bytes })
    }
}

/// What an entry is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteLogEntry {
    /// First sector of the device; 0 where there is none.
    pub sector: u64,
    /// How many.
    pub sectors: u64,
    /// See the constants.
    flags: u64,
    /// Bytes of the text of a mark. Entries of data that came without a request have their length here as well.
    data_len: u64,
}

impl WriteLogEntry {
    /// Data was written; it follows the entry.
    #[must_use]
    pub const fn write(sector: u64, sectors: u64) -> Self {
        Self { sector, sectors, flags: 0, data_len: 0 }
    }

    /// The same entry, durable when it was answered.
    #[must_use]
    pub const fn with_fua(self) -> Self {
        Self { flags: self.flags | FUA, ..self }
    }

    /// All entries before this one are durable.
    pub const FLUSH: Self = Self { sector: 0, sectors: 0, flags: FLUSH, data_len: 0 };

    /// A range holds nothing any more.
    #[must_use]
    pub const fn discard(sector: u64, sectors: u64) -> Self {
        Self { sector, sectors, flags: DISCARD, data_len: 0 }
    }

    /// Somebody wants to find this place again. `None` if the text has no room in a sector with a zero behind it.
    #[must_use]
    pub fn mark(text: &str, sector_bytes: u32) -> Option<Self> {
        let data_len = onefold_units::convert::u64_from(text.len());
        let fits = data_len < text_max(sector_bytes);
        fits.then_some(Self { sector: 0, sectors: 0, flags: MARK, data_len })
    }

    /// Whether the entries before it are durable because of it.
    #[must_use]
    pub const fn is_flush(&self) -> bool {
        self.flags & FLUSH != 0
    }

    /// Whether it was durable when it completed.
    #[must_use]
    pub const fn is_fua(&self) -> bool {
        self.flags & FUA != 0
    }

    /// Whether it has a range but no data.
    #[must_use]
    pub const fn is_discard(&self) -> bool {
        self.flags & DISCARD != 0
    }

    /// Whether it has a text.
    #[must_use]
    pub const fn is_mark(&self) -> bool {
        self.flags & MARK != 0
    }

    /// Names of its flags; none for a mere write.
    pub fn flag_names(&self) -> impl Iterator<Item = &'static str> {
        let flags = self.flags;
        NAMES.into_iter().filter(move |(flag, _)| flags & flag != 0).map(|(_, name)| name)
    }

    /// Bytes of the text behind the entry, in its sector.
    #[must_use]
    pub const fn text_bytes(&self) -> u64 {
        if self.is_mark() { self.data_len } else { 0 }
    }

    /// Sectors of data behind the entry.
    #[must_use]
    pub const fn data_sectors(&self) -> u64 {
        if self.is_discard() { 0 } else { self.sectors }
    }

    /// What the sector of the entry begins with; the text of a mark and zeroes follow.
    #[must_use]
    pub fn encode(&self) -> [u8; WRITE_LOG_ENTRY_BYTES] {
        let mut bytes = [0; WRITE_LOG_ENTRY_BYTES];
        let mut writer = Writer::new(&mut bytes);
        for word in [self.sector, self.sectors, self.flags, self.data_len] {
            writer.uint(word, 8);
        }
        bytes
    }

    /// Reads an entry of a log. Its range then ends below 2^63 bytes.
    ///
    /// # Errors
    /// It cannot be one.
    pub fn decode(bytes: &[u8], sector_bytes: u32) -> Result<Self, WriteLogDamage> {
        let mut reader = Reader::new(bytes);
        let mut word = || reader.uint(8).ok_or(WriteLogDamage::Short);
        let entry = Self { sector: word()?, sectors: word()?, flags: word()?, data_len: word()? };
        let Self { sector, sectors, flags, data_len } = entry;
        if flags & !(FLUSH | FUA | DISCARD | MARK | METADATA) != 0 {
            return Err(WriteLogDamage::Flags(flags));
        }
        if flags & (FLUSH | MARK) == 0 && sectors == 0 {
            return Err(WriteLogDamage::Empty);
        }
        if entry.text_bytes() > text_max(sector_bytes) {
            return Err(WriteLogDamage::Text { found: data_len, most: text_max(sector_bytes) });
        }
        let end = sector.checked_add(sectors).and_then(|end| end.checked_mul(sector_bytes.into()));
        if end.is_none_or(|end| end > u64::MAX / 2) {
            return Err(WriteLogDamage::Range { sector, sectors });
        }
        Ok(entry)
    }
}

/// Bytes that a sector has behind an entry.
fn text_max(sector_bytes: u32) -> u64 {
    u64::from(sector_bytes) - onefold_units::convert::u64_from(WRITE_LOG_ENTRY_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of the first sector, by hand from the structures of the kernel.
    const SUPER: [u8; 28] = [
        0x72, 0x68, 0x73, 0x77, 0x66, 0x73, 0x6A, 0, // magic
        1, 0, 0, 0, 0, 0, 0, 0, // version
        5, 1, 0, 0, 0, 0, 0, 0, // entries
        0, 2, 0, 0, // bytes of a sector
    ];

    #[test]
    fn golden_super() {
        let first = WriteLogSuper { entries: 0x105, sector_bytes: 512 };
        assert_eq!(first.encode(), SUPER);
        assert_eq!(WriteLogSuper::decode(&SUPER), Ok(first));
        assert_eq!(WriteLogSuper::decode(&SUPER[..27]), Err(WriteLogDamage::Short));
        let with = |at: usize, byte: u8| {
            let mut bytes = SUPER;
            bytes[at] = byte;
            WriteLogSuper::decode(&bytes)
        };
        assert_eq!(with(0, 0), Err(WriteLogDamage::Magic(0x006A_7366_7773_6800)));
        assert_eq!(with(8, 2), Err(WriteLogDamage::Version(2)));
        assert_eq!(with(25, 1), Err(WriteLogDamage::SectorBytes(256)));
        assert_eq!(with(25, 3), Err(WriteLogDamage::SectorBytes(768)));
        assert_eq!(with(26, 2), Err(WriteLogDamage::SectorBytes(0x2_0200)));
        assert_eq!(with(27, 1).unwrap_err(), WriteLogDamage::SectorBytes(0x0100_0200));
    }

    fn words(words: [u64; 4]) -> Vec<u8> {
        words.into_iter().flat_map(u64::to_le_bytes).collect()
    }

    #[test]
    fn golden_entries() {
        let mark = WriteLogEntry::mark("proof", 512).unwrap();
        for (entry, bytes, names) in [
            (WriteLogEntry::write(0x1122, 8), words([0x1122, 8, 0, 0]), vec![]),
            (WriteLogEntry::FLUSH, words([0, 0, 1, 0]), vec!["flush"]),
            (WriteLogEntry::discard(3, 9), words([3, 9, 4, 0]), vec!["discard"]),
            (mark, words([0, 0, 8, 5]), vec!["mark"]),
        ] {
            assert_eq!(entry.encode()[..], bytes);
            assert_eq!(WriteLogEntry::decode(&bytes, 512), Ok(entry));
            assert_eq!(entry.flag_names().collect::<Vec<_>>(), names);
        }
        assert_eq!(WriteLogEntry::discard(3, 9).data_sectors(), 0);
        assert_eq!(WriteLogEntry::write(3, 9).data_sectors(), 9);
        // What the kernel also writes: data with FUA, a flush before it, metadata.
        let all = WriteLogEntry::decode(&words([7, 1, 0x13, 0]), 4096).unwrap();
        assert!(all.is_flush() && all.is_fua() && !all.is_discard() && !all.is_mark());
        assert_eq!(all.flag_names().collect::<Vec<_>>(), ["flush", "fua", "metadata"]);
    }

    #[test]
    fn what_cannot_be_an_entry_is_refused() {
        let decode = |entry: [u64; 4]| WriteLogEntry::decode(&words(entry), 512).unwrap_err();
        assert_eq!(decode([0, 1, 0x20, 0]), WriteLogDamage::Flags(0x20));
        assert_eq!(decode([0, 0, 0, 0]), WriteLogDamage::Empty);
        assert_eq!(decode([9, 0, 4, 0]), WriteLogDamage::Empty);
        assert_eq!(decode([0, 0, 8, 481]), WriteLogDamage::Text { found: 481, most: 480 });
        for (sector, sectors) in [(u64::MAX, 1), (1, u64::MAX), (u64::MAX / 512, 1), (1 << 54, 0)] {
            let refused = decode([sector, sectors, 1, 0]);
            assert_eq!(refused, WriteLogDamage::Range { sector, sectors });
        }
        assert_eq!(WriteLogEntry::decode(&[0; 31], 512), Err(WriteLogDamage::Short));
        assert_eq!(WriteLogEntry::mark(&"x".repeat(480), 512), None);
        assert!(WriteLogEntry::mark(&"x".repeat(479), 512).is_some());
    }
}
