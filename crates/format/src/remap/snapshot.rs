//! Snapshots of ranges: the command of a host, and the table of what there is, which the device keeps in
//! its first snapshot unit and gives as the answer to every command. 4 KiB each, with the head of
//! [`wire`](super::wire).
//!
//! Command: the code is what to do: 1 list, 2 create, 3 delete, 4 restore, 5 clone. Then 8 first unit
//! | 8 units | a name of 64 B. To create takes both numbers, to clone the first as its target.
//!
//! Table: the number of ranges is that of its entries, the command id that of the command it answers.
//! Then 8 units for snapshots | 8 stall of the host in ns | entries of 96 B: 8 first unit of the source
//! | 8 units | 8 first unit of the snapshot units | 8 created, seconds since 1970 | a name of 64 B.
//!
//! Units have 4 KiB. A name is its length 1 and up to 63 B of ASCII letters, digits, `.`, `_`, `-`; it
//! begins with a letter or a digit.

use onefold_units::convert::{low16, u64_from};

use super::wire::{Block, Head, REMAP_BLOCK_BYTES, RemapBlockError};
use crate::bytes::{Reader, Writer};

/// Snapshots of one device at most: what fits the table.
pub const SNAPSHOTS_MAX: usize = 41;

/// Bytes of a name at most.
pub const SNAPSHOT_NAME_MAX: usize = 63;

/// The name of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SnapshotName(String);

impl SnapshotName {
    /// Takes a name that follows the rules.
    ///
    /// # Errors
    /// Says what the rules are.
    pub fn new(text: &str) -> Result<Self, RemapBlockError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let good = (1..=SNAPSHOT_NAME_MAX).contains(&text.len())
            && text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.chars().all(plain);
        if good { Ok(Self(text.to_owned())) } else { Err(RemapBlockError::Name) }
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn write(name: Option<&Self>, writer: &mut Writer<'_>) {
        let text = name.map_or("", Self::as_str);
        writer.uint(u64_from(text.len()), 1);
        writer.bytes(text.as_bytes());
        writer.bytes(&[0; SNAPSHOT_NAME_MAX][text.len()..]);
    }

    /// `None` if there is none that follows the rules.
    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let len = usize::from(reader.u8()?);
        let bytes = reader.bytes(SNAPSHOT_NAME_MAX)?;
        let text = std::str::from_utf8(bytes.get(..len)?).ok()?;
        Self::new(text).ok()
    }
}

/// What to do with snapshots. Numbers are of units of 4 KiB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnapshotAction {
    /// Nothing: the table is the answer.
    List,
    /// Keep the content of a range under a name.
    Create {
        /// Its name.
        name: SnapshotName,
        /// First unit.
        first: u64,
        /// Number of units.
        units: u64,
    },
    /// Give one up.
    Delete {
        /// Its name.
        name: SnapshotName,
    },
    /// Give the range its content again.
    Restore {
        /// Its name.
        name: SnapshotName,
    },
    /// Give another range its content.
    Clone {
        /// Its name.
        name: SnapshotName,
        /// First unit of the target.
        target: u64,
    },
}

/// A command about snapshots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotCommand {
    /// What to do.
    pub action: SnapshotAction,
    /// The host's number of the command, by which it knows its answer.
    pub cmd_id: u128,
}

/// One snapshot. Numbers are of units of 4 KiB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotEntry {
    /// Its name.
    pub name: SnapshotName,
    /// First unit of what it was made of.
    pub first: u64,
    /// Number of units.
    pub units: u64,
    /// First of the snapshot units that hold it.
    pub at: u64,
    /// When it was made, in seconds since 1970.
    pub created: u64,
}

/// All snapshots of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SnapshotTable {
    /// The command that this answers.
    pub cmd_id: u128,
    /// Units of 4 KiB that snapshots may take together.
    pub capacity: u64,
    /// How long the command that this answers kept writes waiting, in ns.
    pub stall_ns: u64,
    /// Up to [`SNAPSHOTS_MAX`] of them.
    pub entries: Vec<SnapshotEntry>,
}

