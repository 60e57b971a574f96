//! Bringing a device into a state worth measuring. It takes no virtual time, and its counters are
//! discarded.

use onefold_config::{Precondition, Until};
use onefold_nand::{At, Media, Work};
use onefold_ssd::Ssd;
use onefold_units::convert::{float, floor_u64, narrow};
use onefold_units::{Lpn, Nanos, Rng};

use crate::SimError;
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
) -> Result<Preconditioned, SimError> {
    let begin = thread_cpu_s();
    let mut done = Preconditioned::default();
    let units = u64::from(ssd.ftl().host_units());
    ssd.ftl_mut().set_timed(false);
    let fill = floor_u64(what.fill * float(units) + 0.5);
    for n in 0..fill {
        write_unit(ssd, narrow(n % units))?;
    }
    let mut rng = Rng::fork(seed, 31);
    let mut overwrite = |ssd: &mut Ssd<M>, writes: u64| -> Result<f64, SimError> {
        let before = ssd.ftl().stats();
        for _ in 0..writes {
            let unit = narrow(rng.below(units));
            write_unit(ssd, unit)?;
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
    ssd.ftl_mut().set_timed(true);
    done.overwrite_drive_writes = float(written) / float(units);
    done.cpu_s = thread_cpu_s() - begin;
    Ok(done)
}

#[inline]
fn write_unit<M: Media>(ssd: &mut Ssd<M>, unit: u32) -> Result<(), SimError> {
    let at = At { now: Nanos::ZERO, ready: Nanos::ZERO, work: Work::Host };
    let pages = ssd.config().geometry.pages_per_unit();
    let written = ssd.ftl_mut().write(at, Lpn::new(unit), pages, 0, &[]);
    written.map(|_| ()).map_err(|error| SimError::Device {
        request: 0,
        what: format!("preconditioning write of unit {unit}"),
        source: error.into(),
    })
}
