//! What a host reads back: 4 KiB, the head of [`wire`](super::wire) with the status as its code and
//! what follows: 0 the device's capabilities, 1 a result of 12 B for each range: remapped 4 | copied
//! 4 | skipped 4, 2 why the command was refused: as many bytes of ASCII as there are "ranges".
//!
//! Capabilities, 34 B: granularity 4 | max ranges 4 | max units 4 | max references 4 | max units of an
//! atomic command 4 | modes 2 | topology 1 | durable at 1, which are those of remap.md, section 2; and how
//! the drive places writes, zeroes from one that does not tell: bytes of a superblock 8 | streams 2.

use onefold_units::Status;
use onefold_units::convert::{low16, u64_from};

use super::RemapFlags;
use super::wire::{Block, Head, REMAP_BLOCK_BYTES, REMAP_RANGES_MAX, RemapBlockError};
use crate::bytes::{Reader, Writer};

/// Bytes of a refusal at most; the rest of a longer one is cut off.
const REFUSAL_MAX: usize = 1024;

/// What became of one range, in units of 4 KiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RangeResult {
    /// Units that got the page of their source.
    pub remapped: u32,
    /// Units that got a copy of it.
    pub copied: u32,
    /// Units that were left as they are.
    pub skipped: u32,
}

/// Which ranges one command may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// Any sources, one contiguous target.
    Gather,
    /// One contiguous source, any targets.
    Scatter,
    /// Any sources and targets.
    Any,
}

/// When a remap survives a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemapDurability {
    /// When it is acknowledged.
    Completion,
    /// After the next flush.
    Flush,
}

/// What a device can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemapCaps {
    /// Bytes that every range is aligned to.
    pub granularity_bytes: u32,
    /// Ranges of one command.
    pub ranges_max: u32,
    /// Units of 4 KiB of one command.
    pub units_max: u32,
    /// Units that may share a page; 0 = no limit.
    pub references_max: u32,
    /// Units of 4 KiB of one atomic command; 0 = none are.
    pub atomic_units_max: u32,
    /// Flags the device executes.
    pub modes: RemapFlags,
    /// Which ranges one command may have.
    pub topology: Topology,
    /// When a remap survives a power cut.
    pub durable_at: RemapDurability,
    /// Bytes that the device erases together where they were written one after the other; 0 = it does not tell.
    pub superblock_bytes: u64,
    /// Write streams, each with superblocks of its own; 0 = it does not tell.
    pub streams: u16,
}

/// The content of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyContent {
    /// What the device can do: no command was sent yet.
    Caps(RemapCaps),
    /// The results of a command, one for each of its ranges; none if it was done before.
    Results(Vec<RangeResult>),
    /// Why a command was refused, in the words of the device.
    Refusal(String),
}

/// What a host reads back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemapReply {
    /// How the command ended.
    pub status: Status,
    /// The host's number of the command; 0 = none.
    pub cmd_id: u128,
    /// Results or capabilities.
    pub content: ReplyContent,
}

impl RemapReply {
    /// The block to send.
    ///
    /// # Errors
    /// More results than a vector has ranges.
    pub fn encode(&self) -> Result<[u8; REMAP_BLOCK_BYTES], RemapBlockError> {
        let (content, ranges) = match &self.content {
            ReplyContent::Caps(_) => (0, 0),
            ReplyContent::Results(results) => (1, results.len()),
            ReplyContent::Refusal(text) => (2, text.len().min(REFUSAL_MAX)),
        };
        if content == 1 && ranges > REMAP_RANGES_MAX {
            return Err(RemapBlockError::Ranges { found: ranges });
        }
        let (code, ranges) = (status_code(self.status), low16(u64_from(ranges)));
        let head = Head { code, ranges, content, cmd_id: self.cmd_id };
        Ok(Block::Reply.write(&head, |writer| match &self.content {
            ReplyContent::Caps(caps) => caps.write(writer),
            ReplyContent::Results(results) => results.iter().for_each(|one| one.write(writer)),
            ReplyContent::Refusal(text) => writer.bytes(&plain(text)),
        }))
    }

