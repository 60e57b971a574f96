//! One request of a trace.

use onefold_units::PAGE_BYTES;

/// What a trace says was asked of the device. A superset of `onefold_units::Op`: recordings of
/// Onefold itself also hold its own commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TraceOp {
    /// Read bytes.
    Read,
    /// Write bytes.
    Write,
    /// Make completed writes durable.
    Flush,
    /// Discard, deallocate.
    Trim,
    /// Make the range read as zeroes.
    WriteZeroes,
    /// Map the range to the data at `aux`.
    Remap,
    /// Zone append; `aux` is the address the device chose.
    Append,
    /// Zone management; `aux` is the action.
    Zone,
}

impl TraceOp {
    /// Every operation, in the order of its OFT code.
    pub const ALL: [Self; 8] = [
        Self::Read,
        Self::Write,
        Self::Flush,
        Self::Trim,
        Self::WriteZeroes,
        Self::Remap,
        Self::Append,
        Self::Zone,
    ];

    /// The code stored in OFT and Parquet files.
    #[must_use]
    #[inline]
    pub const fn code(self) -> u8 {
        match self {
            Self::Read => 0,
            Self::Write => 1,
            Self::Flush => 2,
            Self::Trim => 3,
            Self::WriteZeroes => 4,
            Self::Remap => 5,
            Self::Append => 6,
            Self::Zone => 7,
        }
    }

    /// The operation of an OFT code.
    #[must_use]
    #[inline]
    pub const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::Read,
            1 => Self::Write,
            2 => Self::Flush,
            3 => Self::Trim,
            4 => Self::WriteZeroes,
            5 => Self::Remap,
            6 => Self::Append,
            7 => Self::Zone,
            _ => return None,
        })
    }

    /// Whether the request moves data of the host: what page counts and sequentiality look at.
    #[must_use]
    pub const fn is_data(self) -> bool {
        matches!(self, Self::Read | Self::Write)
    }
}

/// Request flags, with the bits of an OFT record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Flags(u8);

impl Flags {
    /// None.
    pub const NONE: Self = Self(0);
    /// Forced unit access: durable when completed.
    pub const FUA: Self = Self(1);
    /// Somebody waits for it.
    pub const SYNC: Self = Self(2);
    /// File-system metadata.
    pub const META: Self = Self(4);
    /// Read ahead of the application.
    pub const READAHEAD: Self = Self(8);
    /// Write zeroes without deallocating.
    pub const NO_UNMAP: Self = Self(16);
    /// A remap that moves: the source is unmapped.
    pub const MOVE: Self = Self(32);

    /// The flags with these bits.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// The bits.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Both sets together.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` is set.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Fingerprint of 4 KiB: equal content has equal digests within one trace. All zero where a write
/// covers only a part of the page.
pub type Digest = [u8; 16];

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Arrival time in nanoseconds. From a [`crate::Reader`] in the trace's own clock; after a
    /// [`crate::Shaper`] from the first request on.
    pub t_ns: u64,
    /// First byte. A reader never changes addresses.
    pub offset: u64,
    /// Length in bytes. 0 only where the operation has none.
    pub len: u64,
    /// Time to completion in nanoseconds, where the trace knows it.
    pub lat_ns: Option<u64>,
    /// Source of a remap, address given by an append, action of a zone command; else 0.
    pub aux: u64,
    /// What was asked.
    pub op: TraceOp,
    /// Request flags.
    pub flags: Flags,
    /// Completion status; 0 is success.
    pub status: u16,
    /// Client, connection or process, modulo 65,536; tells apart requests of one instant.
    pub client: u16,
    /// Index into the device names of the trace.
    pub dev: u16,
    /// One digest per 4 KiB page a write touches, where the trace has digests.
    pub digests: Option<Box<[Digest]>>,
}

impl Record {
    /// A request with nothing known but these.
    #[must_use]
    #[inline]
    pub const fn new(t_ns: u64, op: TraceOp, offset: u64, len: u64) -> Self {
        Self {
            t_ns,
            offset,
            len,
            lat_ns: None,
            aux: 0,
            op,
            flags: Flags::NONE,
            status: 0,
            client: 0,
            dev: 0,
            digests: None,
        }
    }

    /// One past the last byte. A reader refuses requests that end past 2^64.
    #[must_use]
    #[inline]
    pub const fn end(&self) -> u64 {
        self.offset.saturating_add(self.len)
    }

    /// The first 4 KiB page touched and the number of pages touched.
    #[must_use]
    #[inline]
    pub const fn pages(&self) -> (u64, u64) {
        if self.len == 0 {
            return (self.offset / PAGE_BYTES, 0);
        }
        let first = self.offset / PAGE_BYTES;
        (first, (self.end() - 1) / PAGE_BYTES - first + 1)
    }
}
