//! One workload: its warm-up, alone or for several workloads, then what is counted.

use std::collections::{BTreeMap, BTreeSet};

use onefold_buffer::Sizes;

use super::offline::{Kept, Replays};
use super::workers::{self, Stage};
use super::{Control, Job, Options, Point, Progress};
use crate::cell::Cell;
use crate::file::{Bound, Study, Subject};
use crate::latency::Timer;
use crate::stream::{MappedEntries, Mix};
use crate::{Row, StudyError, TenantRow};

/// Ends of warm-ups that later workloads go on from, by what determines them.
pub(super) type WarmUps = BTreeMap<String, Stage>;

/// One workload to be run through its missing points.
pub(super) struct Work<'a> {
    pub(super) study: &'a Study,
    /// What the buffers stand in front of.
    pub(super) sizes: Sizes,
    /// The latency models of the study, as they start.
    pub(super) timers: &'a [Timer],
    pub(super) job: &'a Job<'a>,
    pub(super) options: &'a Options,
    pub(super) control: &'a Control<'a>,
    /// Number of the workload, from 1, and how many there are.
    pub(super) place: (usize, usize),
}

/// Whether a point is computed from kept requests, after the pass.
fn is_offline(point: &Point) -> bool {
    matches!(point.subject, Subject::Bound(bound) if bound.is_offline())
}

