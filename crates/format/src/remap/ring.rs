//! What NVRAM knows about one remap command, 32 B: id 16 | seq 6 | state 1 | 0 1 | copied 2 | skipped
//! 2 | crc 4. Half of an aligned 64 B block, which NVRAM writes whole (see the trim record).
//!
//! A command is `Running` from before its first entry until all of its entries are durable, and then
//! `Done`: that store commits an atomic command (remap.md, H4) and answers repeats of its id. Slots
//! are reused in order of age.

use onefold_units::Seq;

use crate::bytes::{Reader, Writer, checked_body, seal};

/// How far a remap command came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandState {
    /// Its entries may be in the log; those of an atomic command do not count yet.
    Running,
    /// All of its entries are durable.
    Done,
}

/// One slot of the command ring. Source: remap.md section 7.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandSlot {
    /// The host's number of the command.
    pub id: u128,
    /// Sequence number of the command, below 2^48.
    pub seq: Seq,
    /// How far it came.
    pub state: CommandState,
    /// Units that were copied instead of remapped, at most 65,535.
    pub copied: u16,
    /// Ranges of which something was skipped.
    pub skipped: u16,
}

impl CommandSlot {
    /// Bytes of a slot.
    pub const BYTES: usize = 32;

    /// The bytes of the slot.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let mut writer = Writer::new(&mut bytes);
        writer.bytes(&self.id.to_le_bytes());
        writer.uint(self.seq.raw(), 6);
        writer.uint(self.state.code(), 1);
        writer.uint(0, 1);
        writer.uint(u64::from(self.copied), 2);
        writer.uint(u64::from(self.skipped), 2);
        seal(&mut bytes);
        bytes
    }

    /// Reads a slot; `None` if it is free or torn.
    #[must_use]
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let mut reader = Reader::new(checked_body(bytes)?);
        let id = reader.u128()?;
        let seq = Seq::new(reader.uint(6)?);
        let state = CommandState::from_code(reader.u8()?)?;
        reader.uint(1)?;
        let (copied, skipped) = (reader.u16()?, reader.u16()?);
        Some(Self { id, seq, state, copied, skipped })
    }
}

impl CommandState {
    const fn code(self) -> u64 {
        match self {
            Self::Running => 1,
            Self::Done => 2,
        }
    }

    const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Running),
            2 => Some(Self::Done),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CommandSlot, CommandState};
    use onefold_units::Seq;

    const SLOT: CommandSlot = CommandSlot {
        id: 0x100F_0E0D_0C0B_0A09_0807_0605_0403_0201,
        seq: Seq::new(0x1615_1413_1211),
        state: CommandState::Done,
        copied: 0x1A19,
        skipped: 0x1C1B,
    };

    #[test]
    fn golden_bytes() {
        let bytes = SLOT.encode();
        let body: Vec<u8> = (1..=22).chain([2, 0]).chain(0x19..=0x1C).collect();
        assert_eq!(bytes[..28], body);
        assert_eq!(CommandSlot::decode(&bytes), Some(SLOT));
        assert_eq!(CommandSlot::decode(&[0; 32]), None);
        for bit in 0..32 * 8 {
            let mut torn = bytes;
            torn[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(CommandSlot::decode(&torn), None, "bit {bit}");
        }
    }

    #[test]
    fn states_are_told_apart_and_others_are_free() {
        let running = CommandSlot { state: CommandState::Running, ..SLOT };
        assert_eq!(CommandSlot::decode(&running.encode()), Some(running));
        for state in [0, 3, 255] {
            let mut bytes = SLOT.encode();
            bytes[22] = state;
            crate::bytes::seal(&mut bytes);
            assert_eq!(CommandSlot::decode(&bytes), None, "state {state}");
        }
    }

    #[test]
    fn no_slot_straddles_two_blocks() {
        assert_eq!(64 % CommandSlot::BYTES, 0);
    }
}
