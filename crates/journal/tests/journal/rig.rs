//! A detector with its driver: writes go to a disk, readings are answered from it, time passes.

use onefold_journal::{Class, Detector, Output, Setting, Write};
use onefold_units::{Lba, Nanos};

use crate::images::Disk;

pub(crate) struct Rig {
    pub(crate) disk: Disk,
    pub(crate) detector: Detector,
    pub(crate) now: Nanos,
    /// Blocks that were read for it.
    pub(crate) reads: u64,
    pub(crate) changes: u64,
}

impl Rig {
    pub(crate) fn new(disk: Disk, setting: Setting) -> Self {
        let detector = Detector::new(disk.blocks, setting, Nanos::ZERO);
        let mut rig = Self { disk, detector, now: Nanos::ZERO, reads: 0, changes: 0 };
        rig.run();
        rig
    }

    /// Does what the detector asks for.
    pub(crate) fn run(&mut self) {
        while let Some(output) = self.detector.poll_output() {
            match output {
                Output::Changed => self.changes += 1,
                Output::Read(lba) => {
                    self.reads += 1;
                    let block = self.disk.read(lba);
                    self.detector.handle_read(self.now, lba, Some(&block));
                }
            }
        }
    }

    pub(crate) fn write(&mut self, at: u64, data: &[u8]) {
        self.write_fua(at, data, false);
    }

    pub(crate) fn write_fua(&mut self, at: u64, data: &[u8], fua: bool) {
        self.disk.write(at, data);
        let write = Write { at, bytes: data.len() as u64, data: Some(data), fua };
        self.detector.handle_write(self.now, &write);
        self.run();
    }

    /// A write that the disk need not keep.
    pub(crate) fn traffic(&mut self, at: u64, bytes: u64, data: Option<&[u8]>, fua: bool) {
        self.detector.handle_write(self.now, &Write { at, bytes, data, fua });
        self.run();
    }

    /// Lets time pass, timer by timer.
    pub(crate) fn wait(&mut self, seconds: u64) {
        let until = self.now + Nanos::new(seconds * 1_000_000_000);
        let mut timers = 0;
        while let Some(at) = self.detector.poll_timeout().filter(|at| *at <= until) {
            timers += 1;
            assert!(timers < 1000, "timers go off for ever, at {at:?}");
            self.now = self.now.max(at);
            self.detector.handle_timeout(self.now);
            self.run();
        }
        self.now = until;
    }

    pub(crate) fn class(&self, block: u64) -> Option<Class> {
        self.detector.span(Lba::new(block)).class
    }
}