impl SnapshotCommand {
    /// The block to send.
    #[must_use]
    pub fn encode(&self) -> [u8; REMAP_BLOCK_BYTES] {
        let (code, first, units, name) = match &self.action {
            SnapshotAction::List => (1, 0, 0, None),
            SnapshotAction::Create { name, first, units } => (2, *first, *units, Some(name)),
            SnapshotAction::Delete { name } => (3, 0, 0, Some(name)),
            SnapshotAction::Restore { name } => (4, 0, 0, Some(name)),
            SnapshotAction::Clone { name, target } => (5, *target, 0, Some(name)),
        };
        let head = Head { code, ranges: 0, content: 0, cmd_id: self.cmd_id };
        Block::Snapshot.write(&head, |writer| {
            writer.uint(first, 8);
            writer.uint(units, 8);
            SnapshotName::write(name, writer);
        })
    }

    /// Reads a block.
    ///
    /// # Errors
    /// Tells apart what is no command, damage, and fields that mean nothing.
    pub fn decode(bytes: &[u8]) -> Result<Self, RemapBlockError> {
        let (head, mut reader) = Block::Snapshot.read(bytes)?;
        let damaged = RemapBlockError::Damaged { block: "snapshot command" };
        let (first, units) = reader.uint(8).zip(reader.uint(8)).ok_or(damaged)?;
        let name = SnapshotName::read(&mut reader).ok_or(RemapBlockError::Name);
        let action = match head.code {
            1 => SnapshotAction::List,
            2 => SnapshotAction::Create { name: name?, first, units },
            3 => SnapshotAction::Delete { name: name? },
            4 => SnapshotAction::Restore { name: name? },
            5 => SnapshotAction::Clone { name: name?, target: first },
            _ => return Err(RemapBlockError::Action { found: head.code }),
        };
        Ok(Self { action, cmd_id: head.cmd_id })
    }

    /// Whether a block calls itself a command about snapshots.
    #[must_use]
    pub fn is_one(bytes: &[u8]) -> bool {
        Block::Snapshot.claims(bytes)
    }
}

impl SnapshotTable {
    /// The block to store or to send.
    ///
    /// # Errors
    /// More snapshots than fit.
    pub fn encode(&self) -> Result<[u8; REMAP_BLOCK_BYTES], RemapBlockError> {
        let found = self.entries.len();
        if found > SNAPSHOTS_MAX {
            return Err(RemapBlockError::Snapshots { found });
        }
        let ranges = low16(u64_from(found));
        let head = Head { code: 0, ranges, content: 0, cmd_id: self.cmd_id };
        Ok(Block::Table.write(&head, |writer| {
            writer.uint(self.capacity, 8);
            writer.uint(self.stall_ns, 8);
            self.entries.iter().for_each(|entry| entry.write(writer));
        }))
    }

    /// Reads a block.
    ///
    /// # Errors
    /// Tells apart what is no table and damage.
    pub fn decode(bytes: &[u8]) -> Result<Self, RemapBlockError> {
        let (head, mut reader) = Block::Table.read(bytes)?;
        let damaged = || RemapBlockError::Damaged { block: "snapshot table" };
        let found = usize::from(head.ranges);
        if found > SNAPSHOTS_MAX {
            return Err(RemapBlockError::Snapshots { found });
        }
        let (capacity, stall_ns) = reader.uint(8).zip(reader.uint(8)).ok_or_else(damaged)?;
        let entries = (0..found).map(|_| SnapshotEntry::read(&mut reader));
        let entries = entries.collect::<Option<_>>().ok_or_else(damaged)?;
        Ok(Self { cmd_id: head.cmd_id, capacity, stall_ns, entries })
    }

    /// Whether a block calls itself a table of snapshots.
    #[must_use]
    pub fn is_one(bytes: &[u8]) -> bool {
        Block::Table.claims(bytes)
    }
}

impl SnapshotEntry {
    fn write(&self, writer: &mut Writer<'_>) {
        for number in [self.first, self.units, self.at, self.created] {
            writer.uint(number, 8);
        }
        SnapshotName::write(Some(&self.name), writer);
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let (first, units) = (reader.uint(8)?, reader.uint(8)?);
        let (at, created) = (reader.uint(8)?, reader.uint(8)?);
        Some(Self { name: SnapshotName::read(reader)?, first, units, at, created })
    }
}

