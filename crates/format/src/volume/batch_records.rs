//! Records of a batch header, one for each block of the batch, and trims behind them.
//!
//! Behind the records of blocks that the host wrote those of blocks that cleaning moved may follow, which are there in place of padding.
//!
//! Data, 12 B: LBA 5 | birth 3 | crc 4. Clean, 16 B: LBA 5 | birth 3 | crc 4 | source 4. Meta, 12 B:
//! object 5 | kind 1 | 0 2 | crc 4. Trim, 16 B: LBA 5 | birth 3 | blocks 8.

use onefold_units::convert::{low8, low32, low64};
use onefold_units::{Lba, Location};

use super::BlockError;
use super::coded::coded;
use super::fields::{LBA_LIMIT, pack, pack_version, unpack_version};
use super::kind::BLOCK_BYTES;

/// Bytes of the fixed part of a batch header.
pub(super) const FIXED_BYTES: usize = 96;

coded! {
    /// What the blocks of a batch are.
    BatchRecords {
        /// Blocks that the host wrote, with [`DataRecord`]s.
        Data = 1,
        /// Blocks that cleaning moved, with [`CleanRecord`]s.
        Clean = 2,
        /// Metadata, with [`MetaRecord`]s.
        Meta = 3,
    }
}

impl BatchRecords {
    /// Records, and so blocks, of one batch at most.
    #[must_use]
    pub const fn max(self) -> usize {
        match self {
            Self::Data | Self::Meta => 255,
            Self::Clean => 250,
        }
    }

    pub(super) const fn record_bytes(self) -> usize {
        match self {
            Self::Data => DataRecord::BYTES,
            Self::Clean => CleanRecord::BYTES,
            Self::Meta => MetaRecord::BYTES,
        }
    }
}

coded! {
    /// What a block of a batch of metadata is.
    MetaKind {
        /// A page of locations; the object is its number.
        Page = 1,
        /// A page of checksums; the object is its number.
        Sums = 2,
        /// A directory block; the object is its index.
        Directory = 3,
        /// A run block; the object is the number of the run.
        Run = 4,
        /// A block of the index of a run; the object is the number of the run.
        RunIndex = 5,
        /// A piece of the body; the object is its index.
        Body = 6,
    }
}

/// A block that the host wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataRecord {
    /// Which block of the logical device.
    pub lba: Lba,
    /// Branch that wrote it, 24 bits.
    pub birth: u32,
    /// CRC-32C of its data.
    pub crc: u32,
}

/// A block that cleaning moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CleanRecord {
    /// Which block of the logical device.
    pub lba: Lba,
    /// Branch that wrote it, 24 bits.
    pub birth: u32,
    /// CRC-32C of its data, as the host wrote it.
    pub crc: u32,
    /// Where it was: the move counts only for a mapping that leads there.
    pub source: Location,
}

/// A block of metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetaRecord {
    /// Which of its kind, 40 bits.
    pub object: u64,
    /// What it is.
    pub kind: MetaKind,
    /// CRC-32C of the block.
    pub crc: u32,
}

/// A range that reads as zeroes from this batch on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrimRecord {
    /// Its first block.
    pub lba: Lba,
    /// Branch that trimmed it, 24 bits.
    pub birth: u32,
    /// How many blocks, at least 1; it ends at most at LBA 2^40.
    pub blocks: u64,
}

/// Records to write into a batch header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Records<'a> {
    /// Of blocks that the host wrote.
    Data(&'a [DataRecord]),
    /// Of blocks that cleaning moved.
    Clean(&'a [CleanRecord]),
    /// Of metadata.
    Meta(&'a [MetaRecord]),
}

/// Records read from a batch header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordList {
    /// Of blocks that the host wrote.
    Data(Vec<DataRecord>),
    /// Of blocks that cleaning moved.
    Clean(Vec<CleanRecord>),
    /// Of metadata.
    Meta(Vec<MetaRecord>),
}

/// A block of the logical device that a batch has: one that the host wrote, or one that cleaning moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// Which block of the logical device.
    pub lba: Lba,
    /// Branch that wrote it, 24 bits.
    pub birth: u32,
    /// CRC-32C of its data, as the host wrote it.
    pub crc: u32,
    /// Where cleaning moved it from; `None` if the host wrote it.
    pub source: Option<Location>,
}

