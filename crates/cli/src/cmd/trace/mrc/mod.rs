//! `onefold trace mrc`.

mod render;

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use onefold_buffer::offline::{LruCurve, MissRatios, Sampling};
use onefold_trace::{Record, TraceOp};
use onefold_tracefile::{Meta, TraceSource};
use onefold_units::numbers;

use super::options::ReadArgs;
use super::trace_error;
use crate::error::{CliError, Exit};
use crate::output::{Format, Global, Named};

/// Smallest size of a curve whose sizes are not given, if a page is not larger.
const LEAST_BYTES: u64 = 64 << 10;

/// Sizes of a curve end here: no buffer is larger.
const MOST_BYTES: u64 = 1 << 50;

/// Most sizes of one curve.
const SIZES_MAX: usize = 4096;

/// Options of `trace mrc`.
#[derive(Debug, Args)]
pub(crate) struct Mrc {
    /// Trace file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Unit of the buffer: a power of two from 512 B to 1 MiB. A request accesses every page it touches
    #[arg(long, default_value = "4KiB", value_name = "SIZE", value_parser = parse_page)]
    page: u64,
    /// Sizes of the buffer, such as 1MiB,32MiB,1GiB [default: doubling from 64KiB on, up to all that the trace touches]
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = parse_size)]
    sizes: Vec<u64>,
    /// Sizes in each doubling
    #[arg(long, default_value_t = 1, value_name = "N", conflicts_with = "sizes",
          value_parser = clap::value_parser!(u64).range(1..=64))]
    per_doubling: u64,
    /// Look at a share of the pages, such as 0.01, and estimate the rest: much less time and memory
    #[arg(long, value_name = "SHARE", value_parser = parse_rate)]
    sample_rate: Option<f64>,
    /// Look at this many pages at most, and estimate the rest: constant memory
    #[arg(long, value_name = "N", value_parser = parse_pages, conflicts_with = "sample_rate")]
    sample_pages: Option<NonZeroU32>,
    #[command(flatten)]
    read: ReadArgs,
}

fn parse_size(text: &str) -> Result<u64, String> {
    let size = numbers::size(text).ok().filter(|size| *size > 0);
    size.ok_or_else(|| "expected sizes such as 1MiB,32MiB".to_owned())
}

fn parse_page(text: &str) -> Result<u64, String> {
    let page = numbers::size(text).ok();
    page.filter(|page| page.is_power_of_two() && (512..=1 << 20).contains(page))
        .ok_or_else(|| "expected a power of two from 512B to 1MiB".to_owned())
}

fn parse_rate(text: &str) -> Result<f64, String> {
    let rate = numbers::real(text).filter(|rate| *rate >= 1e-9 && *rate <= 1.0);
    rate.ok_or_else(|| "expected a share from 1e-9 to 1, such as 0.01 or 1%".to_owned())
}

fn parse_pages(text: &str) -> Result<NonZeroU32, String> {
    let pages = numbers::count(text).ok().and_then(|pages| u32::try_from(pages).ok());
    pages
        .and_then(NonZeroU32::new)
        .ok_or_else(|| format!("expected a number from 1 to {}, such as 8k", u32::MAX))
}

/// A curve, and what it is of.
struct Made<'a> {
    meta: &'a Meta,
    page: u64,
    curve: &'a LruCurve,
    sampling: Sampling,
    seed: u64,
    points: Vec<MissRatios>,
}

impl Mrc {
    pub(super) fn run(&self, global: &Global) -> Result<ExitCode, CliError> {
        let sizes = self.sizes()?;
        if global.named == Some(Named::Html) {
            global.expect_page_can_go()?;
        }
        let sampling = match (self.sample_rate, self.sample_pages) {
            (Some(rate), _) => Sampling::Rate(rate),
            (None, Some(pages)) => Sampling::Pages(pages),
            (None, None) => Sampling::All,
        };
        let mut curve = LruCurve::new(sizes, sampling, global.seed);
        let source = read(&self.file, &self.read, self.page, &mut curve, global)?;
        let made = Made {
            meta: source.meta(),
            page: self.page,
            points: self.points(&curve),
            curve: &curve,
            sampling,
            seed: global.seed,
        };
        if global.named == Some(Named::Html) {
            global.write(&render::page(&made))?;
        } else {
            global.emit(&match global.format() {
                Format::Table => render::table(&made),
                Format::Json => render::json(&made),
            })?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Sizes of the curve, in pages.
    fn sizes(&self) -> Result<Vec<u64>, CliError> {
        if self.sizes.len() > SIZES_MAX {
            let text = format!("--sizes has {}, expected at most {SIZES_MAX}", self.sizes.len());
            return Err(CliError::new(Exit::Usage, "usage::sizes", text));
        }
        if let Some(size) = self.sizes.iter().find(|size| !size.is_multiple_of(self.page)) {
            let (size, page) = (numbers::size_text(*size), numbers::size_text(self.page));
            let text = format!("--sizes has {size}, expected multiples of the page, {page}");
            return Err(CliError::new(Exit::Usage, "usage::sizes", text)
                .help("--page is the unit of the buffer"));
        }
        if !self.sizes.is_empty() {
            return Ok(self.sizes.iter().map(|size| size / self.page).collect());
        }
        let mut sizes = Vec::new();
        let mut doubled = LEAST_BYTES.max(self.page);
        while doubled <= MOST_BYTES {
            let steps = 0..self.per_doubling;
            sizes.extend(
                steps.map(|step| (doubled + doubled * step / self.per_doubling) / self.page),
            );
            doubled *= 2;
        }
        Ok(sizes)
    }

    /// What there is to show: sizes that nobody asked for end where a buffer holds all pages.
    fn points(&self, curve: &LruCurve) -> Vec<MissRatios> {
        let all = curve.distinct_pages();
        let mut points: Vec<MissRatios> = curve.miss_ratios().collect();
        if self.sizes.is_empty() {
            let shown =
                points.iter().position(|at| at.pages >= all).map_or(points.len(), |at| at + 1);
            points.truncate(shown);
        }
        points
    }
}

/// Reads a trace once, for a curve.
fn read(
    file: &Path,
    read: &ReadArgs,
    page: u64,
    curve: &mut LruCurve,
    global: &Global,
) -> Result<TraceSource, CliError> {
    let mut source =
        TraceSource::open(file, &read.options(true)?).map_err(|error| trace_error(&error))?;
    global.say(&source.meta().interpretation);
    let mut batch = Vec::new();
    while source.next_batch(&mut batch).map_err(|error| trace_error(&error))? {
        for record in &batch {
            add(curve, record, page);
        }
    }
    for warning in &source.meta().warnings {
        global.say(format_args!("warning: {warning}"));
    }
    Ok(source)
}

/// What a request does to a buffer. Zeroes are deallocated, as the simulator does it.
fn add(curve: &mut LruCurve, record: &Record, page: u64) {
    if record.len == 0 {
        return;
    }
    let first = record.offset / page;
    let pages = record.end().div_ceil(page).saturating_sub(first);
    match record.op {
        TraceOp::Read => curve.read(first, pages),
        TraceOp::Write => curve.write(first, pages),
        TraceOp::Trim | TraceOp::WriteZeroes => curve.trim(first, pages),
        TraceOp::Flush | TraceOp::Remap | TraceOp::Append | TraceOp::Zone => {}
    }
}