#[cfg(test)]
mod tests {
    use super::{
        SNAPSHOTS_MAX, SnapshotAction, SnapshotCommand, SnapshotEntry, SnapshotName, SnapshotTable,
    };
    use crate::remap::wire::{RemapBlockError, seal};

    fn name(text: &str) -> SnapshotName {
        SnapshotName::new(text).unwrap()
    }

    fn entry(text: &str) -> SnapshotEntry {
        SnapshotEntry { name: name(text), first: 0x0102, units: 3, at: u64::MAX, created: 5 }
    }

    fn table(entries: Vec<SnapshotEntry>) -> SnapshotTable {
        SnapshotTable { cmd_id: 9, capacity: 7, stall_ns: 8, entries }
    }

    #[test]
    fn golden_bytes() {
        let action = SnapshotAction::Create { name: name("day-1"), first: 0x0201, units: 3 };
        let bytes = SnapshotCommand { action, cmd_id: 9 }.encode();
        assert_eq!(bytes[..8], *b"OFSC\x01\x00\x02\x00");
        assert_eq!(bytes[16..32], 9_u128.to_le_bytes());
        assert_eq!(bytes[64..87], *b"\x01\x02\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x05day-1\0");
        let bytes = table(vec![entry("day-1")]).encode().unwrap();
        assert_eq!(bytes[..10], *b"OFST\x01\x00\0\0\x01\0");
        assert_eq!((bytes[64], bytes[72]), (7, 8));
        assert_eq!((bytes[80], bytes[88], bytes[96], bytes[104]), (2, 3, 255, 5));
        assert_eq!(bytes[112..118], *b"\x05day-1");
        assert!(bytes[118..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn there_and_back() {
        for action in [
            SnapshotAction::List,
            SnapshotAction::Create { name: name("a"), first: 1, units: u64::MAX },
            SnapshotAction::Delete { name: name("0") },
            SnapshotAction::Restore { name: name(&"x".repeat(63)) },
            SnapshotAction::Clone { name: name("a.b_c-d"), target: 7 },
        ] {
            let command = SnapshotCommand { action, cmd_id: 1 };
            assert_eq!(SnapshotCommand::decode(&command.encode()), Ok(command));
        }
        for count in [0, 1, SNAPSHOTS_MAX] {
            let table = table(vec![entry(&"n".repeat(63)); count]);
            let bytes = table.encode().unwrap();
            assert!(SnapshotTable::is_one(&bytes) && !SnapshotCommand::is_one(&bytes));
            assert_eq!(SnapshotTable::decode(&bytes), Ok(table));
        }
        let found = SNAPSHOTS_MAX + 1;
        let refused = Err(RemapBlockError::Snapshots { found });
        assert_eq!(table(vec![entry("n"); found]).encode(), refused);
    }

    #[test]
    fn what_means_nothing_is_refused() {
        for bad in ["", "-a", ".a", "a b", "a/b", "\u{e4}", &"n".repeat(64)] {
            assert_eq!(SnapshotName::new(bad), Err(RemapBlockError::Name), "{bad}");
        }
        let decode = |at: usize, value: u8| {
            let action = SnapshotAction::Delete { name: name("day") };
            let mut bytes = SnapshotCommand { action, cmd_id: 1 }.encode();
            bytes[at] = value;
            seal(&mut bytes);
            SnapshotCommand::decode(&bytes).unwrap_err()
        };
        assert_eq!(decode(6, 0), RemapBlockError::Action { found: 0 });
        assert_eq!(decode(6, 6), RemapBlockError::Action { found: 6 });
        assert_eq!(decode(80, 0), RemapBlockError::Name);
        assert_eq!(decode(80, 255), RemapBlockError::Name);
        assert_eq!(decode(81, b'/'), RemapBlockError::Name);
        let decode = |at: usize, value: u8| {
            let mut bytes = table(vec![entry("day")]).encode().unwrap();
            bytes[at] = value;
            seal(&mut bytes);
            SnapshotTable::decode(&bytes).unwrap_err()
        };
        let damaged = RemapBlockError::Damaged { block: "snapshot table" };
        assert_eq!(decode(8, 42), RemapBlockError::Snapshots { found: 42 });
        assert_eq!(decode(8, 2), damaged, "the second has no name");
        assert_eq!(decode(113, b' '), damaged);
    }
}
