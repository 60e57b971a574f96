//! Bringing a device into a state worth measuring. It takes no virtual time, and its counters are
//! discarded.

use onefold_config::{Precondition, Until};
use onefold_ftl::{FtlError, RemapOptions, RemapRange, RemapScheme};
use onefold_nand::{At, Media, Work};
use onefold_ssd::Ssd;
use onefold_units::convert::{float, floor_u64, narrow};
use onefold_units::{Lpn, Nanos, Rng};

use crate::SimError;
use crate::contents::Contents;
use crate::cpu::thread_cpu_s;

/// What preconditioning did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Preconditioned {
    /// Drive writes of random overwrites.
    pub overwrite_drive_writes: f64,
    /// Write amplification of the last window of overwrites; 0 without.
    pub waf_last: f64,
    /// CPU seconds.
    pub cpu_s: f64,
}

/// Windows without a steady state after which the device counts as never steady.
const WINDOWS_MAX: u32 = 400;

/// Windows in a row that have to agree.
const STEADY_WINDOWS: u32 = 3;

pub(crate) fn precondition<M: Media>(
    ssd: &mut Ssd<M>,
    what: &Precondition,
    seed: u64,
    contents: Option<&mut Contents>,
) -> Result<Preconditioned, SimError> {
    let begin = thread_cpu_s();
    let mut done = Preconditioned::default();
    let device = float(u64::from(ssd.ftl().host_units()));
    let units = floor_u64(what.range * device + 0.5).max(1);
    let fill = floor_u64(what.fill * float(units) + 0.5);
    ssd.set_timed(false);
    let mut filler = Filler::new(ssd, contents);
    for n in 0..fill {
        filler.write(ssd, narrow(n % units))?;
    }
    let mut rng = Rng::fork(seed, 31);
    let mut overwrite = |ssd: &mut Ssd<M>, writes: u64| -> Result<f64, SimError> {
        let before = ssd.ftl().stats();
        for _ in 0..writes {
            let unit = narrow(rng.below(units));
            filler.write(ssd, unit)?;
        }
        let programs = ssd.ftl().stats().since(&before).programs;
        let pages = writes * ssd.config().geometry.pages_per_unit();
        Ok(float(programs.total()) / float(pages.max(1)))
    };
    let mut written = 0;
    let asked = floor_u64(what.overwrite * float(units) + 0.5);
    if asked > 0 {
        done.waf_last = overwrite(ssd, asked)?;
        written += asked;
    }
    if what.until == Until::Steady {
        let window = (units / 4).max(1);
        let mut agreeing = 0;
        for _ in 0..WINDOWS_MAX {
            let waf = overwrite(ssd, window)?;
            written += window;
            let change = (waf - done.waf_last).abs() / waf.max(f64::MIN_POSITIVE);
            agreeing = if change < 0.01 { agreeing + 1 } else { 0 };
            done.waf_last = waf;
            if agreeing == STEADY_WINDOWS {
                break;
            }
        }
    }
    fill_log(ssd, what.remap_log, units, &mut Rng::fork(seed, 32))?;
    ssd.set_timed(true);
    done.overwrite_drive_writes = float(written) / float(units);
    done.cpu_s = thread_cpu_s() - begin;
    Ok(done)
}

/// Writes whole units without their taking time.
struct Filler<'a> {
    contents: Option<&'a mut Contents>,
    pages_per_unit: u64,
}

const AT_ZERO: At = At { now: Nanos::ZERO, ready: Nanos::ZERO, work: Work::Host };

impl<'a> Filler<'a> {
    fn new<M: Media>(ssd: &Ssd<M>, contents: Option<&'a mut Contents>) -> Self {
        Self { contents, pages_per_unit: ssd.config().geometry.pages_per_unit() }
    }

    #[inline]
    fn write<M: Media>(&mut self, ssd: &mut Ssd<M>, unit: u32) -> Result<(), SimError> {
        let pages = self.pages_per_unit;
        let contents = match &mut self.contents {
            Some(contents) => contents.of_pages(u64::from(unit) * pages, pages),
            None => &[],
        };
        let written = ssd.prefill(AT_ZERO, Lpn::new(unit), contents);
        written.map(|_| ()).map_err(|error| failed("write", unit, error))
    }
}

/// Fills a share of the remap log with remaps of random units to others.
fn fill_log<M: Media>(
    ssd: &mut Ssd<M>,
    share: f64,
    units: u64,
    rng: &mut Rng,
) -> Result<(), SimError> {
    let remap = ssd.config().ftl.remap;
    if remap.scheme == RemapScheme::None {
        return Ok(());
    }
    let entries = floor_u64(share * float(remap.log_bytes) / f64::from(remap.entry_bytes()));
    let options = RemapOptions { no_fallback: true, ..RemapOptions::default() };
    for _ in 0..entries {
        let (dst, src) = (narrow(rng.below(units)), narrow(rng.below(units)));
        let range = RemapRange { dst: Lpn::new(dst), src: Lpn::new(src), len: 1 };
        let done = ssd.ftl_mut().remap(AT_ZERO, &[range], options);
        done.map_err(|error| failed("remap", dst, error))?;
    }
    Ok(())
}

fn failed(what: &str, unit: u32, error: FtlError) -> SimError {
    let what = format!("preconditioning {what} of unit {unit}");
    SimError::Device { request: 0, what, source: error.into() }
}
