//! Runs one request against a device and encodes its reply. No socket: tests drive it directly.

use onefold_device::{BlockDevice, Due};
use onefold_units::{PAGE_BYTES, Status};

use super::parse::{
    Command, Error, Output, ReplyStyle, Request, data_chunk, error_chunk, hole_chunk, simple,
    status_chunk,
};

/// Extents of one `BLOCK_STATUS` reply. The client asks again for the rest.
const MAX_EXTENTS: usize = 4096;

/// Memory kept when a large read is over, in bytes.
const KEEP_BYTES: usize = 1 << 20;

/// Memory that requests reuse.
#[derive(Debug, Default)]
pub struct Scratch {
    data: Vec<u8>,
    pieces: Vec<Piece>,
    extents: Vec<(u32, bool)>,
}

/// Part of a read reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    /// First byte, counted from the start of the request.
    from: u64,
    len: u64,
    hole: bool,
}

/// Executes `request` and appends its reply to `out`. The reply may be sent when the returned
/// instant has passed.
pub fn execute<D: BlockDevice + ?Sized>(
    device: &D,
    style: ReplyStyle,
    request: &Request,
    payload: &[u8],
    out: &mut Output,
    scratch: &mut Scratch,
) -> Due {
    let cookie = request.cookie;
    let result = match request.command {
        Command::Read { offset, len, whole } => {
            return read(device, style, &Read { cookie, offset, len, whole }, out, scratch);
        }
        Command::BlockStatus { offset, len, one } => {
            let limit = if one { 1 } else { MAX_EXTENTS };
            return block_status(device, cookie, (offset, len), limit, out, scratch);
        }
        Command::Write { offset, fua } => device.write(offset, payload, fua),
        Command::Flush => device.flush(),
        Command::Trim { offset, len, fua } => trim(device, offset, len, fua),
        Command::WriteZeroes { offset, len, may_unmap, fua } => {
            device.write_zeroes(offset, u64::from(len), may_unmap, fua)
        }
    };
    match result {
        Ok(due) => {
            style.ok(out, cookie);
            due
        }
        Err(status) => {
            style.error(out, cookie, status.into());
            None
        }
    }
}

/// A trim has no FUA of its own, so durability takes a flush.
fn trim<D: BlockDevice + ?Sized>(
    device: &D,
    offset: u64,
    len: u32,
    fua: bool,
) -> Result<Due, Status> {
    let due = device.trim(offset, u64::from(len))?;
    if fua { device.flush().map(|flushed| flushed.max(due)) } else { Ok(due) }
}

struct Read {
    cookie: u64,
    offset: u64,
    len: u32,
    whole: bool,
}

fn read<D: BlockDevice + ?Sized>(
    device: &D,
    style: ReplyStyle,
    read: &Read,
    out: &mut Output,
    scratch: &mut Scratch,
) -> Due {
    let mark = out.mark();
    let all_mapped = || {
        let len = u64::from(read.len);
        device.extent(read.offset, len).map_or(true, |e| e.mapped && e.len >= len)
    };
    let result = if !style.structured() {
        read_simple(device, read, out)
    } else if read.whole || all_mapped() {
        read_chunk(device, read, out)
    } else {
        read_pieces(device, read, out, scratch)
    };
    result.unwrap_or_else(|status| {
        out.truncate(mark);
        refuse_read(style, read, status, out);
        None
    })
}

fn refuse_read(style: ReplyStyle, read: &Read, status: Status, out: &mut Output) {
    let error = Error::from(status);
    if !style.structured() {
        return style.error(out, read.cookie, error);
    }
    // The place of the failure is known only if the request lies in one page.
    let last = read.offset + (u64::from(read.len) - 1);
    let one_page = read.offset / PAGE_BYTES == last / PAGE_BYTES;
    let at = (status == Status::MediaError && one_page).then_some(read.offset);
    error_chunk(out, read.cookie, error, at);
}

fn read_simple<D: BlockDevice + ?Sized>(
    device: &D,
    read: &Read,
    out: &mut Output,
) -> Result<Due, Status> {
    simple(out, read.cookie, 0);
    device.read(read.offset, out.extend(size(read.len)))
}

