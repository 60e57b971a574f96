//! Runs one request against a device and encodes its reply. No socket: tests drive it directly.

use onefold_device::{BlockDevice, Due};
use onefold_units::convert::index64;
use onefold_units::{PAGE_BYTES, Status};

use super::parse::{
    Command, DATA_HEAD_BYTES, Error, HOLE_BYTES, Output, ReplyStyle, Request, Run, StatusChunk,
    data_head, error_chunk, hole_chunk, simple, status_bytes,
};

/// Extents of one `BLOCK_STATUS` reply. The client asks again for the rest.
const MAX_EXTENTS: usize = 4096;

/// Executes `request` and appends its reply to `out`. The reply may be sent when the returned
/// instant has passed.
pub fn execute<D: BlockDevice + ?Sized>(
    device: &D,
    style: ReplyStyle,
    request: &Request,
    payload: &[u8],
    out: &mut Output,
) -> Due {
    let cookie = request.cookie;
    let result = match request.command {
        Command::Read { offset, len, whole } => {
            return read(device, style, &Read { cookie, offset, len, whole }, out);
        }
        Command::BlockStatus { offset, len, one } => {
            let limit = if one { 1 } else { MAX_EXTENTS };
            return block_status(device, cookie, (offset, len), limit, out);
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

impl Read {
    /// A part of it as a chunk; both numbers lie inside its length of 32 bits.
    fn run(&self, from: u64, len: u64) -> Run {
        let last = from + len == u64::from(self.len);
        Run { cookie: self.cookie, offset: self.offset + from, len: narrow(len), last }
    }
}

/// The most bytes that the reply to a request takes.
pub(super) fn reply_bytes(command: &Command) -> usize {
    match command {
        Command::Read { len, .. } => DATA_HEAD_BYTES + HOLE_BYTES + size(*len),
        Command::BlockStatus { .. } => status_bytes(MAX_EXTENTS),
        _ => HOLE_BYTES,
    }
}

fn read<D: BlockDevice + ?Sized>(
    device: &D,
    style: ReplyStyle,
    read: &Read,
    out: &mut Output,
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
        read_pieces(device, read, out)
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
    out.put(&data_head(&read.run(0, u64::from(read.len))));
    device.read(read.offset, out.extend(size(read.len)))
}

/// Reads a range with holes. One read of the device for one request of the client: counters,
/// recordings and the latency model see what the client asked.
fn read_pieces<D: BlockDevice + ?Sized>(
    device: &D,
    read: &Read,
    out: &mut Output,
) -> Result<Due, Status> {
    let mark = out.mark();
    let reply = out.extend(DATA_HEAD_BYTES + size(read.len));
    let due = device.read(read.offset, &mut reply[DATA_HEAD_BYTES..])?;
    // Asked after the read: a page trimmed in between may be either, and nothing else changes.
    let len = split(device, read, Pieces { read, reply, end: 0, last: None })?;
    out.shorten(mark, len);
    Ok(due)
}

/// A reply that is cut into chunks in place. A hole takes less room than its zeroes did, and the room
/// before the first byte is that of one header, so that no chunk overtakes the data behind it.
struct Pieces<'a> {
    read: &'a Read,
    /// Room for a header, and the data.
    reply: &'a mut [u8],
    /// Bytes of the chunks that are done.
    end: usize,
    /// The piece that may still grow: first byte, length, whether a hole.
    last: Option<(u64, u64, bool)>,
}

impl Pieces<'_> {
    fn push(&mut self, from: u64, to: u64, hole: bool) {
        if from == to {
            return;
        }
        match &mut self.last {
            Some((_, len, is_hole)) if *is_hole == hole => *len += to - from,
            _ => {
                self.write();
                self.last = Some((from, to - from, hole));
            }
        }
    }

    /// Makes a chunk of the piece that is whole now.
    fn write(&mut self) {
        let Some((from, len, hole)) = self.last.take() else { return };
        let run = self.read.run(from, len);
        if hole {
            self.put(&hole_chunk(&run));
            return;
        }
        self.put(&data_head(&run));
        let data = DATA_HEAD_BYTES + index64(from);
        self.reply.copy_within(data..data + size(run.len), self.end);
        self.end += size(run.len);
    }

    fn put(&mut self, bytes: &[u8]) {
        self.reply[self.end..self.end + bytes.len()].copy_from_slice(bytes);
        self.end += bytes.len();
    }
}

/// Cuts a read into data and holes; only whole pages become holes. Returns the length of the reply.
fn split<D: BlockDevice + ?Sized>(
    device: &D,
    read: &Read,
    mut pieces: Pieces<'_>,
) -> Result<usize, Status> {
    let len = u64::from(read.len);
    let mut from = 0;
    while from < len {
        let extent = device.extent(read.offset + from, len - from)?;
        let (start, end) = (from, from + extent.len.clamp(1, len - from));
        from = end;
        let hole = if extent.mapped { None } else { whole_pages(read.offset, start, end) };
        let (hole_start, hole_end) = hole.unwrap_or((end, end));
        pieces.push(start, hole_start, false);
        pieces.push(hole_start, hole_end, true);
        pieces.push(hole_end, end, false);
    }
    pieces.write();
    Ok(pieces.end)
}

/// The whole pages in `start..end`, which count from `offset`.
fn whole_pages(offset: u64, start: u64, end: u64) -> Option<(u64, u64)> {
    let first = (offset + start).checked_next_multiple_of(PAGE_BYTES)?;
    let last = (offset + end) / PAGE_BYTES * PAGE_BYTES;
    (first < last).then(|| (first - offset, last - offset))
}

fn block_status<D: BlockDevice + ?Sized>(
    device: &D,
    cookie: u64,
    range: (u64, u32),
    limit: usize,
    out: &mut Output,
) -> Due {
    let mark = out.mark();
    if let Err(status) = extents(device, range, limit, &mut StatusChunk::new(out, cookie)) {
        out.truncate(mark);
        error_chunk(out, cookie, status.into(), None);
    }
    None
}

/// Puts the extents of a range into `chunk`, at most `limit`; neighbours of one kind are one extent.
fn extents<D: BlockDevice + ?Sized>(
    device: &D,
    (offset, len): (u64, u32),
    limit: usize,
    chunk: &mut StatusChunk<'_>,
) -> Result<(), Status> {
    let (mut from, mut found) = (0, 0);
    let mut last: Option<(u32, bool)> = None;
    while from < len {
        let extent = device.extent(offset + u64::from(from), u64::from(len - from))?;
        let run = narrow(extent.len).clamp(1, len - from);
        from += run;
        match &mut last {
            Some((len, mapped)) if *mapped == extent.mapped => *len += run,
            _ => {
                if let Some((len, mapped)) = last.replace((run, extent.mapped)) {
                    chunk.push(len, mapped);
                    found += 1;
                }
                if found == limit {
                    return Ok(());
                }
            }
        }
    }
    if let Some((len, mapped)) = last {
        chunk.push(len, mapped);
    }
    Ok(())
}

fn narrow(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn size(len: u32) -> usize {
    onefold_units::convert::index(len)
}
