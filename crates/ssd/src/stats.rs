//! What the host asked for.

use onefold_units::Op;

/// Requests and pages of the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostStats {
    /// Read requests.
    pub read_requests: u64,
    /// Write requests.
    pub write_requests: u64,
    /// TRIM and write-zeroes requests.
    pub trim_requests: u64,
    /// Flush requests.
    pub flush_requests: u64,
    /// 4 KiB pages touched by reads.
    pub read_pages: u64,
    /// 4 KiB pages touched by writes.
    pub write_pages: u64,
    /// 4 KiB pages touched by TRIM and write-zeroes.
    pub trim_pages: u64,
    /// Remap commands.
    pub remap_requests: u64,
    /// 4 KiB pages they were to remap.
    pub remap_pages: u64,
}

onefold_units::keep!(HostStats {
    read_requests,
    write_requests,
    trim_requests,
    flush_requests,
    read_pages,
    write_pages,
    trim_pages,
    remap_requests,
    remap_pages
});

impl HostStats {
    /// Counts one request over `pages` 4 KiB pages.
    #[inline]
    pub fn count(&mut self, op: Op, pages: u64) {
        match op {
            Op::Read => {
                self.read_requests += 1;
                self.read_pages += pages;
            }
            Op::Write => {
                self.write_requests += 1;
                self.write_pages += pages;
            }
            Op::Trim | Op::WriteZeroes => {
                self.trim_requests += 1;
                self.trim_pages += pages;
            }
            Op::Flush => self.flush_requests += 1,
        }
    }

    /// Counts one remap command over `pages` 4 KiB pages.
    pub const fn count_remap(&mut self, pages: u64) {
        self.remap_requests += 1;
        self.remap_pages += pages;
    }

    /// All requests.
    #[must_use]
    pub const fn requests(&self) -> u64 {
        self.read_requests
            + self.write_requests
            + self.trim_requests
            + self.flush_requests
            + self.remap_requests
    }

    /// Pages read or written.
    #[must_use]
    pub const fn pages(&self) -> u64 {
        self.read_pages + self.write_pages
    }

    /// What two hosts asked for.
    #[must_use]
    pub const fn plus(&self, other: &Self) -> Self {
        Self {
            read_requests: self.read_requests + other.read_requests,
            write_requests: self.write_requests + other.write_requests,
            trim_requests: self.trim_requests + other.trim_requests,
            flush_requests: self.flush_requests + other.flush_requests,
            read_pages: self.read_pages + other.read_pages,
            write_pages: self.write_pages + other.write_pages,
            trim_pages: self.trim_pages + other.trim_pages,
            remap_requests: self.remap_requests + other.remap_requests,
            remap_pages: self.remap_pages + other.remap_pages,
        }
    }

    /// What was counted since `earlier`, an older state of the same counters.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            read_requests: self.read_requests - earlier.read_requests,
            write_requests: self.write_requests - earlier.write_requests,
            trim_requests: self.trim_requests - earlier.trim_requests,
            flush_requests: self.flush_requests - earlier.flush_requests,
            read_pages: self.read_pages - earlier.read_pages,
            write_pages: self.write_pages - earlier.write_pages,
            trim_pages: self.trim_pages - earlier.trim_pages,
            remap_requests: self.remap_requests - earlier.remap_requests,
            remap_pages: self.remap_pages - earlier.remap_pages,
        }
    }
}