/// Trims that fit a header behind `records` records of this kind and those of `moved` blocks; none behind more than
/// [`BatchRecords::max`].
#[must_use]
pub fn trims_max(kind: BatchRecords, records: usize, moved: usize) -> usize {
    if records.saturating_add(moved) > kind.max() {
        return 0;
    }
    records_room(kind, records, moved) / TrimRecord::BYTES
}

/// Bytes that a header leaves behind these records.
#[must_use]
pub fn records_room(kind: BatchRecords, records: usize, moved: usize) -> usize {
    let taken = records * kind.record_bytes() + moved * CleanRecord::BYTES;
    (BLOCK_BYTES - FIXED_BYTES).saturating_sub(taken)
}

/// Blocks that cleaning moved whose records fit a header behind those of `records` blocks of the host and of `trims`.
#[must_use]
pub const fn moved_max(records: usize, trims: usize) -> usize {
    let taken = records * DataRecord::BYTES + trims * TrimRecord::BYTES;
    let room = (BLOCK_BYTES - FIXED_BYTES).saturating_sub(taken) / CleanRecord::BYTES;
    let blocks = BatchRecords::Data.max().saturating_sub(records);
    if room < blocks { room } else { blocks }
}

impl Records<'_> {
    /// Which records they are.
    #[must_use]
    pub const fn kind(&self) -> BatchRecords {
        match self {
            Self::Data(_) => BatchRecords::Data,
            Self::Clean(_) => BatchRecords::Clean,
            Self::Meta(_) => BatchRecords::Meta,
        }
    }

    /// How many.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self {
            Self::Data(records) => records.len(),
            Self::Clean(records) => records.len(),
            Self::Meta(records) => records.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes them to the front of `bytes`, which has room for them, and returns the rest.
    pub(super) fn write<'b>(&self, bytes: &'b mut [u8]) -> &'b mut [u8] {
        match self {
            Self::Data(records) => write_all(records, bytes, DataRecord::to_bytes),
            Self::Clean(records) => write_all(records, bytes, CleanRecord::to_bytes),
            Self::Meta(records) => write_all(records, bytes, MetaRecord::to_bytes),
        }
    }
}

impl RecordList {
    /// The same as slices.
    #[must_use]
    pub fn as_records(&self) -> Records<'_> {
        match self {
            Self::Data(records) => Records::Data(records),
            Self::Clean(records) => Records::Clean(records),
            Self::Meta(records) => Records::Meta(records),
        }
    }

    /// Reads records of `kind` from all of `bytes`.
    pub(super) fn read(kind: BatchRecords, bytes: &[u8]) -> Result<Self, BlockError> {
        match kind {
            BatchRecords::Data => read_all(bytes, DataRecord::from_bytes).map(Self::Data),
            BatchRecords::Clean => read_all(bytes, CleanRecord::from_bytes).map(Self::Clean),
            BatchRecords::Meta => read_all(bytes, MetaRecord::from_bytes).map(Self::Meta),
        }
    }
}

/// Writes one record after the other to the front of `bytes`, and returns the rest.
pub(super) fn write_all<'b, T: Copy, const N: usize>(
    records: &[T],
    bytes: &'b mut [u8],
    to_bytes: impl Fn(T) -> [u8; N],
) -> &'b mut [u8] {
    let (front, rest) = bytes.split_at_mut(records.len() * N);
    for (place, record) in front.as_chunks_mut::<N>().0.iter_mut().zip(records) {
        *place = to_bytes(*record);
    }
    rest
}

