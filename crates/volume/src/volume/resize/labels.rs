//! The copies of the label are written one after the other. One in a sequential zone takes a reset before and a finish behind it.

use onefold_units::Location;
use onefold_units::convert::narrow;

use crate::frozen::Frozen;
use crate::io::{IoFailed, IoKind};
use crate::pending::Purpose;
use crate::resize::{Phase, Work};
use crate::retries::Failing;
use crate::stats::Sent;
use crate::volume::Volume;

impl Volume {
    /// Writes the next copy of the label. That at the end of a backing which shrank is cleared: were all others damaged, it
    /// would be believed.
    pub(super) fn write_label(&mut self, work: &Work, next: usize) -> Phase {
        let Some(at) = self.place_of(work, next) else {
            self.release_zones();
            return Phase::Apply;
        };
        if self.layout.is_sequential(self.layout.segment_of(at)) {
            self.stats.zone_resets += 1;
            self.ask(IoKind::Reset, Purpose::LabelReset, at, self.layout.geometry().zone_blocks);
        } else {
            self.send_label(work, at);
        }
        Phase::Labels { next }
    }

    fn place_of(&self, work: &Work, next: usize) -> Option<Location> {
        let (new, old) = (work.layout.labels(), self.layout.labels());
        let shrinks = work.layout.geometry().backing_blocks < self.layout.geometry().backing_blocks;
        let gone = old.iter().filter(|at| shrinks && !new.contains(at));
        new.iter().rev().chain(gone).nth(next).map(|at| Location::new(narrow(*at)))
    }

    fn send_label(&mut self, work: &Work, at: Location) {
        let id = self.ask(IoKind::Write, Purpose::Label, at, 1);
        let block = u64::from(at.raw());
        if work.layout.labels().contains(&block) {
            self.pending.buffer_mut(id).copy_from_slice(&work.label.encode(block)[..]);
        }
        self.stats.count(Sent::Label, 1);
    }

    /// Goes on with the copy that is being written.
    fn with_label(
        &mut self,
        go_on: impl FnOnce(&mut Self, &mut Work, usize, Location) -> Option<Phase>,
    ) {
        let Some(mut work) = self.resizing.take() else { return };
        if let Phase::Labels { next } = work.phase
            && let Some(at) = self.place_of(&work, next)
        {
            work.phase = go_on(self, &mut work, next, at).unwrap_or(work.phase);
        }
        self.resizing.put(work);
    }

    /// A copy of the label could not be written: it is, from its beginning, for as long as it takes. Neither size can be given up, as
    /// either may be what an opening finds.
    fn label_failed(&mut self, why: IoFailed) {
        if self.frozen.is_some() {
            return;
        }
        // No zone is begun before the label is written and its zone finished, so batches wait for it as long.
        let since = self.retries.since(self.now);
        self.with_label(|volume, work, next, _| {
            let failing = work.failing.get_or_insert(Failing { since, why });
            failing.why = why;
            Some(volume.write_label(work, next))
        });
    }

    /// How a copy of the label fails.
    pub(crate) fn label_failing(&self) -> Option<Failing> {
        self.resizing.failing()
    }

    /// The zone of a copy was reset.
    pub(crate) fn label_reset_over(&mut self, result: Result<(), IoFailed>) {
        if let Err(why) = result {
            return self.label_failed(why);
        }
        self.with_label(|volume, work, _, at| {
            volume.send_label(work, at);
            None
        });
    }

    /// A copy of the label was written.
    pub(crate) fn label_over(&mut self, result: Result<(), IoFailed>) {
        if let Err(why) = result {
            return self.label_failed(why);
        }
        self.with_label(|volume, work, _, at| {
            if volume.layout.is_sequential(volume.layout.segment_of(at)) {
                volume.finish_zone(Purpose::LabelFinish, at);
            } else {
                volume.flush_label(work);
            }
            None
        });
    }

    /// The zone of a copy was finished. Until it is, it takes one of those that may be active, and no other can be begun.
    pub(crate) fn label_finished(&mut self, result: Result<(), IoFailed>) {
        match result {
            Err(why) if self.frozen.is_none() => self.label_failed(why),
            _ => self.with_label(|volume, work, _, _| {
                volume.flush_label(work);
                None
            }),
        }
    }

    /// A copy is written, and its zone is active no longer: there is nothing left of it that fails. Behind it there is nothing to come.
    fn flush_label(&mut self, work: &mut Work) {
        work.failing = None;
        self.ask(IoKind::Flush, Purpose::LabelFlush, Location::new(0), 0);
    }

    /// A copy of the label is durable.
    pub(crate) fn label_durable(&mut self, result: Result<(), IoFailed>) {
        if result.is_err() {
            self.freeze(Frozen::Flush);
            return;
        }
        self.with_label(|volume, work, next, _| Some(volume.write_label(work, next + 1)));
    }
}