    /// Reads a block.
    ///
    /// # Errors
    /// Tells apart what is no reply, damage, and fields that mean nothing.
    pub fn decode(bytes: &[u8]) -> Result<Self, RemapBlockError> {
        let (head, mut reader) = Block::Reply.read(bytes)?;
        let status = status_of(head.code).ok_or(RemapBlockError::Reply { field: "status" })?;
        let content = match head.content {
            0 => RemapCaps::read(&mut reader).map(ReplyContent::Caps),
            1 => head.list(&mut reader, RangeResult::read).map(ReplyContent::Results),
            2 => Some(usize::from(head.ranges))
                .filter(|len| *len <= REFUSAL_MAX)
                .and_then(|len| reader.bytes(len))
                .and_then(refusal),
            _ => None,
        };
        let content = content.ok_or(RemapBlockError::Reply { field: "content" })?;
        Ok(Self { status, cmd_id: head.cmd_id, content })
    }
}

/// The bytes of a refusal that are kept: others than printable ASCII become `?`.
fn plain(text: &str) -> Vec<u8> {
    let printable = |byte: u8| if matches!(byte, b' '..=b'~') { byte } else { b'?' };
    text.bytes().take(REFUSAL_MAX).map(printable).collect()
}

fn refusal(bytes: &[u8]) -> Option<ReplyContent> {
    let text = std::str::from_utf8(bytes).ok()?;
    text.bytes().all(|byte| matches!(byte, b' '..=b'~')).then(|| ReplyContent::Refusal(text.into()))
}

impl RangeResult {
    fn write(&self, writer: &mut Writer<'_>) {
        for units in [self.remapped, self.copied, self.skipped] {
            writer.uint(u64::from(units), 4);
        }
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Self { remapped: reader.u32()?, copied: reader.u32()?, skipped: reader.u32()? })
    }
}

impl RemapCaps {
    fn write(&self, writer: &mut Writer<'_>) {
        let limits = [self.granularity_bytes, self.ranges_max, self.units_max];
        for limit in limits.into_iter().chain([self.references_max, self.atomic_units_max]) {
            writer.uint(u64::from(limit), 4);
        }
        writer.uint(u64::from(self.modes.bits()), 2);
        writer.uint(self.topology.code(), 1);
        writer.uint(self.durable_at.code(), 1);
        writer.uint(self.superblock_bytes, 8);
        writer.uint(u64::from(self.streams), 2);
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            granularity_bytes: reader.u32()?,
            ranges_max: reader.u32()?,
            units_max: reader.u32()?,
            references_max: reader.u32()?,
            atomic_units_max: reader.u32()?,
            // What a newer device can do besides is of no use to this host.
            modes: RemapFlags::known(reader.u16()?),
            topology: Topology::from_code(reader.u8()?)?,
            durable_at: RemapDurability::from_code(reader.u8()?)?,
            superblock_bytes: reader.uint(8)?,
            streams: reader.u16()?,
        })
    }
}

impl Topology {
    const fn code(self) -> u64 {
        match self {
            Self::Gather => 0,
            Self::Scatter => 1,
            Self::Any => 2,
        }
    }

    const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Gather),
            1 => Some(Self::Scatter),
            2 => Some(Self::Any),
            _ => None,
        }
    }
}

impl RemapDurability {
    const fn code(self) -> u64 {
        match self {
            Self::Completion => 0,
            Self::Flush => 1,
        }
    }

    const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Completion),
            1 => Some(Self::Flush),
            _ => None,
        }
    }
}

const fn status_code(status: Status) -> u16 {
    match status {
        Status::Ok => 0,
        Status::InvalidField => 1,
        Status::NoSpace => 2,
        Status::MediaError => 3,
        Status::Poisoned => 4,
    }
}

