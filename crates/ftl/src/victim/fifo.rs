//! Oldest first.

use std::collections::VecDeque;

use super::table::Way;
use super::{BuildVictim, VictimInfo};

/// Name and source.
pub(super) static INFO: VictimInfo = VictimInfo {
    name: "fifo",
    about: "The superblock that was closed first.",
    source: "Menon 1995; Robinson 1996; Desnoyers 2012",
    parameters: &[],
    build: BuildVictim(Way::Fifo),
};

/// Takes superblocks in the order in which they were closed, like a circular log. Source: Menon
/// 1995; Robinson 1996; Desnoyers 2012.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fifo {
    queue: VecDeque<u32>,
}

onefold_units::keep!(Fifo { queue });

impl Fifo {
    pub(crate) fn insert(&mut self, at: u32) {
        self.queue.push_back(at);
    }

    pub(crate) fn remove(&mut self, at: u32) {
        if self.queue.front() == Some(&at) {
            self.queue.pop_front();
        } else {
            self.queue.retain(|queued| *queued != at);
        }
    }

    pub(crate) fn choose(&self) -> Option<u32> {
        self.queue.front().copied()
    }
}
