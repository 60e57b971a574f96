//! Which format a file has, by its first 64 KiB and never by its name.
//!
//! Each rule judges the first 200 data lines; the first that fits at least 95 % of them wins.

use onefold_units::convert::u64_from;

use crate::closest::closest;
use crate::cursor::trim_end;
use crate::formats::{ONEFOLD_CSV_HEADER, VSCSI_CSV_HEADER, Vscsi, blktrace_magic};
use crate::{DetectError, Format, oft};

/// How much of a decompressed file detection looks at.
pub const HEAD_BYTES: usize = 64 << 10;

/// Data lines looked at.
const LINES: usize = 200;

/// Share of lines, in percent, that must fit.
const FIT_PERCENT: u64 = 95;

/// vSCSI records that must fit.
const VSCSI_RECORDS: usize = 16;

/// Rows of `DiskSim` shape whose addresses all look like bytes.
const BYTES_ALIGN: u64 = 512;
/// A size above this many "sectors" would be more than 4 MiB: probably bytes.
const SECTORS_MAX: u64 = 8_192;

/// Whether a line fits a format.
type Rule = fn(&[u8]) -> bool;

/// Names the format of a file that starts with `head`; `complete` tells that this is all of it.
pub fn detect(head: &[u8], complete: bool) -> Result<Format, DetectError> {
    if head.is_empty() {
        return Err(DetectError::Empty);
    }
    if let Some(format) = binary(head) {
        return Ok(format);
    }
    let lines = lines(head, complete);
    if let Some(format) = marked(&lines) {
        return Ok(format);
    }
    if let Some(found) = disksim_or_ioda(&lines) {
        return found;
    }
    let rules: [(Format, Rule); 12] = [
        (Format::Blkparse, is_blkparse),
        (Format::Fiu, is_fiu),
        (Format::Appdedupe, is_appdedupe),
        (Format::Diskmon, is_diskmon),
        (Format::Ssdsim, is_ssdsim),
        (Format::Msr, is_msr),
        (Format::Spc, is_spc),
        (Format::Systor, is_systor),
        (Format::Alibaba, is_alibaba),
        (Format::K5cloud, is_k5cloud),
        (Format::Tencent, is_tencent),
        (Format::OnefoldCsv, is_onefold_csv),
    ];
    for (at, (format, rule)) in rules.iter().enumerate() {
        let fitting = fitting(&lines, *rule);
        if !enough(fitting, &lines) {
            continue;
        }
        let rival =
            rules.iter().skip(at + 1).find(|(_, other)| self::fitting(&lines, *other) == fitting);
        return rival
            .map_or(Ok(*format), |(other, _)| Err(DetectError::Ambiguous(*format, *other)));
    }
    Err(unknown(head, complete))
}

fn unknown(head: &[u8], complete: bool) -> DetectError {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let first = crate::cursor::excerpt(trim_end(line), 0);
    DetectError::Unknown { first, closest: closest(head, complete).map(Box::new) }
}

fn binary(head: &[u8]) -> Option<Format> {
    if head.starts_with(&oft::MAGIC) {
        return Some(Format::Oft);
    }
    if head.starts_with(b"PAR1") {
        return Some(Format::Parquet);
    }
    if blktrace_magic(head) {
        return Some(Format::Blktrace);
    }
    if is_vscsi(head, &Vscsi::VERSION_1) {
        return Some(Format::Vscsi1);
    }
    is_vscsi(head, &Vscsi::VERSION_2).then_some(Format::Vscsi2)
}

/// 16 records, or as many as there are, with the version, a known command and rising times.
fn is_vscsi(head: &[u8], shape: &Vscsi) -> bool {
    let mut records = head.chunks_exact(shape.length).take(VSCSI_RECORDS).peekable();
    if records.peek().is_none() {
        return false;
    }
    let mut last = 0;
    records.all(|record| {
        // Clocks of several CPUs may step back a little; a second is not a little.
        let time = shape.looks_right(record).filter(|time| time.saturating_add(1_000_000) >= last);
        last = time.unwrap_or(last);
        time.is_some()
    })
}