const fn status_of(code: u16) -> Option<Status> {
    match code {
        0 => Some(Status::Ok),
        1 => Some(Status::InvalidField),
        2 => Some(Status::NoSpace),
        3 => Some(Status::MediaError),
        4 => Some(Status::Poisoned),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{
        RangeResult, RemapCaps, RemapDurability, RemapReply, ReplyContent, Status, Topology,
    };
    use crate::remap::wire::{RemapBlockError, seal};
    use crate::{REMAP_RANGES_MAX, RemapFlags};

    const CAPS: RemapCaps = RemapCaps {
        granularity_bytes: 4096,
        ranges_max: 168,
        units_max: 0x0403_0201,
        references_max: 254,
        atomic_units_max: 0x0807_0605,
        modes: RemapFlags::MOVE.with(RemapFlags::NO_FALLBACK),
        topology: Topology::Any,
        durable_at: RemapDurability::Flush,
        superblock_bytes: 0x0807_0605_0403_0201,
        streams: 0x0A09,
    };
    const RESULT: RangeResult =
        RangeResult { remapped: 0x0403_0201, copied: 0x0807_0605, skipped: 0x0C0B_0A09 };

    fn caps() -> RemapReply {
        RemapReply { status: Status::Ok, cmd_id: 0, content: ReplyContent::Caps(CAPS) }
    }

    fn results(count: usize) -> RemapReply {
        let content = ReplyContent::Results(vec![RESULT; count]);
        RemapReply { status: Status::NoSpace, cmd_id: 9, content }
    }

    #[test]
    fn golden_bytes() {
        let bytes = results(2).encode().unwrap();
        assert_eq!(bytes[..12], *b"OFRR\x01\x00\x02\x00\x02\x00\x01\x00");
        assert_eq!(bytes[16..32], 9_u128.to_le_bytes());
        let one: Vec<u8> = (1..=12).collect();
        assert_eq!(bytes[64..88], [one.clone(), one].concat());
        assert!(bytes[88..].iter().all(|byte| *byte == 0));

        let bytes = caps().encode().unwrap();
        assert_eq!(bytes[..12], *b"OFRR\x01\x00\0\0\0\0\0\0");
        assert_eq!(
            bytes[64..88],
            [0, 16, 0, 0, 168, 0, 0, 0, 1, 2, 3, 4, 254, 0, 0, 0, 5, 6, 7, 8, 0x11, 0, 2, 1]
        );
        assert_eq!(bytes[88..98], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        assert!(bytes[98..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn there_and_back() {
        for reply in [caps(), results(0), results(1), results(REMAP_RANGES_MAX)] {
            assert_eq!(RemapReply::decode(&reply.encode().unwrap()), Ok(reply));
        }
        let found = REMAP_RANGES_MAX + 1;
        assert_eq!(results(found).encode(), Err(RemapBlockError::Ranges { found }));
        let all = [
            Status::Ok,
            Status::InvalidField,
            Status::NoSpace,
            Status::MediaError,
            Status::Poisoned,
        ];
        for status in all {
            let reply = RemapReply { status, ..results(1) };
            assert_eq!(RemapReply::decode(&reply.encode().unwrap()), Ok(reply));
        }
        for topology in [Topology::Gather, Topology::Scatter] {
            let other = RemapCaps { topology, durable_at: RemapDurability::Completion, ..CAPS };
            let reply = RemapReply { content: ReplyContent::Caps(other), ..caps() };
            assert_eq!(RemapReply::decode(&reply.encode().unwrap()), Ok(reply));
        }
    }

    #[test]
    fn refusals_are_plain_text() {
        let refusal = |text: &str| {
            let content = ReplyContent::Refusal(text.to_owned());
            RemapReply { status: Status::InvalidField, cmd_id: 1, content }
        };
        let there_and_back = |text: &str| {
            let reply = RemapReply::decode(&refusal(text).encode().unwrap()).unwrap();
            match reply.content {
                ReplyContent::Refusal(text) => text,
                other => panic!("{other:?}"),
            }
        };
        let bytes = refusal("no").encode().unwrap();
        assert_eq!((&bytes[8..12], &bytes[64..67]), (&b"\x02\0\x02\0"[..], &b"no\0"[..]));
        assert_eq!(there_and_back("range 3 is empty"), "range 3 is empty");
        assert_eq!(there_and_back("a\nb"), "a?b");
        assert_eq!(there_and_back(&"x".repeat(5000)), "x".repeat(1024));
        let mut bytes = refusal("no").encode().unwrap();
        bytes[64] = b'\n';
        seal(&mut bytes);
        assert!(RemapReply::decode(&bytes).is_err());
        let mut bytes = refusal(&"x".repeat(1024)).encode().unwrap();
        bytes[8] = 1;
        bytes[64 + 1024] = b'x';
        seal(&mut bytes);
        assert!(RemapReply::decode(&bytes).is_err(), "longer than a refusal is");
    }

    #[test]
    fn what_means_nothing_is_refused() {
        let decode = |reply: &RemapReply, at: usize, value: u8| {
            let mut bytes = reply.encode().unwrap();
            bytes[at] = value;
            seal(&mut bytes);
            RemapReply::decode(&bytes)
        };
        let unknown = |field| Err(RemapBlockError::Reply { field });
        assert_eq!(decode(&results(1), 6, 5), unknown("status"));
        assert_eq!(decode(&results(1), 8, 169), unknown("content"));
        assert_eq!(decode(&results(1), 10, 3), unknown("content"));
        assert_eq!(decode(&caps(), 64 + 22, 3), unknown("content"));
        assert_eq!(decode(&caps(), 64 + 23, 2), unknown("content"));
        // A mode that only a newer device has.
        assert_eq!(decode(&caps(), 64 + 21, 0x80), Ok(caps()));
    }
}
