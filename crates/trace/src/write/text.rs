//! The lines of the text formats.

use std::io::Write;

use onefold_units::SECTOR_BYTES;
use onefold_units::convert::index;

use crate::{Flags, Record, TraceOp};

/// FILETIME of 1970-01-01 and nanoseconds per tick.
const UNIX_EPOCH_TICKS: u64 = 116_444_736_000_000_000;
const TICK_NS: u64 = 100;

/// Appends a line.
pub(super) fn line(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
    out.push(b'\n');
}

/// Appends a formatted line.
fn put(out: &mut Vec<u8>, arguments: std::fmt::Arguments<'_>) {
    // Writing to a vector cannot fail.
    let _ = out.write_fmt(arguments);
}

/// First sector and sectors of a request widened to whole sectors.
fn sectors(record: &Record) -> (u64, u64) {
    let first = record.offset / SECTOR_BYTES;
    if record.len == 0 {
        return (first, 0);
    }
    (first, (record.end() - 1) / SECTOR_BYTES - first + 1)
}

pub(super) fn onefold_csv(record: &Record, out: &mut Vec<u8>) {
    let op = match record.op {
        TraceOp::Read => 'R',
        TraceOp::Write => 'W',
        TraceOp::Flush => 'F',
        TraceOp::Trim => 'D',
        _ => 'Z',
    };
    let (first, count) = sectors(record);
    put(out, format_args!("{},{op},{first},{count},", record.t_ns));
    for (flag, letter) in
        [(Flags::SYNC, b'S'), (Flags::READAHEAD, b'A'), (Flags::META, b'M'), (Flags::FUA, b'F')]
    {
        if record.flags.has(flag) {
            out.push(letter);
        }
    }
    match record.lat_ns {
        Some(ns) => put(out, format_args!(",{ns}\n")),
        None => out.extend_from_slice(b",-1\n"),
    }
}

/// The name of a device, or its number.
fn name(record: &Record, devices: &[String]) -> String {
    let number = u32::from(record.dev);
    devices.get(index(number)).cloned().unwrap_or_else(|| format!("dev{number}"))
}

pub(super) fn msr(record: &Record, epoch_unix_ns: u64, devices: &[String], out: &mut Vec<u8>) {
    let ticks =
        UNIX_EPOCH_TICKS.saturating_add(epoch_unix_ns.saturating_add(record.t_ns) / TICK_NS);
    let name = name(record, devices).replace([',', ' '], "_");
    // The names of MSR end in a disk number; others get one.
    let (host, disk) = match name.rsplit_once('_') {
        Some((host, disk)) if disk.bytes().all(|b| b.is_ascii_digit()) && !disk.is_empty() => {
            (host, disk)
        }
        _ => (name.as_str(), "0"),
    };
    let op = if record.op == TraceOp::Read { "Read" } else { "Write" };
    let response = record.lat_ns.unwrap_or(0) / TICK_NS;
    let (offset, len) = (record.offset, record.len);
    put(out, format_args!("{ticks},{host},{disk},{op},{offset},{len},{response}\n"));
}

pub(super) fn simulator(record: &Record, out: &mut Vec<u8>) {
    let (first, count) = sectors(record);
    let kind = u8::from(record.op == TraceOp::Read);
    put(out, format_args!("{} {} {first} {count} {kind}\n", record.t_ns, record.dev));
}

pub(super) fn fio_iolog(
    record: &Record,
    devices: &[String],
    seen: &mut Vec<bool>,
    out: &mut Vec<u8>,
) {
    let file = name(record, devices).replace(' ', "_");
    let us = record.t_ns / 1_000;
    let place = index(u32::from(record.dev));
    if seen.len() <= place {
        seen.resize(place + 1, false);
    }
    if let Some(seen) = seen.get_mut(place)
        && !*seen
    {
        *seen = true;
        put(out, format_args!("{us} {file} add\n{us} {file} open\n"));
    }
    let (offset, len) = (record.offset, record.len);
    match record.op {
        TraceOp::Flush => put(out, format_args!("{us} {file} sync 0 0\n")),
        TraceOp::Read => put(out, format_args!("{us} {file} read {offset} {len}\n")),
        TraceOp::Trim => put(out, format_args!("{us} {file} trim {offset} {len}\n")),
        _ => put(out, format_args!("{us} {file} write {offset} {len}\n")),
    }
}

pub(super) fn fio_close(devices: &[String], seen: &[bool], out: &mut Vec<u8>) {
    for (at, _) in seen.iter().enumerate().filter(|(_, seen)| **seen) {
        match devices.get(at) {
            Some(name) => put(out, format_args!("0 {} close\n", name.replace(' ', "_"))),
            None => put(out, format_args!("0 dev{at} close\n")),
        }
    }
}