impl Work<'_> {
    /// The rows of the missing points in their order; `later` are the missing points of later
    /// workloads with the same warm-up. `None` if it was interrupted.
    pub(super) fn run(
        &self,
        missing: &[&Point],
        later: &[&Point],
        warm_ups: &mut WarmUps,
    ) -> Result<Option<Vec<Row>>, StudyError> {
        let Some(mut stage) = self.warmed(missing, later, warm_ups)? else { return Ok(None) };
        if !self.pass(&mut stage)? {
            return Ok(None);
        }
        let entry_bytes = self.study.entry_bytes;
        let mut rows: Vec<Row> =
            stage.cells.into_iter().map(|cell| cell.finish(entry_bytes)).collect();
        let (threads, timers) = (self.options.threads, self.timers);
        let replays = Replays { entry_bytes, threads, timers };
        for bound in Bound::ALL {
            let points = missing.iter().filter(|point| is_offline(point));
            let of_bound = points.filter(|point| point.subject == Subject::Bound(bound));
            let mut own: Vec<Row> = of_bound.map(|point| self.row(point)).collect();
            let kept = stage.kept.iter().find(|kept| kept.is_for(bound));
            if let Some(kept) = kept.filter(|_| !own.is_empty()) {
                replays.compute(kept, bound, &mut own);
            }
            rows.append(&mut own);
        }
        let place = |row: &Row| missing.iter().position(|point| point.key == row.key);
        rows.sort_by_key(place);
        Ok(Some(rows))
    }

    /// The workload after its warm-up, which is run now unless an earlier one left it.
    fn warmed(
        &self,
        missing: &[&Point],
        later: &[&Point],
        warm_ups: &mut WarmUps,
    ) -> Result<Option<Stage>, StudyError> {
        let key = self.job.plan.warm_up.clone().unwrap_or_default();
        let is_last = later.is_empty();
        if !warm_ups.contains_key(&key) {
            let all = [missing, later].concat();
            let Some(warm) = self.warm_up(&all)? else { return Ok(None) };
            if is_last {
                return Ok(Some(warm));
            }
            warm_ups.insert(key.clone(), warm);
        }
        let copy = warm_ups.get(&key).map(|warm| self.copy(warm, missing)).transpose()?;
        if is_last {
            warm_ups.remove(&key);
        }
        Ok(copy)
    }

    /// Runs the warm-up once for points of one or several workloads, and divides its CPU time among
    /// those that share a cell.
    fn warm_up(&self, all: &[&Point]) -> Result<Option<Stage>, StudyError> {
        let mut once: Vec<&Point> = Vec::new();
        for point in all {
            if !once.iter().any(|other| other.is_cell_of(point)) {
                once.push(point);
            }
        }
        let mut stage = self.cold(&once)?;
        if !self.pass(&mut stage)? {
            return Ok(None);
        }
        let online = once.iter().filter(|point| !is_offline(point));
        for (cell, point) in stage.cells.iter_mut().zip(online) {
            let sharers = all.iter().filter(|other| other.is_cell_of(point));
            // Workloads that are equal but for their names are computed once.
            let keys: BTreeSet<&str> = sharers.map(|other| other.key.as_str()).collect();
            cell.end_warm_up();
            cell.share_cpu(u32::try_from(keys.len()).unwrap_or(u32::MAX));
        }
        Ok(Some(stage))
    }

    /// Nothing sent yet.
    fn cold(&self, points: &[&Point]) -> Result<Stage, StudyError> {
        let Self { study, job, options, .. } = self;
        let (later, now): (Vec<&Point>, Vec<&Point>) =
            points.iter().copied().partition(|point| is_offline(point));
        let target = job.workload.target();
        let drive = (self.sizes, self.timers);
        let cell =
            |point: &&Point| Cell::new(study, &point.subject, target, drive, self.row(point));
        let asks = |point: &&Point| match point.subject {
            Subject::Policy(p) | Subject::Empty(p) => p.info().build.asks_ftl(&p.parameters()),
            Subject::Bound(_) | Subject::Device(_) => false,
        };
        let (mix, _) = Mix::open(study, job.workload, options.scale)?;
        Ok(Stage {
            mix,
            map: now.iter().any(asks).then(|| MappedEntries::new(study.device_entries())),
            kept: self.keepers(&later),
            cells: now.iter().map(cell).collect(),
        })
    }

    /// A copy of the end of a warm-up, for the missing points of this workload.
    fn copy(&self, warm: &Stage, missing: &[&Point]) -> Result<Stage, StudyError> {
        let (later, now): (Vec<&Point>, Vec<&Point>) =
            missing.iter().copied().partition(|point| is_offline(point));
        let (mut mix, _) = Mix::open(self.study, self.job.workload, self.options.scale)?;
        mix.go_on_after(&warm.mix);
        let needed = self.keepers(&later);
        let is_needed = |kept: &&Kept| needed.iter().any(|needed| needed.is_like(kept));
        let cell = |point: &&Point| {
            let row = self.row(point);
            let warm = warm.cells.iter().find(|cell| cell.is_for(&row));
            warm.expect("the warm-up was run for all points").copy_for(row)
        };
        Ok(Stage {
            mix,
            map: warm.map.clone(),
            kept: warm.kept.iter().filter(is_needed).cloned().collect(),
            cells: now.iter().map(cell).collect(),
        })
    }

    fn pass(&self, stage: &mut Stage) -> Result<bool, StudyError> {
        let pass = workers::Pass {
            threads: self.options.threads,
            interrupt: self.control.interrupt,
            progress: &|mix| self.tell(mix),
        };
        workers::pass(&pass, stage)
    }

    /// Who keeps the requests: for bounds of the target, and for those of all tenants.
    fn keepers(&self, later: &[&Point]) -> Vec<Kept> {
        let needed = |of_target| {
            later.iter().any(
                |point| matches!(point.subject, Subject::Bound(b) if b.is_of_target() == of_target),
            )
        };
        let (entries, limit) = (self.study.device_entries(), self.options.memory_bytes);
        let kept = |only| Kept::new(only, entries, limit);
        let target =
            self.job.workload.target().filter(|_| needed(true)).map(|only| kept(Some(only)));
        target.into_iter().chain(needed(false).then(|| kept(None))).collect()
    }

    /// The row of a point, without numbers.
    fn row(&self, point: &Point) -> Row {
        let Self { study, job, options, .. } = self;
        let row = Row {
            key: point.key.clone(),
            size_bytes: point.bytes,
            scale: options.scale,
            seed: study.seed,
            onefold: options.program.clone(),
            tenants: vec![TenantRow::default(); job.workload.sources.len()],
            ..Row::default()
        };
        row.named(study, job.workload, &point.subject)
    }

    fn tell(&self, mix: &Mix) {
        if let Some(show) = self.control.progress {
            show(&Progress {
                workload: &self.job.workload.label,
                number: self.place.0,
                of: self.place.1,
                requests: mix.requests,
                bytes: mix.sent,
                bytes_total: self.job.plan.bytes,
            });
        }
    }
}
