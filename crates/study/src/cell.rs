//! One policy of one size while a workload runs through it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use onefold_buffer::{Actions, BufferConfig, Policy, Sizes, Stats, new_policy};

use crate::cpu::thread_cpu;
use crate::file::{Study, Subject};
use crate::latency::{Clocks, Timer};
use crate::row::Row;
use crate::stream::Block;

/// A buffer and what it did since the warm-up.
pub(crate) struct Cell {
    /// The row to be, with its names.
    row: Row,
    policy: Option<Box<dyn Policy + Send>>,
    /// Only the requests of this tenant count.
    only: Option<u8>,
    warm: Stats,
    clocks: Clocks,
    actions: Actions,
    cpu: Duration,
    /// What is built anew when the warm-up ends, if nothing of it is kept.
    anew: Option<BufferConfig>,
    sizes: Sizes,
}

impl Cell {
    /// Builds the buffer; if that fails, the row has the reason.
    pub(crate) fn new(
        study: &Study,
        subject: &Subject,
        target: Option<u8>,
        (sizes, timers): (Sizes, &[Timer]),
        mut row: Row,
    ) -> Self {
        let (config, only) = match subject {
            Subject::Policy(spec) | Subject::Empty(spec) => {
                (study.buffer(*spec, row.size_bytes), None)
            }
            Subject::Bound(_) => (study.buffer_of_bound(row.size_bytes), target),
            // No point of such a study becomes a cell.
            Subject::Device(_) => unreachable!("a device is no buffer"),
        };
        let mut policy = None;
        match guarded(|| new_policy(&config, &sizes)) {
            Ok(Ok(built)) => {
                row.slots = built.slots();
                policy = Some(built);
            }
            Ok(Err(error)) => row.error = Some(error.to_string()),
            Err(bug) => row.error = Some(bug),
        }
        let clocks = Clocks::new(timers, row.tenants.len());
        let (warm, actions, cpu) = (Stats::default(), Actions::counting(), Duration::ZERO);
        let anew = matches!(subject, Subject::Empty(_)).then_some(config);
        Self { row, policy, only, warm, clocks, actions, cpu, anew, sizes }
    }

    /// Whether requests would change anything.
    pub(crate) const fn is_alive(&self) -> bool {
        self.policy.is_some()
    }

    /// Runs a block of requests.
    pub(crate) fn run(&mut self, block: &Block) {
        let Some(mut policy) = self.policy.take() else { return };
        let start = thread_cpu();
        let done = guarded(|| self.requests(policy.as_mut(), block));
        self.cpu += thread_cpu().saturating_sub(start);
        match done {
            Ok(()) => self.policy = Some(policy),
            Err(bug) => self.row.error = Some(bug),
        }
    }

    fn requests(&mut self, policy: &mut dyn Policy, block: &Block) {
        let Self { row, only, clocks, actions, .. } = self;
        block.replay(|req, view| {
            if only.is_some_and(|only| only != req.tenant) {
                return;
            }
            policy.request(req, view, actions);
            row.requests += 1;
            clocks.add(req, actions.counts());
        });
    }

    /// Forgets what was counted so far, but not what is buffered, unless the buffer begins empty.
    pub(crate) fn end_warm_up(&mut self) {
        if let (Some(config), Some(_)) = (&self.anew, &self.policy) {
            // It could be built before.
            self.policy = new_policy(config, &self.sizes).ok();
        }
        if let Some(policy) = &self.policy {
            self.warm = policy.stats().clone();
        }
        self.clocks = self.clocks.go_on(self.row.tenants.len());
        self.row.requests = 0;
    }

    /// Divides the CPU time so far by the cells that go on from here.
    pub(crate) fn share_cpu(&mut self, cells: u32) {
        self.cpu /= cells.max(1);
    }

    /// Whether it is the cell of a row: the same policy or bound, and the same size.
    pub(crate) fn is_for(&self, row: &Row) -> bool {
        self.row.policy == row.policy && self.row.size_bytes == row.size_bytes
    }

    /// A copy that goes on after the warm-up, for the row of another workload.
    pub(crate) fn copy_for(&self, row: Row) -> Self {
        let clocks = self.clocks.go_on(row.tenants.len());
        let row = Row { slots: self.row.slots, error: self.row.error.clone(), ..row };
        let policy = self.policy.as_ref().map(|policy| policy.boxed_clone());
        let (warm, actions) = (self.warm.clone(), Actions::counting());
        let (only, cpu, anew, sizes) = (self.only, self.cpu, self.anew, self.sizes);
        Self { row, policy, only, warm, clocks, actions, cpu, anew, sizes }
    }

    /// The result.
    pub(crate) fn finish(mut self, entry_bytes: u32) -> Row {
        if let Some(policy) = &self.policy {
            let stats = policy.stats().since(&self.warm);
            self.clocks.fill(&mut self.row, &stats, entry_bytes);
        }
        self.row.cpu_s = self.cpu.as_secs_f64();
        self.row
    }
}

/// A bug in one policy must not take the rest of a long study with it.
fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        format!("a bug in the policy: {text}")
    })
}