fn lines(head: &[u8], complete: bool) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = head.split(|byte| *byte == b'\n').map(trim_end).collect();
    // The last piece is cut somewhere, or empty after a final newline.
    if !complete && lines.len() > 1 {
        lines.pop();
    }
    // The summary of blkparse is no data.
    let end = lines.iter().position(|line| crate::formats::is_blkparse_summary(line));
    lines.truncate(end.unwrap_or(lines.len()));
    lines.retain(|line| !line.is_empty());
    lines.truncate(LINES + 1);
    lines
}

/// First lines and marks that only one format has.
fn marked(lines: &[&[u8]]) -> Option<Format> {
    let first = *lines.first()?;
    if first.starts_with(b"fio version ") {
        return Some(Format::FioIolog);
    }
    if first == ONEFOLD_CSV_HEADER.as_bytes() {
        return Some(Format::OnefoldCsv);
    }
    if first == VSCSI_CSV_HEADER.as_bytes() {
        return Some(Format::VscsiCsv);
    }
    if first.starts_with(b"Timestamp,Hostname,") {
        return Some(Format::Msr);
    }
    if first.starts_with(b"Timestamp,Response,") || first.starts_with(b"Timestamp,IOType,") {
        return Some(Format::Systor);
    }
    let holds = |mark: &[u8]| {
        lines.iter().any(|line| line.windows(mark.len()).any(|window| window == mark))
    };
    if holds(b": block_rq_issue: ") || holds(b": block_bio_queue: ") {
        return Some(Format::Tracefs);
    }
    holds(b" connection=").then_some(Format::NbdkitLog)
}

fn fitting(lines: &[&[u8]], rule: Rule) -> u64 {
    u64_from(lines.iter().filter(|line| rule(line)).count())
}

fn enough(fitting: u64, lines: &[&[u8]]) -> bool {
    fitting > 0 && fitting * 100 >= u64_from(lines.len()) * FIT_PERCENT
}

/// Five numbers, the first with a point: sectors or bytes is a guess the data may settle.
fn disksim_or_ioda(lines: &[&[u8]]) -> Option<Result<Format, DetectError>> {
    let fits = |line: &[u8]| {
        let [time, rest @ .., kind] = &blank_fields(line)[..] else { return false };
        is_decimal(time)
            && time.contains(&b'.')
            && rest.len() == 3
            && rest.iter().all(|field| is_integer(field))
            && is_integer(kind)
    };
    let matching: Vec<&[u8]> = lines.iter().copied().filter(|line| fits(line)).collect();
    if !enough(u64_from(matching.len()), lines) {
        return None;
    }
    let number = |line: &[u8], at: usize| {
        blank_fields(line).get(at).and_then(|field| parse(field)).unwrap_or(1)
    };
    let bytes = matching.iter().all(|line| {
        number(line, 2).is_multiple_of(BYTES_ALIGN) && number(line, 3).is_multiple_of(BYTES_ALIGN)
    });
    let large = matching.iter().any(|line| number(line, 3) > SECTORS_MAX);
    Some(if bytes && large {
        Err(DetectError::Ambiguous(Format::Ioda, Format::Disksim))
    } else {
        Ok(Format::Disksim)
    })
}

fn blank_fields(line: &[u8]) -> Vec<&[u8]> {
    line.split(|byte| matches!(byte, b' ' | b'\t')).filter(|field| !field.is_empty()).collect()
}

fn comma_fields(line: &[u8]) -> Vec<&[u8]> {
    line.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).collect()
}

fn is_integer(field: &[u8]) -> bool {
    !field.is_empty() && field.iter().all(u8::is_ascii_digit)
}

fn is_decimal(field: &[u8]) -> bool {
    field.first().is_some_and(u8::is_ascii_digit)
        && field.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.')
        && field.splitn(3, |byte| *byte == b'.').count() <= 2
}

fn parse(field: &[u8]) -> Option<u64> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

fn is_letter(field: &[u8], letters: &[u8]) -> bool {
    matches!(field, [letter] if letters.contains(letter))
}

fn is_hex(field: &[u8]) -> bool {
    !field.is_empty() && field.iter().all(u8::is_ascii_hexdigit)
}