/// Reads one record after the other from all of `bytes`.
pub(super) fn read_all<T, const N: usize>(
    bytes: &[u8],
    from_bytes: impl Fn(&[u8; N]) -> Result<T, BlockError>,
) -> Result<Vec<T>, BlockError> {
    let (places, _) = bytes.as_chunks::<N>();
    let mut records = Vec::with_capacity(places.len());
    for place in places {
        records.push(from_bytes(place)?);
    }
    Ok(records)
}

impl DataRecord {
    const BYTES: usize = 12;

    fn to_bytes(self) -> [u8; Self::BYTES] {
        joined(pack_version(self.lba, self.birth), self.crc)
    }

    #[expect(clippy::unnecessary_wraps, reason = "other records can be malformed")]
    fn from_bytes(bytes: &[u8; Self::BYTES]) -> Result<Self, BlockError> {
        let (packed, crc) = split(bytes);
        let (lba, birth) = unpack_version(packed);
        Ok(Self { lba, birth, crc })
    }
}

impl CleanRecord {
    /// Bytes in a header.
    pub const BYTES: usize = 16;

    pub(super) fn to_bytes(self) -> [u8; Self::BYTES] {
        let words = u64::from(self.crc) | u64::from(self.source.raw()) << 32;
        pair(pack_version(self.lba, self.birth), words)
    }

    #[expect(clippy::unnecessary_wraps, reason = "other records can be malformed")]
    pub(super) fn from_bytes(bytes: &[u8; Self::BYTES]) -> Result<Self, BlockError> {
        let (packed, words) = unpair(bytes);
        let (lba, birth) = unpack_version(packed);
        Ok(Self { lba, birth, crc: low32(words), source: Location::new(low32(words >> 32)) })
    }
}

impl MetaRecord {
    const BYTES: usize = 12;

    fn to_bytes(self) -> [u8; Self::BYTES] {
        joined(pack(self.object, u32::from(self.kind.code())), self.crc)
    }

    fn from_bytes(bytes: &[u8; Self::BYTES]) -> Result<Self, BlockError> {
        let (packed, crc) = split(bytes);
        let kind = MetaKind::from_code(low8(packed >> 40));
        let kind = kind.ok_or(BlockError::Malformed("a batch has metadata of an unknown kind"))?;
        Ok(Self { object: packed & (LBA_LIMIT - 1), kind, crc })
    }
}

impl TrimRecord {
    /// Bytes in a header.
    pub const BYTES: usize = 16;

    /// Whether it has a block and ends in time.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        let end = self.lba.raw().checked_add(self.blocks);
        self.blocks > 0 && end.is_some_and(|end| end <= LBA_LIMIT)
    }

    pub(super) fn to_bytes(self) -> [u8; Self::BYTES] {
        assert!(self.is_valid(), "{self:?} is no trim");
        pair(pack_version(self.lba, self.birth), self.blocks)
    }

    pub(super) fn from_bytes(bytes: &[u8; Self::BYTES]) -> Result<Self, BlockError> {
        let (packed, blocks) = unpair(bytes);
        let (lba, birth) = unpack_version(packed);
        let trim = Self { lba, birth, blocks };
        let malformed = BlockError::Malformed("a trim is empty or ends past LBA 2^40");
        if trim.is_valid() { Ok(trim) } else { Err(malformed) }
    }
}

fn joined(low: u64, high: u32) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[..8].copy_from_slice(&low.to_le_bytes());
    bytes[8..].copy_from_slice(&high.to_le_bytes());
    bytes
}

fn split(bytes: &[u8; 12]) -> (u64, u32) {
    let mut wide = [0; 16];
    wide[..12].copy_from_slice(bytes);
    let (low, high) = unpair(&wide);
    (low, low32(high))
}

fn pair(low: u64, high: u64) -> [u8; 16] {
    (u128::from(low) | u128::from(high) << 64).to_le_bytes()
}

fn unpair(bytes: &[u8; 16]) -> (u64, u64) {
    let wide = u128::from_le_bytes(*bytes);
    (low64(wide), low64(wide >> 64))
}

