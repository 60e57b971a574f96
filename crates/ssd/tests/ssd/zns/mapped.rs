//! What conventional zones may hold, for tests with power cuts.

use onefold_nand::Media;
use onefold_ssd::Payload;
use onefold_ssd::zns::{Zns, ZnsError};
use onefold_testkit::{Model, fill};
use onefold_units::convert::index;

use super::common::NOW;

/// The conventional blocks of a namespace.
pub(crate) struct Mapped {
    model: Model,
    blocks: u32,
}

impl Mapped {
    /// `trims_are_durable`: a completed deallocation survives the power cut.
    pub(crate) fn new(blocks: u32, trims_are_durable: bool) -> Self {
        Self { model: Model::new(blocks, trims_are_durable), blocks }
    }

    pub(crate) fn write<M: Media>(
        &mut self,
        zns: &mut Zns<M>,
        at: u32,
        blocks: u32,
        fua: bool,
    ) -> Result<(), ZnsError> {
        let mut bytes = vec![0; index(blocks) * 4096];
        for (lpn, block) in (at..).zip(bytes.chunks_mut(4096)) {
            fill(lpn, self.model.write(lpn), block);
        }
        zns.write(NOW, at.into(), blocks, fua, &Payload::Write(&bytes))?;
        if fua {
            self.model.durable(at..at + blocks);
        }
        Ok(())
    }

    pub(crate) fn deallocate<M: Media>(
        &mut self,
        zns: &mut Zns<M>,
        at: u32,
        blocks: u32,
    ) -> Result<(), ZnsError> {
        self.model.trim_begins(at..at + blocks);
        zns.deallocate(NOW, at.into(), blocks)?;
        self.model.trim_completes(at..at + blocks);
        Ok(())
    }

    pub(crate) fn flushed(&mut self) {
        self.model.flushed();
    }

    /// Every block has to hold what it may after a power cut.
    pub(crate) fn settle<M: Media>(&mut self, zns: &mut Zns<M>) {
        let mut block = [0; 4096];
        for lpn in 0..self.blocks {
            zns.read(NOW, lpn.into(), 1, &mut block).unwrap();
            self.model.settle(lpn, &block).unwrap();
        }
    }
}
