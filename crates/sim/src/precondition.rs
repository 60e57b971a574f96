//! Bringing a device into a state worth measuring. It takes no virtual time, and its counters are
//! discarded.

use onefold_config::{Precondition, Until};
use onefold_ftl::{FtlError, RemapOptions, RemapRange, RemapScheme};
use onefold_nand::{At, Media, NullMedia, Work};
use onefold_ssd::Ssd;
use onefold_units::convert::{float, floor_u64, narrow};
use onefold_units::{Lpn, Nanos, Rng};

use crate::SimError;
use crate::contents::Contents;
use crate::control::{Control, INTERRUPT_EVERY};
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

onefold_units::keep!(Preconditioned { overwrite_drive_writes, waf_last, cpu_s });

/// Windows without a steady state after which the device counts as never steady.
const WINDOWS_MAX: u32 = 400;

/// Windows in a row that have to agree.
const STEADY_WINDOWS: u32 = 3;

/// What is filled and overwritten: a device, or a volume on one. In mapping units of the device.
pub(crate) trait Target {
    fn units(&self) -> u64;
    fn pages_per_unit(&self) -> u64;
    fn write(&mut self, unit: u64) -> Result<(), SimError>;
    /// Writes up to `count` units from `unit` on, and returns how many: none where the next one has to be
    /// written by itself.
    fn write_run(&mut self, _unit: u64, _count: u64) -> u64 {
        0
    }
    /// Pages programmed for any cause so far.
    fn programs(&self) -> u64;
    fn set_timed(&mut self, timed: bool);
    /// The device whose log of remaps can be filled, if there is one.
    fn remapping(&mut self) -> Option<&mut Ssd<NullMedia>>;
}

/// Does `what` so often, and looks now and then whether somebody ends the run.
pub(crate) fn repeat(
    count: u64,
    control: &Control<'_>,
    mut what: impl FnMut(u64) -> Result<(), SimError>,
) -> Result<(), SimError> {
    let mut n = 0;
    while n < count {
        control.go_on()?;
        let end = count.min(n + INTERRUPT_EVERY);
        (n..end).try_for_each(&mut what)?;
        n = end;
    }
    Ok(())
}

pub(crate) fn precondition<T: Target>(
    target: &mut T,
    what: &Precondition,
    seed: u64,
    control: &Control<'_>,
) -> Result<Preconditioned, SimError> {
    let begin = thread_cpu_s();
    let mut done = Preconditioned::default();
    let units = floor_u64(what.range * float(target.units()) + 0.5).max(1);
    let fill = floor_u64(what.fill * float(units) + 0.5);
    target.set_timed(false);
    write_in_order(target, fill, units, control)?;
    let mut rng = Rng::fork(seed, 31);
    let mut overwrite = |target: &mut T, writes: u64| -> Result<f64, SimError> {
        let before = target.programs();
        repeat(writes, control, |_| target.write(rng.below(units)))?;
        let pages = writes * target.pages_per_unit();
        Ok(float(target.programs() - before) / float(pages.max(1)))
    };
    let mut written = 0;
    let asked = floor_u64(what.overwrite * float(units) + 0.5);
    if asked > 0 {
        done.waf_last = overwrite(target, asked)?;
        written += asked;
    }
    if what.until == Until::Steady {
        let window = (units / 4).max(1);
        let mut agreeing = 0;
        for _ in 0..WINDOWS_MAX {
            let waf = overwrite(target, window)?;
            written += window;
            let change = (waf - done.waf_last).abs() / waf.max(f64::MIN_POSITIVE);
            agreeing = if change < 0.01 { agreeing + 1 } else { 0 };
            done.waf_last = waf;
            if agreeing == STEADY_WINDOWS {
                break;
            }
        }
    }
    if let Some(ssd) = target.remapping() {
        fill_log(ssd, what.remap_log, units, (&mut Rng::fork(seed, 32), control))?;
    }
    target.set_timed(true);
    done.overwrite_drive_writes = float(written) / float(units);
    done.cpu_s = thread_cpu_s() - begin;
    Ok(done)
}

/// Units written by themselves before a run is tried again: runs end where superblocks do.
const BY_THEMSELVES: u64 = 32;

/// Writes `count` units in order, from the first again after `units`.
fn write_in_order<T: Target>(
    target: &mut T,
    count: u64,
    units: u64,
    control: &Control<'_>,
) -> Result<(), SimError> {
    let mut n = 0;
    while n < count {
        control.go_on()?;
        let unit = n % units;
        n += target.write_run(unit, (count - n).min(units - unit));
        let end = count.min(n + BY_THEMSELVES);
        (n..end).try_for_each(|n| target.write(n % units))?;
        n = end;
    }
    Ok(())
}

/// A device without a volume. Whole units are written without their taking time.
pub(crate) struct Bare<'a> {
    pub(crate) ssd: &'a mut Ssd<NullMedia>,
    pub(crate) contents: Option<&'a mut Contents>,
}

const AT_ZERO: At = At { now: Nanos::ZERO, ready: Nanos::ZERO, work: Work::Host };

impl Target for Bare<'_> {
    fn units(&self) -> u64 {
        self.ssd.ftl().host_units().into()
    }

    fn pages_per_unit(&self) -> u64 {
        self.ssd.config().geometry.pages_per_unit()
    }

    #[inline]
    fn write(&mut self, unit: u64) -> Result<(), SimError> {
        let pages = self.pages_per_unit();
        let contents = match &mut self.contents {
            Some(contents) => contents.of_pages(unit * pages, pages),
            None => &[],
        };
        let written = self.ssd.prefill(AT_ZERO, Lpn::new(narrow(unit)), contents);
        written.map(|_| ()).map_err(|error| failed("write", narrow(unit), error))
    }

    fn write_run(&mut self, unit: u64, count: u64) -> u64 {
        if self.contents.is_some() {
            return 0;
        }
        self.ssd.prefill_run(Lpn::new(narrow(unit)), narrow(count)).into()
    }

    fn programs(&self) -> u64 {
        self.ssd.ftl().stats().programs.total()
    }

    fn set_timed(&mut self, timed: bool) {
        self.ssd.set_timed(timed);
    }

    fn remapping(&mut self) -> Option<&mut Ssd<NullMedia>> {
        Some(self.ssd)
    }
}

/// Fills a share of the remap log with remaps of random units to others.
fn fill_log<M: Media>(
    ssd: &mut Ssd<M>,
    share: f64,
    units: u64,
    (rng, control): (&mut Rng, &Control<'_>),
) -> Result<(), SimError> {
    let remap = ssd.config().ftl.remap;
    if remap.scheme == RemapScheme::None {
        return Ok(());
    }
    let entries = floor_u64(share * float(remap.log_bytes) / f64::from(remap.entry_bytes()));
    let options = RemapOptions { no_fallback: true, ..RemapOptions::default() };
    repeat(entries, control, |_| {
        let (dst, src) = (narrow(rng.below(units)), narrow(rng.below(units)));
        let range = RemapRange { dst: Lpn::new(dst), src: Lpn::new(src), len: 1 };
        let done = ssd.ftl_mut().remap(AT_ZERO, &[range], options);
        done.map(|_| ()).map_err(|error| failed("remap", dst, error))
    })
}

fn failed(what: &str, unit: u32, error: FtlError) -> SimError {
    let what = format!("preconditioning {what} of unit {unit}");
    SimError::Device { request: 0, what, source: error.into() }
}
