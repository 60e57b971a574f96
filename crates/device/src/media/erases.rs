//! Erases that wait until they cannot hurt.
//!
//! The device erases a superblock when what it held is copied elsewhere. If the host loses power,
//! the file may hold the erase and not yet the copies. So an erase takes two synchronisations:
//!
//! | stage | in the file | next |
//! |---|---|---|
//! | asked | everything as before | a synchronisation makes the copies durable; the head is cleared |
//! | cleared | no head | a synchronisation makes that durable; spare areas and data are cleared |
//! | done | nothing | may be programmed |
//!
//! 1. Until the head is durably gone, all of the superblock is there: recovery may use it.
//! 2. Once it is gone, recovery looks at nothing else of the superblock but whether it is blank.
//! 3. A synchronisation counts for what was there when it began.

use onefold_units::SuperblockId;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Done,
    Asked { since: u64 },
    Cleared { since: u64 },
}

/// What has to be done in the file after a synchronisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Clear the head.
    Head(SuperblockId),
    /// Clear spare areas and data.
    Contents(SuperblockId),
}

/// The erases of one device that are not done.
#[derive(Debug)]
pub(super) struct Erases {
    stages: Vec<Stage>,
    waiting: Vec<SuperblockId>,
}

impl Erases {
    pub(super) fn new(superblocks: usize) -> Self {
        Self { stages: vec![Stage::Done; superblocks], waiting: Vec::new() }
    }

    /// Whether a superblock is erased for the device, but not yet in the file.
    pub(super) fn is_waiting(&self, superblock: SuperblockId) -> bool {
        self.stages[superblock.index()] != Stage::Done
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The device erases a superblock when `now` synchronisations have begun.
    pub(super) fn ask(&mut self, superblock: SuperblockId, now: u64) {
        if !self.is_waiting(superblock) {
            self.waiting.push(superblock);
            self.stages[superblock.index()] = Stage::Asked { since: now };
        }
    }

    /// What the end of synchronisation number `ended` allows, when `now` have begun.
    pub(super) fn advance(&mut self, ended: u64, now: u64) -> Vec<Step> {
        let mut steps = Vec::new();
        let stages = &mut self.stages;
        self.waiting.retain(|superblock| {
            let stage = &mut stages[superblock.index()];
            match *stage {
                Stage::Asked { since } if since < ended => {
                    steps.push(Step::Head(*superblock));
                    *stage = Stage::Cleared { since: now };
                }
                Stage::Cleared { since } if since < ended => {
                    steps.push(Step::Contents(*superblock));
                    *stage = Stage::Done;
                }
                _ => {}
            }
            *stage != Stage::Done
        });
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::{Erases, Step};
    use onefold_units::SuperblockId;

    #[test]
    fn an_erase_takes_two_synchronisations_that_began_after_it() {
        let (a, b) = (SuperblockId::new(0), SuperblockId::new(1));
        let mut erases = Erases::new(2);
        erases.ask(a, 3);
        // Number 3 had begun before: it may have missed the copies.
        assert_eq!(erases.advance(3, 3), []);
        assert_eq!(erases.advance(4, 4), [Step::Head(a)]);
        erases.ask(b, 4);
        erases.ask(a, 4);
        assert!(erases.is_waiting(a));
        assert_eq!(erases.advance(5, 6), [Step::Contents(a), Step::Head(b)]);
        assert!(!erases.is_waiting(a));
        // Number 6 had begun when the head was cleared.
        assert_eq!(erases.advance(6, 6), []);
        assert_eq!(erases.advance(7, 7), [Step::Contents(b)]);
        assert!(erases.is_empty());
    }
}