fn is_blkparse(line: &[u8]) -> bool {
    let fields = blank_fields(line);
    let device = |field: &[u8]| {
        let mut parts = field.split(|byte| *byte == b',');
        parts.next().is_some_and(is_integer)
            && parts.next().is_some_and(is_integer)
            && parts.next().is_none()
    };
    let [device_field, cpu, seq, time, pid, action, ..] = &fields[..] else { return false };
    device(device_field)
        && [cpu, seq, pid].iter().all(|field| is_integer(field))
        && is_decimal(time)
        && action.len() <= 2
        && action.iter().all(u8::is_ascii_alphabetic)
}

fn is_fiu(line: &[u8]) -> bool {
    let fields = blank_fields(line);
    let [time, pid, _, lba, size, op, major, minor, md5] = &fields[..] else { return false };
    is_decimal(time)
        && [pid, lba, size, major, minor].iter().all(|field| is_integer(field))
        && is_letter(op, b"RWFDZ")
        && (*md5 == b"-" || is_hex(md5))
}

fn is_appdedupe(line: &[u8]) -> bool {
    let fields = blank_fields(line);
    let [time, op, lba, size, pid, _, md5s] = &fields[..] else { return false };
    is_decimal(time)
        && is_letter(op, b"RWrw")
        && [lba, size, pid].iter().all(|field| is_integer(field))
        && md5s.split(|byte| *byte == b'-').all(|md5| md5.is_empty() || is_hex(md5))
}

fn is_diskmon(line: &[u8]) -> bool {
    let fields = blank_fields(line);
    let [seq, time, duration, _, op, sector, count] = &fields[..] else { return false };
    [seq, sector, count].iter().all(|field| is_integer(field))
        && is_decimal(time)
        && is_decimal(duration)
        && [&b"Read"[..], b"Write"].contains(op)
}

fn is_ssdsim(line: &[u8]) -> bool {
    let fields = blank_fields(line);
    let [rest @ .., kind] = &fields[..] else { return false };
    rest.len() == 4 && rest.iter().all(|field| is_integer(field)) && is_letter(kind, b"01")
}

fn is_msr(line: &[u8]) -> bool {
    let fields = comma_fields(line);
    let [time, _, _, op, offset, size, response] = &fields[..] else { return false };
    [offset, size, response].iter().all(|field| is_integer(field))
        && is_decimal(time)
        && [&b"Read"[..], b"Write"].contains(op)
}

fn is_spc(line: &[u8]) -> bool {
    let fields = comma_fields(line);
    let [asu, lba, size, op, time, ..] = &fields[..] else { return false };
    [asu, lba, size].iter().all(|field| is_integer(field))
        && is_letter(op, b"rRwW")
        && is_decimal(time)
}

fn is_systor(line: &[u8]) -> bool {
    let fields = comma_fields(line);
    let [time, second, third, fourth, fifth, sixth] = &fields[..] else { return false };
    let op = |field: &[u8]| field.is_empty() || is_letter(field, b"RW");
    let number = |field: &[u8]| field.is_empty() || is_decimal(field);
    is_decimal(time)
        && time.contains(&b'.')
        && (op(third) && number(second) && is_integer(fifth) && is_integer(sixth)
            || op(second) && is_integer(fourth) && is_integer(fifth) && number(sixth))
}

fn is_alibaba(line: &[u8]) -> bool {
    let fields = comma_fields(line);
    let [_, op, offset, length, time] = &fields[..] else { return false };
    is_letter(op, b"RW") && [offset, length, time].iter().all(|field| is_integer(field))
}

fn is_k5cloud(line: &[u8]) -> bool {
    let fields = comma_fields(line);
    let [_, time, op, offset, size] = &fields[..] else { return false };
    is_letter(op, b"RW") && is_decimal(time) && is_integer(offset) && is_integer(size)
}

fn is_tencent(line: &[u8]) -> bool {
    let fields = comma_fields(line);
    let [time, offset, size, kind, volume] = &fields[..] else { return false };
    [time, offset, size, volume].iter().all(|field| is_integer(field)) && is_letter(kind, b"01")
}

/// Onefold CSV that lost its header.
fn is_onefold_csv(line: &[u8]) -> bool {
    let fields = comma_fields(line);
    let [time, op, sector, count, flags, latency] = &fields[..] else { return false };
    [time, sector, count].iter().all(|field| is_integer(field))
        && is_letter(op, b"RWFDZ")
        && flags.iter().all(|flag| b"SMAF".contains(flag))
        && (is_integer(latency) || *latency == b"-1")
}
