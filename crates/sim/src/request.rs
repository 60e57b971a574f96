//! One request of the load on its way through layers, cut into what they take at once.

use onefold_nand::Delay;
use onefold_units::{Lba, Op};
use onefold_volume::Range;

const BLOCK: u64 = 4096;

/// What layers are asked for at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Read(Range),
    Write(Range),
    Trim(Range),
    Flush,
}

/// A step of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Ask(Work),
    /// Everything before has to be over.
    Wait,
}

/// Most steps: both edges are read and written, with a wait between, and the body.
const STEPS_MAX: usize = 6;

/// Those of a request, in their order.
pub(crate) type Steps = [Option<Step>; STEPS_MAX];

/// The number of a request to a place below, which the layer gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LowerId(pub(crate) u64);

/// Who waits for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A tenant; the request has this number among all of the load.
    Load {
        tenant: usize,
        number: u64,
    },
    /// The layer above, as part of what it asked for under this number.
    Layer(usize),
    Nobody,
}

/// A request on its way through a layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) owner: Owner,
    pub(crate) op: Op,
    pub(crate) fua: bool,
    /// When it was issued.
    pub(crate) issued: u64,
    /// When it was first refused, until it is taken, and the time without free log segments until
    /// then.
    pub(crate) refused: Option<(u64, u64)>,
    pub(crate) outstanding: u32,
    /// A part failed: no other one is asked for.
    pub(crate) failed: bool,
    pub(crate) delay: Delay,
    steps: Steps,
    at: usize,
}

impl Request {
    pub(crate) const fn new(
        owner: Owner,
        issued: u64,
        (op, fua): (Op, bool),
        steps: Steps,
    ) -> Self {
        Self {
            owner,
            op,
            fua,
            issued,
            refused: None,
            outstanding: 0,
            failed: false,
            delay: Delay::None,
            steps,
            at: 0,
        }
    }

    /// The next thing to ask for, of layers that take reads and writes of so many blocks at most.
    /// `None` when everything was asked for, or what is under way has to end first.
    pub(crate) fn next(&mut self, (read_max, write_max): (u32, u32)) -> Option<Work> {
        if self.rest() == Some(Step::Wait) && self.outstanding == 0 {
            self.at += 1;
        }
        let cut =
            |range: Range, most: u32| Range { blocks: range.blocks.min(most.into()), ..range };
        match self.rest()? {
            Step::Ask(Work::Read(range)) => Some(Work::Read(cut(range, read_max))),
            Step::Ask(Work::Write(range)) => Some(Work::Write(cut(range, write_max))),
            Step::Ask(work) => Some(work),
            Step::Wait => None,
        }
    }

    fn rest(&self) -> Option<Step> {
        if self.failed {
            return None;
        }
        self.steps.get(self.at).copied().flatten()
    }

    /// The first `blocks` of the next thing were taken.
    pub(crate) fn took(&mut self, blocks: u64) {
        let step = &mut self.steps[self.at];
        if let Some(Step::Ask(Work::Read(range) | Work::Write(range) | Work::Trim(range))) = step {
            range.lba = Lba::new(range.lba.raw() + blocks);
            range.blocks -= blocks;
            if range.blocks > 0 {
                return;
            }
        }
        self.at += 1;
    }

    /// Whether nothing of it is left.
    pub(crate) fn is_over(&self) -> bool {
        self.outstanding == 0 && self.rest().is_none()
    }

    /// Whether it changes blocks, so that the order among such requests counts.
    pub(crate) const fn is_change(&self) -> bool {
        matches!(self.op, Op::Write | Op::Trim | Op::WriteZeroes)
    }
}

/// The only step of a request in whole blocks.
pub(crate) fn whole_step_of(op: Op, offset: u64, len: u64) -> Steps {
    let range = Range { lba: Lba::new(offset / BLOCK), blocks: len / BLOCK };
    let work = match op {
        Op::Flush => Work::Flush,
        Op::Read => Work::Read(range),
        Op::Write => Work::Write(range),
        Op::Trim | Op::WriteZeroes => Work::Trim(range),
    };
    [Some(Step::Ask(work)), None, None, None, None, None]
}