#[cfg(test)]
mod tests {
    use super::{
        BatchRecords, CleanRecord, DataRecord, MetaKind, MetaRecord, TrimRecord, moved_max,
        trims_max,
    };
    use onefold_units::{Lba, Location};

    #[test]
    fn golden_records() {
        let (lba, birth, crc) = (Lba::new(0x05_0403_0201), 0x0008_0706, 0x0C0B_0A09);
        let data = DataRecord { lba, birth, crc };
        assert_eq!(data.to_bytes(), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        assert_eq!(DataRecord::from_bytes(&data.to_bytes()), Ok(data));

        let clean = CleanRecord { lba, birth, crc, source: Location::new(0x100F_0E0D) };
        assert_eq!(clean.to_bytes(), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
        assert_eq!(CleanRecord::from_bytes(&clean.to_bytes()), Ok(clean));

        let meta = MetaRecord { object: lba.raw(), kind: MetaKind::Run, crc };
        assert_eq!(meta.to_bytes(), [1, 2, 3, 4, 5, 4, 0, 0, 9, 10, 11, 12]);
        assert_eq!(MetaRecord::from_bytes(&meta.to_bytes()), Ok(meta));

        let trim = TrimRecord { lba, birth, blocks: 0x0C_0B0A };
        assert_eq!(trim.to_bytes(), [1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 0, 0, 0, 0, 0]);
        assert_eq!(TrimRecord::from_bytes(&trim.to_bytes()), Ok(trim));
    }

    #[test]
    fn trims_fit_behind_the_records() {
        assert_eq!(trims_max(BatchRecords::Data, 0, 0), 250);
        assert_eq!(trims_max(BatchRecords::Data, 1, 0), 249);
        assert_eq!(trims_max(BatchRecords::Data, 255, 0), 58);
        assert_eq!(trims_max(BatchRecords::Meta, 255, 0), 58);
        assert_eq!(trims_max(BatchRecords::Clean, 249, 0), 1);
        assert_eq!(trims_max(BatchRecords::Clean, 250, 0), 0);
        assert_eq!(trims_max(BatchRecords::Clean, 251, 0), 0);
        assert_eq!(trims_max(BatchRecords::Data, usize::MAX, 0), 0);
        assert_eq!(trims_max(BatchRecords::Data, 1, 14), 235);
        assert_eq!(trims_max(BatchRecords::Data, 250, 6), 0);
        assert_eq!((moved_max(1, 0), moved_max(1, 249), moved_max(254, 0)), (249, 0, 1));
        assert_eq!((moved_max(255, 0), moved_max(0, 250), moved_max(300, 0)), (0, 0, 0));
    }

    #[test]
    fn a_trim_ends_on_the_device() {
        let trim = |lba, blocks| TrimRecord { lba: Lba::new(lba), birth: 0, blocks };
        let end = 1 << 40;
        assert!(trim(0, end).is_valid() && trim(end - 1, 1).is_valid());
        for bad in [trim(5, 0), trim(end - 1, 2), trim(1, u64::MAX)] {
            assert!(!bad.is_valid());
            let bytes = super::pair(bad.lba.raw(), bad.blocks);
            assert!(TrimRecord::from_bytes(&bytes).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn metadata_of_an_unknown_kind_is_refused() {
        for (kind, good) in [(0, false), (1, true), (6, true), (7, false), (255, false)] {
            let bytes = [0, 0, 0, 0, 0, kind, 0, 0, 0, 0, 0, 0];
            assert_eq!(MetaRecord::from_bytes(&bytes).is_ok(), good, "kind {kind}");
        }
    }

    #[test]
    #[should_panic(expected = "does not fit 24 bits")]
    fn a_birth_of_25_bits_is_not_written() {
        let _ = DataRecord { lba: Lba::new(0), birth: 1 << 24, crc: 0 }.to_bytes();
    }

    #[test]
    #[should_panic(expected = "does not fit 40 bits")]
    fn an_lba_of_41_bits_is_not_written() {
        let _ = DataRecord { lba: Lba::new(1 << 40), birth: 0, crc: 0 }.to_bytes();
    }
}