fn read_chunk<D: BlockDevice + ?Sized>(
    device: &D,
    read: &Read,
    out: &mut Output,
) -> Result<Due, Status> {
    data_chunk(out, read.cookie, true, read.offset, read.len);
    device.read(read.offset, out.extend(size(read.len)))
}

/// Reads a range with holes. One read of the device for one request of the client: counters,
/// recordings and the latency model see what the client asked.
fn read_pieces<D: BlockDevice + ?Sized>(
    device: &D,
    read: &Read,
    out: &mut Output,
    scratch: &mut Scratch,
) -> Result<Due, Status> {
    let Scratch { data, pieces, .. } = scratch;
    if data.capacity() > KEEP_BYTES {
        *data = Vec::new();
    }
    data.resize(size(read.len), 0);
    let due = device.read(read.offset, data)?;
    // Asked after the read: a page trimmed in between may be either, and nothing else changes.
    split(device, read, pieces)?;
    let last = pieces.len().saturating_sub(1);
    for (index, piece) in pieces.iter().enumerate() {
        let (offset, is_last) = (read.offset + piece.from, index == last);
        // Both lie inside a 32-bit length.
        let (from, len) = (narrow(piece.from), narrow(piece.len));
        if piece.hole {
            hole_chunk(out, read.cookie, is_last, offset, len);
        } else {
            data_chunk(out, read.cookie, is_last, offset, len);
            out.put(&data[size(from)..size(from) + size(len)]);
        }
    }
    Ok(due)
}

/// Cuts a read into data and holes; only whole pages become holes.
fn split<D: BlockDevice + ?Sized>(
    device: &D,
    read: &Read,
    pieces: &mut Vec<Piece>,
) -> Result<(), Status> {
    pieces.clear();
    let len = u64::from(read.len);
    let mut from = 0;
    while from < len {
        let extent = device.extent(read.offset + from, len - from)?;
        let (start, end) = (from, from + extent.len.clamp(1, len - from));
        from = end;
        let hole = if extent.mapped { None } else { whole_pages(read.offset, start, end) };
        let (hole_start, hole_end) = hole.unwrap_or((end, end));
        push(pieces, start, hole_start, false);
        push(pieces, hole_start, hole_end, true);
        push(pieces, hole_end, end, false);
    }
    Ok(())
}

/// The whole pages in `start..end`, which count from `offset`.
fn whole_pages(offset: u64, start: u64, end: u64) -> Option<(u64, u64)> {
    let first = (offset + start).checked_next_multiple_of(PAGE_BYTES)?;
    let last = (offset + end) / PAGE_BYTES * PAGE_BYTES;
    (first < last).then(|| (first - offset, last - offset))
}

fn push(pieces: &mut Vec<Piece>, from: u64, to: u64, hole: bool) {
    if from == to {
        return;
    }
    match pieces.last_mut() {
        Some(last) if last.hole == hole => last.len += to - from,
        _ => pieces.push(Piece { from, len: to - from, hole }),
    }
}

fn block_status<D: BlockDevice + ?Sized>(
    device: &D,
    cookie: u64,
    range: (u64, u32),
    limit: usize,
    out: &mut Output,
    scratch: &mut Scratch,
) -> Due {
    match extents(device, range, limit, &mut scratch.extents) {
        Ok(()) => status_chunk(out, cookie, &scratch.extents),
        Err(status) => error_chunk(out, cookie, status.into(), None),
    }
    None
}

fn extents<D: BlockDevice + ?Sized>(
    device: &D,
    (offset, len): (u64, u32),
    limit: usize,
    found: &mut Vec<(u32, bool)>,
) -> Result<(), Status> {
    found.clear();
    let mut from = 0;
    while from < len {
        let extent = device.extent(offset + u64::from(from), u64::from(len - from))?;
        let run = narrow(extent.len).clamp(1, len - from);
        let full = found.len() == limit;
        match found.last_mut() {
            Some(last) if last.1 == extent.mapped => last.0 += run,
            _ if full => break,
            _ => found.push((run, extent.mapped)),
        }
        from += run;
    }
    Ok(())
}

fn narrow(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn size(len: u32) -> usize {
    onefold_units::convert::index(len)
}
