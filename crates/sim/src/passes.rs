//! Passes over traces: a short one is replayed again until it has shown what it does to a drive.

use onefold_config::{Run, Until};
use onefold_units::convert::float;

use crate::series::Windowed;

/// Passes without a steady state after which the load counts as never steady.
const PASSES_MAX: u32 = 1000;

/// Changes of the WAF below this one are none.
const STEADY: f64 = 0.01;

/// Passes in a row that have to agree with the one before.
const STEADY_PASSES: u32 = 2;

/// What was written so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Written {
    /// Pages programmed.
    programs: u64,
    /// Superblocks erased.
    erases: u64,
    /// Pages that the load wrote.
    host: u64,
}

onefold_units::keep!(Written { programs, erases, host });

impl Written {
    pub(crate) fn of(device: &impl Windowed, host: u64) -> Self {
        Self { programs: device.programs().total(), erases: device.erases(), host }
    }
}

/// How many passes there are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passes {
    until: Until,
    asked: u32,
    /// Those that are over.
    pub(crate) done: u32,
    /// When the last one was over.
    before: Written,
    waf: f64,
    agreeing: u32,
}

onefold_units::keep!(Passes { done, before, waf, agreeing } but { until, asked });

impl Passes {
    pub(crate) fn new(run: &Run) -> Self {
        let (until, asked) = (run.until, run.repeat);
        Self { until, asked, done: 0, before: Written::default(), waf: 0.0, agreeing: 0 }
    }

    /// A pass begins.
    pub(crate) const fn begin(&mut self, written: Written) {
        self.before = written;
    }

    /// A pass is over. Whether there is another one.
    pub(crate) fn again(&mut self, written: Written) -> bool {
        let before = self.before;
        let programs = written.programs - before.programs;
        let waf = float(programs) / float((written.host - before.host).max(1));
        let change = (waf - self.waf).abs() / waf.max(f64::MIN_POSITIVE);
        // A drive that fills has the WAF of one with free space, for as long as there is some.
        let fills = programs > 0 && written.erases == before.erases;
        let agrees = self.done > 0 && change < STEADY && !fills;
        self.agreeing = if agrees { self.agreeing + 1 } else { 0 };
        (self.waf, self.before) = (waf, written);
        self.done += 1;
        match self.until {
            Until::Count => self.done < self.asked,
            Until::Steady => !self.is_steady() && self.done < PASSES_MAX,
        }
    }

    const fn is_steady(&self) -> bool {
        self.agreeing >= STEADY_PASSES
    }

    /// Whether the last pass alone is measured.
    pub(crate) fn measures_the_last(&self) -> bool {
        self.until == Until::Steady
    }

    /// Whether a steady state was looked for and not found.
    pub(crate) fn never_steady(&self) -> bool {
        self.until == Until::Steady && self.done > 0 && !self.is_steady()
    }
}

#[cfg(test)]
mod tests {
    use onefold_config::{Config, Sources};

    use super::*;

    fn passes(set: &str, wafs: impl IntoIterator<Item = u64>) -> Passes {
        let sets = [set.to_owned()];
        let config = Config::load(&Sources { sets: &sets, ..Sources::default() });
        let mut passes = Passes::new(&config.expect("a configuration").run());
        let mut written = Written { programs: 500, erases: 3, host: 70 };
        passes.begin(written);
        for waf in wafs {
            written.programs += waf;
            // The first four fill it.
            written.erases += u64::from(passes.done >= 4);
            written.host += 1000;
            if !passes.again(written) {
                break;
            }
        }
        passes
    }

    #[test]
    fn as_many_as_asked_or_until_the_write_amplification_stays() {
        assert_eq!(passes("run.repeat=1", [1000; 9]).done, 1);
        assert_eq!(passes("run.repeat=4", [1000; 9]).done, 4);
        let rising = [1000, 1000, 1000, 1000, 1500, 1800, 1900, 1905, 1903, 1904, 1904];
        let steady = passes("run.until=steady", rising);
        assert_eq!((steady.done, steady.never_steady()), (9, false));
        let never = passes("run.until=steady", (0..2000).map(|n| 1000 + n % 2 * 500));
        assert_eq!((never.done, never.never_steady()), (PASSES_MAX, true));
        // Nothing is written.
        assert_eq!(passes("run.until=steady", [0; 9]).done, 3);
    }
}
