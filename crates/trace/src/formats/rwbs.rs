//! The letters of the Linux block layer: operation and flags of a request.
//!
//! Source: `blk_fill_rwbs` of the kernel. An F before the operation is a preflush, an F after it
//! is FUA, `FF` is a flush, DE a secure erase, N none of the others.

use crate::{Flags, TraceOp};

/// A decoded RWBS field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rwbs {
    pub(crate) op: TraceOp,
    pub(crate) flags: Flags,
    /// The device is flushed before the operation.
    pub(crate) preflush: bool,
}

impl Rwbs {
    /// Decodes the field. `None` if a letter is unknown.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let mut rest = text;
        let preflush = rest.first() == Some(&b'F');
        if preflush {
            rest = rest.get(1..)?;
        }
        let op = match rest {
            // New kernels write a zeroing write as WZ, old ones as N.
            [b'W', b'Z', ..] => TraceOp::WriteZeroes,
            [b'W', ..] => TraceOp::Write,
            [b'R', ..] => TraceOp::Read,
            [b'D', ..] => TraceOp::Trim,
            // No data and a preflush: the flush of an empty request.
            [] | [b'N' | b'S' | b'M' | b'A', ..] if preflush => TraceOp::Flush,
            [b'N', ..] => TraceOp::WriteZeroes,
            [b'F', ..] => TraceOp::Flush,
            _ => return None,
        };
        let mut flags = Flags::NONE;
        for (at, letter) in rest.iter().enumerate() {
            flags = flags.with(match letter {
                b'F' if at > 0 => Flags::FUA,
                b'A' => Flags::READAHEAD,
                b'S' => Flags::SYNC,
                b'M' => Flags::META,
                b'F' | b'R' | b'W' | b'D' | b'N' | b'E' | b'Z' | b'B' | b'U' => Flags::NONE,
                _ => return None,
            });
        }
        Some(Self { op, flags, preflush: preflush && op != TraceOp::Flush })
    }
}

#[cfg(test)]
mod tests {
    use super::Rwbs;
    use crate::{Flags, TraceOp};

    #[test]
    fn position_of_f_tells_preflush_from_fua() {
        let parse = |text: &str| Rwbs::parse(text.as_bytes()).unwrap();
        assert_eq!(parse("WS").flags, Flags::SYNC);
        assert_eq!(parse("FWFSM").flags, Flags::FUA.with(Flags::SYNC).with(Flags::META));
        assert!(parse("FWS").preflush && !parse("WFS").preflush);
        assert_eq!(parse("FF").op, TraceOp::Flush);
        assert_eq!(parse("FN").op, TraceOp::Flush);
        assert_eq!(parse("N").op, TraceOp::WriteZeroes);
        assert_eq!(parse("RA").flags, Flags::READAHEAD);
        assert_eq!(Rwbs::parse(b"Q"), None);
    }
}
