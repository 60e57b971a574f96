//! Small devices with a buffer.

use onefold_buffer::{Charge, PolicySpec};
use onefold_nand::{Geometry, GeometrySpec, Media, Span};
use onefold_ssd::{Command, Completion, Payload, Ssd, SsdConfig, SsdError, example_config};
use onefold_units::convert::{index64, u64_from};
use onefold_units::{Nanos, Op};

/// Two dies of 24 superblocks of 8 programs each.
pub(crate) fn geometry(page_bytes: u32, unit_bytes: u32) -> Geometry {
    Geometry::new(GeometrySpec {
        channels: 2,
        ways: 1,
        planes: 1,
        blocks: 24,
        pages: 8,
        page_bytes,
        unit_bytes,
        span: Span::Device,
    })
    .unwrap()
}

/// A device of 128 units with a buffer of `slots` of them.
pub(crate) fn config(policy: PolicySpec, geometry: Geometry, slots: u32) -> SsdConfig {
    let mut config = SsdConfig { geometry, ..example_config() };
    config.ftl.logical_units = 128;
    config.ftl.trim_log_bytes = 4096;
    config.buffer.policy = policy;
    config.buffer.charge = Charge::None;
    config.buffer.bytes = u64::from(slots) * u64::from(geometry.unit_bytes());
    config
}

/// A device and the time.
pub(crate) struct Rig<M> {
    pub(crate) ssd: Ssd<M>,
    pub(crate) now: u64,
}

impl<M: Media> Rig<M> {
    pub(crate) const fn new(ssd: Ssd<M>) -> Self {
        Self { ssd, now: 0 }
    }

    /// Submits a command now. Time stands still.
    pub(crate) fn submit(
        &mut self,
        command: &Command,
        payload: Payload<'_>,
    ) -> Result<Completion, SsdError> {
        self.ssd.submit(Nanos::new(self.now), command, payload)
    }

    /// Latency of a command without bytes.
    pub(crate) fn latency(&mut self, op: Op, offset: u64, len: u64) -> u64 {
        self.time(&Command::new(op, offset, len))
    }

    /// Latency of a command without bytes.
    pub(crate) fn time(&mut self, command: &Command) -> u64 {
        self.submit(command, Payload::None).unwrap().at.get() - self.now
    }

    pub(crate) fn write(&mut self, offset: u64, data: &[u8], fua: bool) -> Result<(), SsdError> {
        let command = Command { fua, ..Command::new(Op::Write, offset, u64_from(data.len())) };
        self.submit(&command, Payload::Write(data)).map(drop)
    }

    pub(crate) fn read(&mut self, offset: u64, len: u64) -> Result<Vec<u8>, SsdError> {
        let mut data = vec![0xEE; index64(len)];
        self.submit(&Command::new(Op::Read, offset, len), Payload::Read(&mut data))?;
        Ok(data)
    }

    pub(crate) fn trim(&mut self, offset: u64, len: u64) -> Result<(), SsdError> {
        self.submit(&Command::new(Op::Trim, offset, len), Payload::None).map(drop)
    }

    pub(crate) fn flush(&mut self) -> Result<(), SsdError> {
        self.submit(&Command::new(Op::Flush, 0, 0), Payload::None).map(drop)
    }
}
