//! Records into text formats, with an account of what each format cannot hold.

mod text;

use crate::oft;
use crate::{Record, TraceOp};
use onefold_units::SECTOR_BYTES;

/// A format that can be written as a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteFormat {
    /// Onefold's binary form.
    Oft,
    /// Onefold's text form.
    OnefoldCsv,
    /// MSR Cambridge CSV.
    Msr,
    /// fio I/O log, version 3.
    FioIolog,
    /// `MQSim` ASCII.
    Mqsim,
    /// `SSDsim` ASCII.
    Ssdsim,
}

impl WriteFormat {
    /// Every format.
    pub const ALL: [Self; 6] =
        [Self::Oft, Self::OnefoldCsv, Self::Msr, Self::FioIolog, Self::Mqsim, Self::Ssdsim];

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Oft => "oft",
            Self::OnefoldCsv => "onefold-csv",
            Self::Msr => "msr",
            Self::FioIolog => "fio-iolog",
            Self::Mqsim => "mqsim",
            Self::Ssdsim => "ssdsim",
        }
    }

    /// The format of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Whether records keep the number of their device, so that devices need no common address
    /// space.
    #[must_use]
    pub const fn keeps_devices(self) -> bool {
        !matches!(self, Self::OnefoldCsv)
    }

    /// Nanoseconds in the unit of its times.
    const fn tick_ns(self) -> u64 {
        match self {
            Self::Oft | Self::OnefoldCsv | Self::Mqsim | Self::Ssdsim => 1,
            Self::Msr => 100,
            Self::FioIolog => 1_000,
        }
    }

    const fn sectors(self) -> bool {
        matches!(self, Self::OnefoldCsv | Self::Mqsim | Self::Ssdsim)
    }

    const fn can(self, op: TraceOp) -> bool {
        match self {
            Self::Oft => true,
            Self::OnefoldCsv => !matches!(op, TraceOp::Remap | TraceOp::Append | TraceOp::Zone),
            Self::FioIolog => {
                matches!(op, TraceOp::Read | TraceOp::Write | TraceOp::Flush | TraceOp::Trim)
            }
            Self::Msr | Self::Mqsim | Self::Ssdsim => op.is_data(),
        }
    }
}

/// What the output cannot hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Requests left out, because the format has no such operation.
    pub requests: u64,
    /// Requests widened to whole sectors of 512 B.
    pub widened: u64,
    /// Times rounded down to the unit of the format.
    pub times: u64,
    /// Latencies.
    pub latencies: u64,
    /// Requests whose flags are lost.
    pub flags: u64,
    /// Writes whose digests are lost.
    pub digests: u64,
}

impl Losses {
    /// Whether everything is kept.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// One line per kind of loss.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        [
            (self.requests, "requests left out: the format has no such operation"),
            (self.widened, "requests widened to whole 512 B sectors"),
            (self.times, "times rounded down to the unit of the format"),
            (self.latencies, "latencies lost"),
            (self.flags, "requests lost their flags"),
            (self.digests, "writes lost their digests"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect()
    }
}

/// Writes records without doing I/O: bytes are appended to a buffer the driver empties.
#[derive(Debug)]
pub struct Writer {
    format: WriteFormat,
    epoch_unix_ns: u64,
    devices: Vec<String>,
    oft: Option<oft::Encoder>,
    started: bool,
    seen_devices: Vec<bool>,
    losses: Losses,
}

impl Writer {
    /// A writer. `epoch_unix_ns` is the time of t = 0, or 0; `devices` names the devices;
    /// `digests` tells that records have digests.
    #[must_use]
    pub fn new(
        format: WriteFormat,
        epoch_unix_ns: u64,
        devices: Vec<String>,
        digests: bool,
    ) -> Self {
        let flags = if digests { oft::FLAG_DIGESTS } else { 0 };
        let header = oft::Header { flags, epoch_unix_ns, ..oft::Header::unknown() };
        let oft = (format == WriteFormat::Oft).then(|| oft::Encoder::new(header));
        let seen_devices = vec![false; devices.len()];
        Self {
            format,
            epoch_unix_ns,
            devices,
            oft,
            started: false,
            seen_devices,
            losses: Losses::default(),
        }
    }

    /// What was lost so far.
    #[must_use]
    pub const fn losses(&self) -> &Losses {
        &self.losses
    }

    fn start(&mut self, out: &mut Vec<u8>) {
        if self.started {
            return;
        }
        self.started = true;
        match (&self.oft, self.format) {
            (Some(encoder), _) => out.extend_from_slice(&encoder.header()),
            (None, WriteFormat::OnefoldCsv) => {
                text::line(out, crate::formats::ONEFOLD_CSV_HEADER);
            }
            (None, WriteFormat::FioIolog) => text::line(out, "fio version 3 iolog"),
            (None, _) => {}
        }
    }

    /// Appends one record.
    pub fn push(&mut self, record: &Record, out: &mut Vec<u8>) {
        self.start(out);
        if let Some(encoder) = &mut self.oft {
            encoder.push(record, out);
            return;
        }
        if !self.format.can(record.op) {
            self.losses.requests += 1;
            return;
        }
        self.count_losses(record);
        match self.format {
            WriteFormat::Oft => {}
            WriteFormat::OnefoldCsv => text::onefold_csv(record, out),
            WriteFormat::Msr => text::msr(record, self.epoch_unix_ns, &self.devices, out),
            WriteFormat::FioIolog => {
                text::fio_iolog(record, &self.devices, &mut self.seen_devices, out);
            }
            WriteFormat::Mqsim | WriteFormat::Ssdsim => text::simulator(record, out),
        }
    }

    fn count_losses(&mut self, record: &Record) {
        let losses = &mut self.losses;
        let csv = self.format == WriteFormat::OnefoldCsv;
        let off_grid = |value: u64| !value.is_multiple_of(SECTOR_BYTES);
        losses.widened +=
            u64::from(self.format.sectors() && (off_grid(record.offset) || off_grid(record.len)));
        losses.times += u64::from(!record.t_ns.is_multiple_of(self.format.tick_ns()));
        let keeps_latency = match self.format {
            WriteFormat::OnefoldCsv | WriteFormat::Oft => true,
            WriteFormat::Msr => record.lat_ns.is_some_and(|ns| ns.is_multiple_of(100)),
            _ => false,
        };
        losses.latencies += u64::from(record.lat_ns.is_some() && !keeps_latency);
        // The letters of onefold-csv cover the first four flags.
        let kept = if csv { 0b1111 } else { 0 };
        losses.flags += u64::from(record.flags.bits() & !kept != 0);
        losses.digests += u64::from(record.digests.is_some());
    }

    /// Appends what is pending and the end of the file.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.start(out);
        if let Some(encoder) = &mut self.oft {
            encoder.finish(out);
        }
        if self.format == WriteFormat::FioIolog {
            text::fio_close(&self.devices, &self.seen_devices, out);
        }
    }
}
