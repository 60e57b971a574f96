//! `onefold ssd remap` and `onefold ssd clone`.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use onefold_device::mailbox::{RangeResult, RemapFlags, Remapped, VectorRange};
use onefold_units::PAGE_BYTES;
use serde_json::{Value, json};

use super::reach::Place;
use super::render;
use crate::error::{CliError, Exit};
use crate::output::{Format, Global};

/// Options of `onefold ssd remap`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "independent flags of a command line")]
pub(crate) struct Remap {
    #[command(flatten)]
    place: Place,
    /// Let LEN bytes at DST hold what LEN bytes at SRC hold (up to 168 times); all sources count as
    /// they are before the command
    #[arg(
        long = "copy",
        required = true,
        num_args = 3,
        value_names = ["DST", "SRC", "LEN"],
        value_parser = render::parse_offset
    )]
    copies: Vec<u64>,
    /// Unmap the sources, which read as zeroes afterwards
    #[arg(long = "move", conflicts_with = "move_on_flush")]
    moves: bool,
    /// Unmap the sources at the next flush, unless they were written since
    #[arg(long)]
    move_on_flush: bool,
    /// All or nothing, also over a power cut
    #[arg(long)]
    atomic: bool,
    /// Remap only pages whose contents are equal already
    #[arg(long)]
    verify_equal: bool,
    /// Skip what cannot be shared instead of copying it
    #[arg(long)]
    no_fallback: bool,
    /// Number of the command: one that was done is not done again [default: random]
    #[arg(long, value_name = "HEX", value_parser = parse_id)]
    cmd_id: Option<u128>,
}

/// Options of `onefold ssd clone`.
#[derive(Debug, Args)]
pub(crate) struct Clone {
    #[command(flatten)]
    place: Place,
    /// Where the content is
    #[arg(long, value_name = "OFFSET", value_parser = render::parse_offset)]
    src: u64,
    /// Where it is to be as well; what was there is gone
    #[arg(long, value_name = "OFFSET", value_parser = render::parse_offset)]
    dst: u64,
    /// How much
    #[arg(long, value_name = "SIZE", value_parser = render::parse_size)]
    len: u64,
}

fn parse_id(text: &str) -> Result<u128, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let id = u128::from_str_radix(digits, 16).ok().filter(|id| *id != 0);
    id.ok_or_else(|| format!("found {text:?}, expected 1 to 32 hexadecimal digits, not all zero"))
}

/// Bytes as units of the mailbox.
pub(super) fn units(what: &str, bytes: u64) -> Result<u64, CliError> {
    if bytes.is_multiple_of(PAGE_BYTES) {
        return Ok(bytes / PAGE_BYTES);
    }
    let text = format!("{what} is {bytes} B, expected a multiple of 4 KiB");
    Err(CliError::new(Exit::Usage, "remap::unaligned", text))
}

fn range(dst: u64, src: u64, len: u64) -> Result<VectorRange, CliError> {
    let (dst, src, pages) = (units("DST", dst)?, units("SRC", src)?, units("LEN", len)?);
    let too_long = |_| {
        let text = format!("LEN is {len} B, more than one range may have: split it");
        CliError::new(Exit::Usage, "remap::length", text)
    };
    Ok(VectorRange { dst, src, len: u32::try_from(pages).map_err(too_long)? })
}

impl Remap {
    pub(super) fn run(&self, global: &Global) -> Result<ExitCode, CliError> {
        let (triples, _) = self.copies.as_chunks::<3>();
        let ranges: Vec<VectorRange> = triples
            .iter()
            .map(|[dst, src, len]| range(*dst, *src, *len))
            .collect::<Result<_, _>>()?;
        execute(global, &self.place, "onefold.ssd.remap/1", self.flags(), self.cmd_id, &ranges)
    }

    fn flags(&self) -> RemapFlags {
        [
            (self.moves, RemapFlags::MOVE),
            (self.move_on_flush, RemapFlags::MOVE_ON_FLUSH),
            (self.atomic, RemapFlags::ATOMIC),
            (self.verify_equal, RemapFlags::VERIFY_EQUAL),
            (self.no_fallback, RemapFlags::NO_FALLBACK),
        ]
        .into_iter()
        .filter(|(chosen, _)| *chosen)
        .fold(RemapFlags::COPY, |flags, (_, flag)| flags.with(flag))
    }
}

impl Clone {
    pub(super) fn run(&self, global: &Global) -> Result<ExitCode, CliError> {
        let ranges = [range(self.dst, self.src, self.len)?];
        execute(global, &self.place, "onefold.ssd.clone/1", RemapFlags::COPY, None, &ranges)
    }
}

fn execute(
    global: &Global,
    place: &Place,
    schema: &str,
    flags: RemapFlags,
    cmd_id: Option<u128>,
    ranges: &[VectorRange],
) -> Result<ExitCode, CliError> {
    let (done, took) = place.reach(global)?.run(|client| {
        let begin = Instant::now();
        client.remap(flags, cmd_id, ranges).map(|done| (done, begin.elapsed()))
    })?;
    let text = match global.format() {
        Format::Json => format!("{:#}\n", as_json(schema, &done, took, ranges)),
        Format::Table => table(&done, took),
    };
    global.emit(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// A duration in milliseconds.
pub(super) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn as_json(schema: &str, done: &Remapped, took: Duration, ranges: &[VectorRange]) -> Value {
    let each = |(range, result): (&VectorRange, &RangeResult)| {
        json!({
            "dst": range.dst * PAGE_BYTES,
            "src": range.src * PAGE_BYTES,
            "len": u64::from(range.len) * PAGE_BYTES,
            "remapped_pages": result.remapped,
            "copied_pages": result.copied,
            "skipped_pages": result.skipped,
        })
    };
    json!({
        "schema": schema,
        "cmd_id": format!("{:032x}", done.cmd_id),
        "repeated": done.results.is_empty(),
        "ranges": ranges.iter().zip(&done.results).map(each).collect::<Vec<_>>(),
        "wall_ms": millis(took),
    })
}

fn table(done: &Remapped, took: Duration) -> String {
    let id = done.cmd_id;
    if done.results.is_empty() {
        return format!("command {id:032x} was done before and was not done again\n");
    }
    let sum = |pages: fn(&RangeResult) -> u32| {
        let pages: u64 = done.results.iter().map(|result| u64::from(pages(result))).sum();
        render::size(pages * PAGE_BYTES)
    };
    let number = if id == 0 { String::new() } else { format!(" (command {id:032x})") };
    format!(
        "remapped {}, copied {}, skipped {} in {:.2} ms{number}\n",
        sum(|result| result.remapped),
        sum(|result| result.copied),
        sum(|result| result.skipped),
        millis(took),
    )
}

#[cfg(test)]
mod tests {
    use super::{parse_id, range};

    #[test]
    fn numbers_are_checked() {
        assert_eq!(parse_id("ff"), Ok(255));
        assert_eq!(parse_id("0x10"), Ok(16));
        assert_eq!(parse_id(&"f".repeat(32)), Ok(u128::MAX));
        for bad in ["", "0", "g", "-1", &"f".repeat(33)] {
            assert!(parse_id(bad).is_err(), "{bad}");
        }
        assert!(range(4096, 0, 8192).is_ok());
        assert!(range(1, 0, 4096).is_err() && range(0, 0, 5000).is_err());
        assert!(range(0, 0, 1 << 44).is_err(), "2^32 pages");
    }
}
