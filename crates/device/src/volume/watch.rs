//! Looking for journals on a volume in use: the detector sees every write of the device that the volume took, and a thread
//! reads what it asks for. What it finds only says where blocks are placed.

use std::time::Duration;

use onefold_journal::{Detector, Write};
use onefold_units::convert::u64_from;
use onefold_units::{Lba, Nanos, PAGE_BYTES};
use onefold_volume::MemberId;

use super::block_device::Blocks;
use super::journals::Watch;
use super::{Shared, State};
use crate::driver::{WholeBlocks, wait_for};

/// Longest sleep of the thread.
const IDLE: Duration = Duration::from_hours(1);

impl Shared {
    /// Shows the detector, if there is one, something that the host did with a member and the volume took.
    fn show(&self, state: &mut State, member: MemberId, what: impl FnOnce(&mut Detector, Nanos)) {
        let Some(watch) = state.watch.as_mut().filter(|_| member == MemberId::DEVICE) else {
            return;
        };
        what(&mut watch.detector, state.now);
        if watch.listen(state.volume.as_log_mut()) {
            self.watched.notify_one();
        }
    }

    pub(super) fn saw_write(
        &self,
        state: &mut State,
        member: MemberId,
        lba: Lba,
        data: &[u8],
        fua: bool,
    ) {
        let (at, bytes) = (lba.raw() * PAGE_BYTES, u64_from(data.len()));
        let write = Write { at, bytes, data: Some(data), fua };
        self.show(state, member, |detector, now| detector.handle_write(now, &write));
    }

    pub(super) fn saw_trim(&self, state: &mut State, member: MemberId, lba: u64, blocks: u64) {
        let (at, bytes) = (lba * PAGE_BYTES, blocks * PAGE_BYTES);
        self.show(state, member, |detector, now| detector.handle_trim(now, at, bytes));
    }

    pub(super) fn saw_flush(&self, state: &mut State, member: MemberId) {
        self.show(state, member, Detector::handle_flush);
    }
}

/// Looks, as the thread of a volume with a detector, until the volume is stopped.
pub(super) fn run(shared: &Shared) {
    let mut state = shared.state();
    while !state.fallen && !state.inbox.closed {
        shared.tick(&mut state);
        let State { watch: Some(watch), volume, now, .. } = &mut *state else { return };
        if watch.blocks != volume.logical_blocks() {
            *watch = Watch::new(volume.logical_blocks(), watch.setting.clone());
        }
        if watch.detector.poll_timeout().is_some_and(|due| due <= *now) {
            watch.detector.handle_timeout(*now);
        }
        watch.listen(volume.as_log_mut());
        if let Some(lba) = watch.wanted.pop_front() {
            drop(state);
            let mut block = Box::new([0; 4096]);
            let device = Blocks { shared, member: MemberId::DEVICE };
            let is_read = device.read_blocks(lba.raw(), &mut block[..]).is_ok();
            state = shared.state();
            let now = state.now;
            if let Some(watch) = &mut state.watch {
                watch.detector.handle_read(now, lba, is_read.then_some(&*block));
            }
            continue;
        }
        // Also if there is none, so that the volume knows.
        if let Some(volume) = volume.as_log_mut() {
            volume.set_journal(watch.detector.ranges());
        }
        watch.until = watch.detector.poll_timeout();
        let pause = watch.until.map_or(IDLE, |due| {
            Duration::from_nanos(due.get().saturating_sub(now.get())).min(IDLE)
        });
        state = wait_for(&shared.watched, state, pause);
    }
}
