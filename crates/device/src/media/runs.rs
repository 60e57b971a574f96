//! Programs that wait to be written together.
//!
//! A superblock is programmed in ascending order, so what one frontier writes lies side by side in the
//! file, and one large write costs a fraction of many small ones. What waits here is lost when the
//! process dies, like anything a power cut takes before a flush: a synchronisation writes it first.

use onefold_nand::{SPARE_BYTES, Spare};
use onefold_units::convert::{index, u64_from};
use onefold_units::{Ppn, SuperblockId};

/// Bytes of data that are written at once.
const RUN_BYTES: usize = 256 << 10;

/// Runs that wait at the same time: a frontier or two of each die. Together at most 16 MiB.
const RUNS_MAX: usize = 64;

/// Slots programmed one after the other.
#[derive(Debug)]
pub(super) struct Run {
    superblock: SuperblockId,
    pub(super) first: Ppn,
    pub(super) data: Vec<u8>,
    /// The spare areas, one after the other.
    pub(super) spares: Vec<u8>,
}

/// The runs that wait, oldest first.
#[derive(Debug)]
pub(super) struct Runs {
    waiting: Vec<Run>,
    /// Buffers of runs that were written: fresh memory costs a fault per page.
    free: Vec<Run>,
    unit_bytes: usize,
}

impl Runs {
    pub(super) const fn new(unit_bytes: usize) -> Self {
        Self { waiting: Vec::new(), free: Vec::new(), unit_bytes }
    }

    /// Bytes of data that wait.
    pub(super) fn bytes(&self) -> u64 {
        self.waiting.iter().map(|run| u64_from(run.data.len())).sum()
    }

    /// Adds a program with data. Returns the run that has to be written now, if any.
    pub(super) fn add(
        &mut self,
        superblock: SuperblockId,
        first: Ppn,
        spares: &[Spare],
        data: &[u8],
    ) -> Option<Run> {
        let mut evicted = None;
        let follows = |run: &Run| {
            let slots = u64_from(run.spares.len() / SPARE_BYTES);
            u64::from(run.first.raw()) + slots == u64::from(first.raw())
        };
        let at = match self.place(superblock) {
            Some(at) if follows(&self.waiting[at]) => at,
            gap => {
                if let Some(at) = gap.or_else(|| (self.waiting.len() == RUNS_MAX).then_some(0)) {
                    evicted = Some(self.waiting.remove(at));
                }
                let mut run = self.free.pop().unwrap_or_else(|| Run {
                    superblock,
                    first,
                    data: Vec::with_capacity(RUN_BYTES),
                    spares: Vec::new(),
                });
                run.superblock = superblock;
                run.first = first;
                self.waiting.push(run);
                self.waiting.len() - 1
            }
        };
        let run = &mut self.waiting[at];
        run.data.extend_from_slice(data);
        run.spares.extend(spares.iter().flatten());
        if evicted.is_none() && run.data.len() >= RUN_BYTES {
            evicted = Some(self.waiting.remove(at));
        }
        evicted
    }

    /// Takes back the buffers of a run that was written.
    pub(super) fn recycle(&mut self, mut run: Run) {
        run.data.clear();
        run.spares.clear();
        self.free.push(run);
    }

    fn place(&self, superblock: SuperblockId) -> Option<usize> {
        self.waiting.iter().position(|run| run.superblock == superblock)
    }

    /// The run of a superblock, to be written now.
    pub(super) fn take(&mut self, superblock: SuperblockId) -> Option<Run> {
        self.place(superblock).map(|at| self.waiting.remove(at))
    }

    /// The oldest run, to be written now.
    pub(super) fn take_oldest(&mut self) -> Option<Run> {
        (!self.waiting.is_empty()).then(|| self.waiting.remove(0))
    }

    /// Spare area and data of a slot that waits.
    pub(super) fn find(&self, superblock: SuperblockId, ppn: Ppn) -> Option<(Spare, &[u8])> {
        let run = &self.waiting[self.place(superblock)?];
        let slot = index(ppn.raw().checked_sub(run.first.raw())?);
        let spare = run.spares.get(slot * SPARE_BYTES..)?.first_chunk()?;
        let data = run.data.get(slot * self.unit_bytes..(slot + 1) * self.unit_bytes)?;
        Some((*spare, data))
    }
}

#[cfg(test)]
mod tests {
    use super::{RUN_BYTES, RUNS_MAX, Runs};
    use onefold_units::{Ppn, SuperblockId};

    const A: SuperblockId = SuperblockId::new(1);

    #[test]
    fn neighbours_wait_together_and_are_found() {
        let mut runs = Runs::new(4096);
        for n in 0..3_u8 {
            let ppn = Ppn::new(100 + u32::from(n));
            assert!(runs.add(A, ppn, &[[n; 24]], &[n; 4096]).is_none());
        }
        assert_eq!(runs.find(A, Ppn::new(102)), Some(([2; 24], &[2; 4096][..])));
        assert_eq!(runs.find(A, Ppn::new(99)), None);
        assert_eq!(runs.find(A, Ppn::new(103)), None);
        assert_eq!(runs.find(SuperblockId::new(2), Ppn::new(102)), None);
        let gap = runs.add(A, Ppn::new(110), &[[9; 24]], &[9; 4096]).unwrap();
        assert_eq!((gap.first, gap.data.len(), gap.spares.len()), (Ppn::new(100), 12_288, 72));
        assert_eq!(runs.take(A).unwrap().first, Ppn::new(110));
        assert!(runs.take_oldest().is_none());
    }

    #[test]
    fn a_full_run_and_one_too_many_are_written() {
        let mut runs = Runs::new(4096);
        let slots = u32::try_from(RUN_BYTES / 4096).unwrap();
        let full = (0..slots).find_map(|n| runs.add(A, Ppn::new(n), &[[0; 24]], &[0; 4096]));
        assert_eq!(full.unwrap().data.len(), RUN_BYTES);
        let superblocks = (0..=u32::try_from(RUNS_MAX).unwrap()).map(SuperblockId::new);
        let evicted: Vec<_> = superblocks
            .filter_map(|at| runs.add(at, Ppn::new(at.raw() * 64), &[[0; 24]], &[0; 4096]))
            .collect();
        assert_eq!(evicted.len(), 1);
        assert_eq!(evicted[0].first, Ppn::new(0), "the oldest");
    }
}
