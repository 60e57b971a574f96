//! The port of the log's NVRAM: appends, scans, compaction, destaging and what collection writes again
//! take turns at it.

use onefold_units::Nanos;

use super::RemapConfig;

/// NVRAM is read and written in lines of this size (remap.md section 1).
const LINE_BYTES: u64 = 64;

/// Times of a line of NVRAM, and until when the port is busy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NvramPort {
    read: Nanos,
    write: Nanos,
    until: Nanos,
}

onefold_units::keep!(NvramPort { until } but { read, write });

impl NvramPort {
    pub(crate) const fn new(config: &RemapConfig) -> Self {
        Self { read: config.nvram_read, write: config.nvram_write, until: Nanos::ZERO }
    }

    /// Reads bytes, not before `ready`; returns when they are there.
    pub(crate) fn read(&mut self, ready: Nanos, bytes: u64) -> Nanos {
        self.keep_busy(ready, self.read.get() * bytes.div_ceil(LINE_BYTES))
    }

    /// Writes bytes, not before `ready`; returns when NVRAM has them.
    pub(crate) fn write(&mut self, ready: Nanos, bytes: u64) -> Nanos {
        self.keep_busy(ready, self.write.get() * bytes.div_ceil(LINE_BYTES))
    }

    fn keep_busy(&mut self, ready: Nanos, nanos: u64) -> Nanos {
        // What moves nothing waits for nobody.
        if nanos == 0 {
            return ready;
        }
        self.until = self.until.max(ready) + Nanos::new(nanos);
        self.until
    }

    /// When it is free.
    #[cfg(test)]
    pub(crate) const fn until(&self) -> Nanos {
        self.until
    }

    /// Idle from now on.
    pub(crate) const fn reset(&mut self) {
        self.until = Nanos::ZERO;
    }
}