/// The steps of a request at any byte: blocks that it changes in part are read first (volume.md,
/// section 3, V13).
pub(crate) fn steps_of(op: Op, offset: u64, len: u64) -> Steps {
    if (offset | len).is_multiple_of(BLOCK) {
        return whole_step_of(op, offset, len);
    }
    let end = offset + len;
    let (first, last) = (offset / BLOCK, end.div_ceil(BLOCK));
    let range = |from: u64, to: u64| Range { lba: Lba::new(from), blocks: to.saturating_sub(from) };
    let some =
        |range: Range, work: fn(Range) -> Work| (range.blocks > 0).then(|| Step::Ask(work(range)));
    let (whole_first, whole_last) = (offset.div_ceil(BLOCK), end / BLOCK);
    let head = range(first, whole_first.min(last));
    let tail = if whole_last < whole_first { range(0, 0) } else { range(whole_last, last) };
    let wait = (head.blocks + tail.blocks > 0).then_some(Step::Wait);
    let found = match op {
        Op::Flush => [Some(Step::Ask(Work::Flush)), None, None, None, None, None],
        Op::Read => [some(range(first, last), Work::Read), None, None, None, None, None],
        Op::Write => [
            some(head, Work::Read),
            some(tail, Work::Read),
            wait,
            some(range(first, last), Work::Write),
            None,
            None,
        ],
        Op::Trim | Op::WriteZeroes => [
            some(head, Work::Read),
            some(tail, Work::Read),
            wait,
            some(head, Work::Write),
            some(tail, Work::Write),
            some(range(whole_first, whole_last), Work::Trim),
        ],
    };
    let mut steps = [None; STEPS_MAX];
    let places = steps.iter_mut().zip(found.into_iter().flatten());
    places.for_each(|(place, step)| *place = Some(step));
    steps
}

#[cfg(test)]
mod tests {
    use super::{Owner, Range, Request, Step, Work, steps_of};
    use onefold_units::{Lba, Op};

    fn steps(op: Op, offset: u64, len: u64) -> Vec<Step> {
        steps_of(op, offset, len).into_iter().flatten().collect()
    }

    const fn read(lba: u64, blocks: u64) -> Step {
        Step::Ask(Work::Read(at(lba, blocks)))
    }

    const fn write(lba: u64, blocks: u64) -> Step {
        Step::Ask(Work::Write(at(lba, blocks)))
    }

    const fn trim(lba: u64, blocks: u64) -> Step {
        Step::Ask(Work::Trim(at(lba, blocks)))
    }

    const fn at(lba: u64, blocks: u64) -> Range {
        Range { lba: Lba::new(lba), blocks }
    }

    #[test]
    fn edges_are_read_before_they_are_written() {
        assert_eq!(steps(Op::Write, 8192, 8192), [write(2, 2)]);
        assert_eq!(steps(Op::Write, 512, 4096), [read(0, 1), read(1, 1), Step::Wait, write(0, 2)]);
        // Both edges in one block: it is read once.
        assert_eq!(steps(Op::Write, 4096 + 512, 512), [read(1, 1), Step::Wait, write(1, 1)]);
        assert_eq!(steps(Op::Read, 4095, 2), [read(0, 2)]);
    }

    #[test]
    fn a_write_waits_for_its_edges_and_is_cut() {
        let steps = steps_of(Op::Write, 512, 5 * 4096);
        let mut request = Request::new(Owner::Nobody, 0, (Op::Write, false), steps);
        let most = (8, 4);
        for edge in [0, 5] {
            assert_eq!(request.next(most), Some(Work::Read(at(edge, 1))));
            request.took(1);
            request.outstanding += 1;
        }
        assert_eq!(request.next(most), None);
        request.outstanding = 0;
        assert!(!request.is_over());
        assert_eq!(request.next(most), Some(Work::Write(at(0, 4))));
        request.took(3);
        assert_eq!(request.next(most), Some(Work::Write(at(3, 3))));
        request.took(3);
        assert!(request.is_over());
    }

    #[test]
    fn a_trim_zeroes_its_edges() {
        assert_eq!(steps(Op::Trim, 4096, 4096), [trim(1, 1)]);
        assert_eq!(
            steps(Op::WriteZeroes, 2048, 8192),
            [read(0, 1), read(2, 1), Step::Wait, write(0, 1), write(2, 1), trim(1, 1),]
        );
    }
}
