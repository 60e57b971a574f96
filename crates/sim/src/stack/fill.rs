//! Filling and overwriting a stack through its top, without time.

use onefold_nand::NullMedia;
use onefold_ssd::Ssd;
use onefold_units::Op;
use onefold_units::convert::{float, floor_u64, index64};

use super::{At, Stack};
use crate::SimError;
use crate::control::Control;
use crate::cpu::thread_cpu_s;
use crate::precondition::{Preconditioned, Target, precondition};
use crate::request::{Owner, Request, whole_step_of};
use crate::series::Windowed;
use onefold_config::Precondition;

const BLOCK: u64 = 4096;

/// Blocks of a write of a layer that is filled block after block.
const FILL_BLOCKS: u64 = 256;

/// Time of the layers per block that is written before the run, as if that went at 1 GB/s: trims
/// of log segments and background flushes go by time.
const FILL_NS_PER_BLOCK: u64 = 4096;

impl Stack {
    /// Brings the stack into the state in which a run begins.
    pub(crate) fn precondition(
        &mut self,
        what: &Precondition,
        seed: u64,
        control: &Control<'_>,
    ) -> Result<Preconditioned, SimError> {
        if self.caps().filling.by_units {
            return precondition(self, what, seed, control);
        }
        let begin = thread_cpu_s();
        self.fill(what.fill, control)?;
        Ok(Preconditioned { cpu_s: thread_cpu_s() - begin, ..Preconditioned::default() })
    }

    /// Writes a share of the top from its first block on.
    fn fill(&mut self, share: f64, control: &Control<'_>) -> Result<(), SimError> {
        let end = floor_u64(share * float(self.caps().blocks) + 0.5);
        for lba in (0..end).step_by(index64(FILL_BLOCKS)) {
            control.go_on()?;
            self.write_untimed(lba, FILL_BLOCKS.min(end - lba))?;
        }
        Ok(())
    }

    fn write_untimed(&mut self, lba: u64, blocks: u64) -> Result<(), SimError> {
        let (top, in_flight) = (self.top_layer(), self.caps().filling.in_flight);
        self.base += FILL_NS_PER_BLOCK * blocks;
        let steps = whole_step_of(Op::Write, lba * BLOCK, blocks * BLOCK);
        self.enter(top, Request::new(Owner::Nobody, 0, (Op::Write, false), steps), 0)?;
        self.wait_untimed(top, in_flight)
    }
}

impl Target for Stack {
    fn units(&self) -> u64 {
        self.caps().blocks / self.pages_per_unit()
    }

    fn pages_per_unit(&self) -> u64 {
        self.blocks_per_unit(At::Layer(self.top_layer()))
    }

    fn write(&mut self, unit: u64) -> Result<(), SimError> {
        let blocks = self.pages_per_unit();
        self.write_untimed(unit * blocks, blocks)
    }

    fn programs(&self) -> u64 {
        Windowed::programs(self).total()
    }

    fn set_timed(&mut self, timed: bool) {
        Self::set_timed(self, timed);
    }

    fn remapping(&mut self) -> Option<&mut Ssd<NullMedia>> {
        match self.layers.last()?.ports.first()?.below {
            At::Device(device) => self.devices[device].blocks_mut(),
            At::Layer(_) => None,
        }
    }
}
