//! Inputs of simulators: five blank-separated numbers.
//!
//! `SSDsim` and `MQSim`: `arrival device sector nsect type`, integers. `DiskSim`: `t_ms device
//! block nblk flags`, time with a decimal point. IODA has the shape of `DiskSim`, in bytes.

use crate::cursor::{Cursor, Expected};
use crate::lines::{Context, LineFormat, Taken, request};
use crate::{Record, TraceOp};

#[derive(Debug)]
pub(crate) struct Ssdsim;

impl LineFormat for Ssdsim {
    fn line(
        &mut self,
        cursor: &mut Cursor<'_>,
        context: &mut Context,
        out: &mut Vec<Record>,
    ) -> Result<Taken, Expected> {
        cursor.blanks();
        let t_ns = cursor.decimal(context.digits, "an arrival time")?;
        let (mut record, kind, place) = rest(cursor, context, t_ns)?;
        if kind > 1 {
            return Err(place.expected("a type of 0 or 1"));
        }
        record.op = direction(kind == context.read);
        out.push(record);
        Ok(Taken::Request)
    }
}

/// `DiskSim`, where only bit 0 of the flags tells the direction, and IODA, where all do.
#[derive(Debug)]
pub(crate) struct Disksim {
    pub(crate) mask: u64,
}

impl LineFormat for Disksim {
    fn line(
        &mut self,
        cursor: &mut Cursor<'_>,
        context: &mut Context,
        out: &mut Vec<Record>,
    ) -> Result<Taken, Expected> {
        cursor.blanks();
        let t_ns = cursor.decimal(context.digits, "a time in ms")?;
        let (mut record, kind, place) = rest(cursor, context, t_ns)?;
        let kind = kind & self.mask;
        if kind > 1 {
            return Err(place.expected("a type of 0 or 1"));
        }
        record.op = direction(kind == context.read);
        out.push(record);
        Ok(Taken::Request)
    }
}

const fn direction(read: bool) -> TraceOp {
    if read { TraceOp::Read } else { TraceOp::Write }
}

/// Everything after the time: the request, its type number and where that stood.
fn rest<'a>(
    cursor: &mut Cursor<'a>,
    context: &mut Context,
    t_ns: u64,
) -> Result<(Record, u64, Cursor<'a>), Expected> {
    cursor.gap()?;
    let from_device = cursor.rest();
    cursor.integer("a device number")?;
    let device = from_device.get(..from_device.len() - cursor.rest().len()).unwrap_or_default();
    let dev = context.device(device)?;
    cursor.gap()?;
    let offset = cursor.integer("an address")?.checked_mul(context.addr);
    cursor.gap()?;
    let place = *cursor;
    let len = cursor.integer("a size")?.checked_mul(context.unit);
    cursor.gap()?;
    let kind_place = *cursor;
    let kind = cursor.integer("a type")?;
    cursor.end()?;
    let mut record = request(&place, t_ns, TraceOp::Read, offset, len)?;
    record.dev = dev;
    Ok((record, kind, kind_place))
}
