//! Log of nbdkit's log filter: `date time connection=N Write id=I offset=0x.. count=0x.. fua=0 ...`
//! and `date time connection=N ...Write id=I return=0`; ids are per connection, bytes, 1 us.
//!
//! Source: nbdkit-log-filter(1). Times are the server's local time, taken as UTC.

use onefold_units::convert::low32;

use crate::cursor::{Cursor, Expected};
use crate::lines::{Context, LineFormat, Taken, request};
use crate::pairing::Pairing;
use crate::{Flags, Record, TraceOp};

#[derive(Debug, Default)]
pub(crate) struct NbdkitLog {
    pairing: Pairing<(u64, u64)>,
    /// Day of the last line and its nanoseconds since 1970: parsing dates is slow.
    day: ([u8; 10], u64),
}

const MARK: &[u8] = b"connection=";

impl LineFormat for NbdkitLog {
    fn line(
        &mut self,
        cursor: &mut Cursor<'_>,
        context: &mut Context,
        out: &mut Vec<Record>,
    ) -> Result<Taken, Expected> {
        let start = *cursor;
        cursor.word();
        cursor.blanks();
        cursor.word();
        cursor.blanks();
        if !cursor.take(MARK) {
            return Ok(Taken::Nothing);
        }
        let connection = cursor.integer("a connection number")?;
        cursor.gap()?;
        let completion = cursor.take(b"...");
        let Some(op) = operation(cursor.word()) else { return Ok(Taken::Nothing) };
        let mut clock = start;
        let t_ns = self.time(&mut clock)?;
        context.facts.unix = true;
        cursor.gap()?;
        if !cursor.take(b"id=") {
            return Err(cursor.expected("id="));
        }
        let id = cursor.integer("a request number")?;
        if completion {
            self.pairing.complete(&(connection, id), t_ns, out);
            return Ok(Taken::Nothing);
        }
        let place = *cursor;
        let asked = arguments(cursor)?;
        let nowhere = (op == TraceOp::Flush).then_some(0);
        let offset = asked.offset.or(nowhere);
        let len = asked.count.or(nowhere);
        if offset.is_none() || len.is_none() {
            return Err(place.expected("offset= and count="));
        }
        let mut record = request(&place, t_ns, op, offset, len)?;
        if asked.fua {
            record.flags = record.flags.with(Flags::FUA);
        }
        if op == TraceOp::WriteZeroes && !asked.trim {
            record.flags = record.flags.with(Flags::NO_UNMAP);
        }
        record.client = u16::try_from(low32(connection) & 0xFFFF).unwrap_or_default();
        self.pairing.issue((connection, id), record, out);
        Ok(Taken::Request)
    }

    fn finish(&mut self, context: &mut Context, out: &mut Vec<Record>) {
        self.pairing.finish(out);
        context.facts.orphans = self.pairing.orphans;
    }
}

fn operation(word: &[u8]) -> Option<TraceOp> {
    Some(match word {
        b"Read" => TraceOp::Read,
        b"Write" => TraceOp::Write,
        b"Flush" => TraceOp::Flush,
        b"Trim" => TraceOp::Trim,
        b"Zero" => TraceOp::WriteZeroes,
        _ => return None,
    })
}

#[derive(Debug, Default)]
struct Arguments {
    offset: Option<u64>,
    count: Option<u64>,
    fua: bool,
    trim: bool,
}

fn arguments(cursor: &mut Cursor<'_>) -> Result<Arguments, Expected> {
    let mut found = Arguments::default();
    loop {
        cursor.blanks();
        if cursor.take(b"offset=") {
            found.offset = Some(cursor.hex("0x and a number")?);
        } else if cursor.take(b"count=") {
            found.count = Some(cursor.hex("0x and a number")?);
        } else if cursor.take(b"fua=") {
            found.fua = cursor.integer("0 or 1")? != 0;
        } else if cursor.take(b"trim=") {
            found.trim = cursor.integer("0 or 1")? != 0;
        } else if cursor.word().is_empty() {
            return Ok(found);
        }
    }
}

impl NbdkitLog {
    /// `YYYY-MM-DD HH:MM:SS.ffffff` as nanoseconds since 1970.
    fn time(&mut self, cursor: &mut Cursor<'_>) -> Result<u64, Expected> {
        const DAY_NS: u64 = 86_400 * 1_000_000_000;
        let place = *cursor;
        let date: [u8; 10] =
            cursor.word().try_into().map_err(|_| place.expected("a date YYYY-MM-DD"))?;
        if date != self.day.0 {
            let days = days_since_1970(date).ok_or_else(|| place.expected("a date YYYY-MM-DD"))?;
            self.day = (date, days * DAY_NS);
        }
        cursor.gap()?;
        let hours = cursor.integer("a time HH:MM:SS")?;
        cursor.byte(b':', "a time HH:MM:SS")?;
        let minutes = cursor.integer("a time HH:MM:SS")?;
        cursor.byte(b':', "a time HH:MM:SS")?;
        let nanos = cursor.decimal(9, "a time HH:MM:SS")?;
        if hours > 23 || minutes > 59 || nanos > 60_999_999_999 {
            return Err(place.expected("a time of day"));
        }
        Ok(self.day.1 + (hours * 60 + minutes) * 60_000_000_000 + nanos)
    }
}

/// Days from 1970-01-01 to a date of 1970 to 2261. Source: the proleptic Gregorian calendar with
/// years that start in March, so that leap days come last.
fn days_since_1970(date: [u8; 10]) -> Option<u64> {
    let mut cursor = Cursor::new(&date);
    let year = cursor.integer("a year").ok()?;
    cursor.byte(b'-', "-").ok()?;
    let month = cursor.integer("a month").ok()?;
    cursor.byte(b'-', "-").ok()?;
    let day = cursor.integer("a day").ok()?;
    let plausible =
        (1970..=2261).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !plausible {
        return None;
    }
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leaps = year / 4 - year / 100 + year / 400;
    let in_year = (153 * month + 2) / 5 + day - 1;
    // 719,468 days lie between 0000-03-01 and 1970-01-01.
    (year * 365 + leaps + in_year).checked_sub(719_468)
}

#[cfg(test)]
mod tests {
    use super::days_since_1970;

    #[test]
    fn days_of_known_dates() {
        assert_eq!(days_since_1970(*b"1970-01-01"), Some(0));
        assert_eq!(days_since_1970(*b"2000-03-01"), Some(11_017));
        assert_eq!(days_since_1970(*b"2026-11-20"), Some(20_777));
        assert_eq!(days_since_1970(*b"2026-13-20"), None);
    }
}
