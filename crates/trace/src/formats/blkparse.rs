//! Text of blkparse: `maj,min cpu seq t_s pid ACT RWBS sector + nsect [process]`.
//!
//! Source: blkparse(1). Lines without `+` are no requests; the summary starts at `CPU0 (` or
//! `Total (`.

use crate::cursor::{Cursor, Expected};
use crate::formats::block::{Block, BlockRequest, key};
use crate::formats::rwbs::Rwbs;
use crate::lines::{Context, LineFormat, Taken};
use crate::{Event, Record};

/// Digits of a blkparse time below the second.
const DIGITS: u32 = 9;

#[derive(Debug, Default)]
pub(crate) struct Blkparse {
    block: Block,
}

impl LineFormat for Blkparse {
    fn line(
        &mut self,
        cursor: &mut Cursor<'_>,
        context: &mut Context,
        out: &mut Vec<Record>,
    ) -> Result<Taken, Expected> {
        if is_summary(cursor.line()) {
            return Ok(Taken::End);
        }
        cursor.blanks();
        let from_device = cursor.rest();
        cursor.integer("a device major,minor")?;
        cursor.byte(b',', "a device major,minor")?;
        cursor.integer("a device minor number")?;
        let device = from_device.get(..from_device.len() - cursor.rest().len()).unwrap_or_default();
        cursor.gap()?;
        cursor.integer("a CPU number")?;
        cursor.gap()?;
        cursor.integer("a sequence number")?;
        cursor.gap()?;
        let t_ns = cursor.decimal(DIGITS, "a time in seconds")?;
        cursor.gap()?;
        cursor.integer("a process number")?;
        cursor.gap()?;
        let action = cursor.word();
        let wanted: &[u8] = if context.event == Event::Queue { b"Q" } else { b"D" };
        let issue = action == wanted;
        if !issue && !matches!(action, b"C" | b"R") {
            return Ok(Taken::Nothing);
        }
        cursor.gap()?;
        let place = *cursor;
        let letters = cursor.word();
        cursor.blanks();
        let Some((sector, sectors)) = extent(cursor)? else { return Ok(Taken::Nothing) };
        let dev = context.device(device)?;
        if issue {
            let rwbs = Rwbs::parse(letters).ok_or_else(|| place.expected("RWBS letters"))?;
            let asked = BlockRequest { t_ns, dev, sector, sectors, rwbs };
            let taken = self.block.issue(&place, &asked, out)?;
            return Ok(if taken { Taken::Request } else { Taken::Nothing });
        }
        if action == b"C" {
            self.block.complete(key(dev, sector, sectors), t_ns, out);
        } else {
            self.block.requeue(key(dev, sector, sectors));
        }
        Ok(Taken::Nothing)
    }

    fn finish(&mut self, context: &mut Context, out: &mut Vec<Record>) {
        self.block.finish(&mut context.facts, out);
    }
}

/// Whether the summary after the events starts here.
pub(crate) fn is_summary(line: &[u8]) -> bool {
    let cpu = line.strip_prefix(b"CPU").is_some_and(|rest| {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        digits > 0 && rest.get(digits..).is_some_and(|rest| rest.starts_with(b" ("))
    });
    cpu || line.starts_with(b"Total (")
}

/// `sector + nsect`; `None` where the line has no `+`.
fn extent(cursor: &mut Cursor<'_>) -> Result<Option<(u64, u64)>, Expected> {
    if !cursor.peek().is_some_and(|byte| byte.is_ascii_digit()) {
        return Ok(None);
    }
    let sector = cursor.integer("a sector")?;
    cursor.blanks();
    if cursor.peek() != Some(b'+') {
        return Ok(None);
    }
    cursor.skip(1);
    cursor.gap()?;
    Ok(Some((sector, cursor.integer("a count of sectors")?)))
}
