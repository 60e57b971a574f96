//! Block events of tracefs: `comm-pid [cpu] flags t: block_rq_issue: maj,min RWBS bytes () sector +
//! nsect prio [comm]`; t in seconds with 6 decimals.
//!
//! Source: `include/trace/events/block.h` of the kernel.

use crate::cursor::{Cursor, Expected};
use crate::formats::block::{Block, BlockRequest, key};
use crate::formats::rwbs::Rwbs;
use crate::lines::{Context, LineFormat, Taken};
use crate::{Event, Record};

/// Digits below the second that are kept; tracefs prints six.
const DIGITS: u32 = 9;

#[derive(Debug, Default)]
pub(crate) struct Tracefs {
    block: Block,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Issue,
    Queue,
    Complete,
    /// Of what was queued; a request of the driver may be several of these.
    Ended,
    Requeue,
}

const EVENTS: [(&[u8], Kind); 5] = [
    (b": block_rq_issue: ", Kind::Issue),
    (b": block_bio_queue: ", Kind::Queue),
    (b": block_rq_complete: ", Kind::Complete),
    (b": block_bio_complete: ", Kind::Ended),
    (b": block_rq_requeue: ", Kind::Requeue),
];

impl LineFormat for Tracefs {
    fn line(
        &mut self,
        cursor: &mut Cursor<'_>,
        context: &mut Context,
        out: &mut Vec<Record>,
    ) -> Result<Taken, Expected> {
        let Some((before, after, kind)) = event(cursor.line()) else {
            context.facts.dropped += lost(cursor.line());
            return Ok(Taken::Nothing);
        };
        let wanted = if context.event == Event::Queue { Kind::Queue } else { Kind::Issue };
        let other = if wanted == Kind::Queue { Kind::Issue } else { Kind::Queue };
        if kind == other || kind == Kind::Ended && wanted == Kind::Issue {
            return Ok(Taken::Nothing);
        }
        let time_at = cursor
            .line()
            .get(..before)
            .and_then(|head| head.iter().rposition(|byte| *byte == b' '));
        cursor.skip(time_at.map_or(0, |at| at + 1));
        let t_ns = cursor.decimal(DIGITS, "a time in seconds")?;
        *cursor = Cursor::new(cursor.line());
        cursor.skip(after);
        let from_device = cursor.rest();
        cursor.integer("a device major,minor")?;
        cursor.byte(b',', "a device major,minor")?;
        cursor.integer("a device minor number")?;
        let device = from_device.get(..from_device.len() - cursor.rest().len()).unwrap_or_default();
        let dev = context.device(device)?;
        cursor.gap()?;
        let place = *cursor;
        let letters = cursor.word();
        cursor.gap()?;
        let (sector, sectors) = extent(cursor)?;
        match kind {
            Kind::Complete | Kind::Ended => {
                self.block.complete(key(dev, sector, sectors), t_ns, out);
            }
            Kind::Requeue => self.block.requeue(key(dev, sector, sectors)),
            Kind::Issue | Kind::Queue => {
                let rwbs = Rwbs::parse(letters).ok_or_else(|| place.expected("RWBS letters"))?;
                let asked = BlockRequest { t_ns, dev, sector, sectors, rwbs };
                if self.block.issue(&place, &asked, out)? {
                    return Ok(Taken::Request);
                }
            }
        }
        Ok(Taken::Nothing)
    }

    fn finish(&mut self, context: &mut Context, out: &mut Vec<Record>) {
        self.block.finish(&mut context.facts, out);
    }
}

/// Where the event's name starts and ends, and which it is. The name of a process may hold
/// anything, so the first match counts.
fn event(line: &[u8]) -> Option<(usize, usize, Kind)> {
    const PREFIX: &[u8] = b": block_";
    let mut from = 0;
    while let Some(found) =
        line.get(from..)?.windows(PREFIX.len()).position(|window| window == PREFIX)
    {
        let at = from + found;
        let rest = line.get(at..)?;
        if let Some((name, kind)) = EVENTS.iter().find(|(name, _)| rest.starts_with(name)) {
            return Some((at, at + name.len(), *kind));
        }
        from = at + 1;
    }
    None
}

/// Events a CPU lost: `CPU:3 [LOST 17 EVENTS]`.
fn lost(line: &[u8]) -> u64 {
    const MARK: &[u8] = b"[LOST ";
    let Some(at) = line.windows(MARK.len()).position(|window| window == MARK) else { return 0 };
    let mut cursor = Cursor::new(line);
    cursor.skip(at + MARK.len());
    cursor.integer("a count").unwrap_or(0)
}

/// The extent after an optional byte count and command: the last `N + N`.
fn extent(cursor: &mut Cursor<'_>) -> Result<(u64, u64), Expected> {
    let rest = cursor.rest();
    // `bytes (command)` stand before the sector in request events, not in bio events.
    if let Some(close) = rest.iter().position(|byte| *byte == b')') {
        let plus = rest.iter().position(|byte| *byte == b'+').unwrap_or(rest.len());
        if close < plus {
            cursor.skip(close + 1);
            cursor.blanks();
        }
    }
    let sector = cursor.integer("a sector")?;
    cursor.gap()?;
    cursor.byte(b'+', "+")?;
    cursor.gap()?;
    Ok((sector, cursor.integer("a count of sectors")?))
}
