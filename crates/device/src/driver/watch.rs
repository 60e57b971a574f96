//! Looking for journals on a volume in use: the detector sees every write that the engine took, and a thread reads what it asks
//! for. What it finds only says where blocks are placed.

use std::collections::VecDeque;
use std::time::Duration;

use onefold_journal::{Detector, Output, Setting, Write};
use onefold_units::convert::u64_from;
use onefold_units::{Lba, Nanos, PAGE_BYTES};

use super::{Driven, Driver, State, wait_for};

/// Longest sleep of the thread.
const IDLE: Duration = Duration::from_hours(1);

/// The detector of a volume.
pub(crate) struct Watch {
    pub(crate) detector: Detector,
    setting: Setting,
    blocks: u64,
    /// Blocks that it asked for.
    wanted: VecDeque<Lba>,
    /// Until when the thread sleeps if nothing comes; `None`: for as long as it takes.
    until: Option<Nanos>,
}

impl Watch {
    pub(crate) fn new(blocks: u64, setting: Setting) -> Self {
        let detector = Detector::new(blocks, setting.clone(), Nanos::ZERO);
        Self { detector, setting, blocks, wanted: VecDeque::new(), until: None }
    }

    /// Takes what the detector has to say. Whether the thread has something to do sooner than it knows.
    pub(super) fn listen<E: Driven>(&mut self, engine: &mut E, now: Nanos) -> bool {
        let mut is_changed = false;
        while let Some(output) = self.detector.poll_output() {
            match output {
                Output::Read(lba) => self.wanted.push_back(lba),
                Output::Changed => is_changed = true,
            }
        }
        if is_changed {
            engine.set_journal(now, self.detector.ranges(), true);
        }
        let due = self.detector.poll_timeout();
        let sooner = due.is_some_and(|due| self.until.is_none_or(|until| due < until));
        sooner || !self.wanted.is_empty()
    }
}

impl<E: Driven> Driver<E> {
    /// Shows the detector, if there is one, what the host did and the engine took.
    fn show(&self, state: &mut State<E>, what: impl FnOnce(&mut Detector, Nanos)) {
        let Some(watch) = &mut state.watch else { return };
        what(&mut watch.detector, state.now);
        if watch.listen(&mut state.engine, state.now) {
            self.watched.notify_one();
        }
    }

    /// Blocks were written.
    pub(crate) fn saw_write(&self, state: &mut State<E>, lba: u64, data: &[u8], fua: bool) {
        let bytes = u64_from(data.len());
        let write = Write { at: lba * PAGE_BYTES, bytes, data: Some(data), fua };
        self.show(state, |detector, now| detector.handle_write(now, &write));
    }

    /// Blocks read as zeroes from now on.
    pub(crate) fn saw_trim(&self, state: &mut State<E>, lba: u64, blocks: u64) {
        let (at, bytes) = (lba * PAGE_BYTES, blocks * PAGE_BYTES);
        self.show(state, |detector, now| detector.handle_trim(now, at, bytes));
    }

    /// All that was written before is to be durable.
    pub(crate) fn saw_flush(&self, state: &mut State<E>) {
        self.show(state, Detector::handle_flush);
    }

    /// Looks for journals until the driver is stopped, as a thread of its own.
    pub(crate) fn watch(&self) {
        let mut state = self.state();
        while !state.over {
            self.tick(&mut state);
            let State { watch: Some(watch), engine, now, .. } = &mut *state else { return };
            if watch.blocks != engine.blocks() {
                *watch = Watch::new(engine.blocks(), watch.setting.clone());
            }
            if watch.detector.poll_timeout().is_some_and(|due| due <= *now) {
                watch.detector.handle_timeout(*now);
            }
            watch.listen(engine, *now);
            let wanted = watch.wanted.pop_front();
            if wanted.is_none() {
                engine.set_journal(*now, watch.detector.ranges(), false);
                watch.until = watch.detector.poll_timeout();
            }
            let until = watch.until;
            self.turn(&mut state);
            let Some(lba) = wanted else {
                let pause = until.map_or(IDLE, |due| {
                    Duration::from_nanos(due.get().saturating_sub(state.now.get())).min(IDLE)
                });
                state = wait_for(&self.watched, state, pause);
                continue;
            };
            drop(state);
            let mut block = Box::new([0; 4096]);
            let is_read = E::read_block(self, lba.raw(), &mut block[..]).is_ok();
            state = self.state();
            let now = state.now;
            if let Some(watch) = &mut state.watch {
                watch.detector.handle_read(now, lba, is_read.then_some(&*block));
            }
        }
    }
}
