//! Formats by name, and the override grammar `F[:time=..][:addr=..][:read=0|1]`.

use thiserror::Error;

/// A trace format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Format {
    /// MSR Cambridge CSV.
    Msr,
    /// FIU lines with an MD5, one 4 KiB block per line.
    Fiu,
    /// Lines of the application-aware deduplication traces.
    Appdedupe,
    /// Storage Performance Council, as the `UMass` traces.
    Spc,
    /// SYSTOR '17.
    Systor,
    /// Alibaba block traces.
    Alibaba,
    /// K5cloud.
    K5cloud,
    /// Tencent CBS.
    Tencent,
    /// `SSDsim` ASCII.
    Ssdsim,
    /// `MQSim` ASCII, the same shape.
    Mqsim,
    /// `DiskSim` ASCII.
    Disksim,
    /// IODA: the shape of `DiskSim` in bytes.
    Ioda,
    /// Text of blkparse.
    Blkparse,
    /// Binary of blktrace.
    Blktrace,
    /// Text of tracefs block events.
    Tracefs,
    /// Log of the nbdkit log filter.
    NbdkitLog,
    /// fio I/O log, version 2 or 3.
    FioIolog,
    /// `VMware` vSCSI, 32-byte records.
    Vscsi1,
    /// `VMware` vSCSI, 40-byte records.
    Vscsi2,
    /// vSCSI as CSV.
    VscsiCsv,
    /// Sysinternals `DiskMon`.
    Diskmon,
    /// Onefold's text form.
    OnefoldCsv,
    /// Onefold's binary form.
    Oft,
    /// Onefold's Parquet schema.
    Parquet,
    /// libCacheSim's 24-byte records without a read/write flag.
    OracleGeneral,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 25] = [
        Self::Msr,
        Self::Fiu,
        Self::Appdedupe,
        Self::Spc,
        Self::Systor,
        Self::Alibaba,
        Self::K5cloud,
        Self::Tencent,
        Self::Ssdsim,
        Self::Mqsim,
        Self::Disksim,
        Self::Ioda,
        Self::Blkparse,
        Self::Blktrace,
        Self::Tracefs,
        Self::NbdkitLog,
        Self::FioIolog,
        Self::Vscsi1,
        Self::Vscsi2,
        Self::VscsiCsv,
        Self::Diskmon,
        Self::OnefoldCsv,
        Self::Oft,
        Self::Parquet,
        Self::OracleGeneral,
    ];

    /// The name on the command line and in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.words().0
    }

    /// What the format is and how its fields are read, for the interpretation line.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        self.words().1
    }

    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Msr => ("msr", "MSR CSV, FILETIME 100 ns, bytes"),
            Self::Fiu => ("fiu", "FIU lines, ns, 512 B sectors"),
            Self::Appdedupe => ("appdedupe", "AppDedupe lines, s, 512 B sectors"),
            Self::Spc => ("spc", "SPC lines, s, address 512 B, size bytes"),
            Self::Systor => ("systor", "SYSTOR '17 CSV, s, bytes"),
            Self::Alibaba => ("alibaba", "Alibaba CSV, us, bytes"),
            Self::K5cloud => ("k5cloud", "K5cloud CSV, s, bytes"),
            Self::Tencent => ("tencent", "Tencent CBS CSV, s, 512 B sectors, 0 = read"),
            Self::Ssdsim => ("ssdsim", "SSDsim or MQSim lines, ns, 512 B sectors, 1 = read"),
            Self::Mqsim => ("mqsim", "MQSim lines, ns, 512 B sectors, 1 = read"),
            Self::Disksim => ("disksim", "DiskSim lines, ms, 512 B sectors, bit 0 = read"),
            Self::Ioda => ("ioda", "IODA lines, ms, bytes, 1 = read"),
            Self::Blkparse => ("blkparse", "blkparse text, s, 512 B sectors"),
            Self::Blktrace => ("blktrace", "blktrace binary, ns, 512 B sectors"),
            Self::Tracefs => ("tracefs", "tracefs block events, s, 512 B sectors"),
            Self::NbdkitLog => ("nbdkit-log", "nbdkit log, us, bytes"),
            Self::FioIolog => ("fio-iolog", "fio iolog, us, bytes"),
            Self::Vscsi1 => ("vscsi1", "vSCSI version 1 binary, us, address 512 B"),
            Self::Vscsi2 => ("vscsi2", "vSCSI version 2 binary, us, address 512 B"),
            Self::VscsiCsv => ("vscsi-csv", "vSCSI CSV, s, address 512 B"),
            Self::Diskmon => ("diskmon", "DiskMon lines, s, 512 B sectors"),
            Self::OnefoldCsv => ("onefold-csv", "Onefold CSV, ns, 512 B sectors"),
            Self::Oft => ("oft", "Onefold binary trace, ns, bytes"),
            Self::Parquet => ("parquet", "Onefold Parquet, ns, bytes"),
            Self::OracleGeneral => ("oracleGeneral", "oracleGeneral binary, s, 512 B, reads only"),
        }
    }

    /// The format of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name().eq_ignore_ascii_case(name))
    }

    /// All names, for messages.
    #[must_use]
    pub fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// Units of the fields: what `:time=`, `:addr=` and `:read=` override.
    pub(crate) const fn defaults(self) -> Defaults {
        let (time, addr, read) = match self {
            Self::Fiu => (Some(TimeUnit::Ns), Some(AddrUnit::Sectors), None),
            Self::Appdedupe | Self::Spc | Self::VscsiCsv | Self::Diskmon => {
                (Some(TimeUnit::S), Some(AddrUnit::Sectors), None)
            }
            Self::Systor | Self::K5cloud => (Some(TimeUnit::S), Some(AddrUnit::Bytes), None),
            Self::Tencent => (Some(TimeUnit::S), Some(AddrUnit::Sectors), Some(0)),
            Self::Ssdsim | Self::Mqsim => (Some(TimeUnit::Ns), Some(AddrUnit::Sectors), Some(1)),
            Self::Disksim => (Some(TimeUnit::Ms), Some(AddrUnit::Sectors), Some(1)),
            Self::Ioda => (Some(TimeUnit::Ms), Some(AddrUnit::Bytes), Some(1)),
            Self::Vscsi1 | Self::Vscsi2 => (Some(TimeUnit::Us), Some(AddrUnit::Sectors), None),
            Self::OracleGeneral => (Some(TimeUnit::S), Some(AddrUnit::Sectors), None),
            // FILETIME, which no unit names.
            Self::Msr => (None, Some(AddrUnit::Bytes), None),
            Self::Alibaba | Self::FioIolog => (Some(TimeUnit::Us), Some(AddrUnit::Bytes), None),
            Self::Blkparse
            | Self::Blktrace
            | Self::Tracefs
            | Self::NbdkitLog
            | Self::OnefoldCsv
            | Self::Oft
            | Self::Parquet => (None, None, None),
        };
        Defaults { time, addr, read }
    }

    const fn takes_time(self) -> bool {
        matches!(self, Self::Msr) || self.defaults().time.is_some()
    }
}

/// The units a format has by itself; `None` where the override has no meaning.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Defaults {
    pub(crate) time: Option<TimeUnit>,
    pub(crate) addr: Option<AddrUnit>,
    pub(crate) read: Option<u8>,
}

/// Unit of a time field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Nanoseconds.
    Ns,
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
    /// Seconds.
    S,
}

impl TimeUnit {
    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ns => "ns",
            Self::Us => "us",
            Self::Ms => "ms",
            Self::S => "s",
        }
    }

    /// Decimal digits from this unit down to nanoseconds.
    #[must_use]
    pub const fn digits(self) -> u32 {
        match self {
            Self::Ns => 0,
            Self::Us => 3,
            Self::Ms => 6,
            Self::S => 9,
        }
    }

    /// Nanoseconds in one unit.
    #[must_use]
    pub const fn nanos(self) -> u64 {
        10_u64.pow(self.digits())
    }
}

/// Unit of an address field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddrUnit {
    /// Bytes.
    Bytes,
    /// Sectors of 512 bytes.
    Sectors,
}

impl AddrUnit {
    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Sectors => "512",
        }
    }

    /// Bytes in one unit.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Bytes => 1,
            Self::Sectors => 512,
        }
    }
}

/// A format with what the user overrides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormatSpec {
    /// The format.
    pub format: Format,
    /// Unit of the time field, if not the format's own.
    pub time: Option<TimeUnit>,
    /// Unit of the address field, if not the format's own.
    pub addr: Option<AddrUnit>,
    /// The number that means read, if not the format's own.
    pub read: Option<u8>,
}

impl FormatSpec {
    /// The format as it is.
    #[must_use]
    pub const fn new(format: Format) -> Self {
        Self { format, time: None, addr: None, read: None }
    }

    /// Parses `F[:time=ns|us|ms|s][:addr=bytes|512][:read=0|1]`.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let format =
            Format::from_name(name).ok_or_else(|| SpecError::Format { found: name.to_owned() })?;
        let mut spec = Self::new(format);
        for part in parts {
            match part {
                "time=ns" => spec.time = Some(TimeUnit::Ns),
                "time=us" => spec.time = Some(TimeUnit::Us),
                "time=ms" => spec.time = Some(TimeUnit::Ms),
                "time=s" => spec.time = Some(TimeUnit::S),
                "addr=bytes" => spec.addr = Some(AddrUnit::Bytes),
                "addr=512" => spec.addr = Some(AddrUnit::Sectors),
                "read=0" => spec.read = Some(0),
                "read=1" => spec.read = Some(1),
                _ => return Err(SpecError::Option { found: part.to_owned() }),
            }
        }
        spec.check()
    }

    fn check(self) -> Result<Self, SpecError> {
        let unused = |option| Err(SpecError::Unused { format: self.format, option });
        let defaults = self.format.defaults();
        if self.time.is_some() && !self.format.takes_time() {
            return unused("time=");
        }
        if self.addr.is_some() && defaults.addr.is_none() {
            return unused("addr=");
        }
        if self.read.is_some() && defaults.read.is_none() {
            return unused("read=");
        }
        Ok(self)
    }

    /// Whether a number stands for the direction of a request, so that it may be taken for the other one (`:read=`).
    #[must_use]
    pub const fn takes_read(&self) -> bool {
        self.format.defaults().read.is_some()
    }

    /// Format and overrides in words, for the interpretation line.
    #[must_use]
    pub fn meaning(&self) -> String {
        let time = self.time.map(|time| format!("time in {}", time.name()));
        let addr = self.addr.map(|addr| {
            let unit = if addr == AddrUnit::Bytes { "bytes" } else { "512 B sectors" };
            format!("addresses in {unit}")
        });
        let read = self.read.map(|read| format!("{read} = read"));
        let given: Vec<String> = [time, addr, read].into_iter().flatten().collect();
        let usual = self.format.meaning();
        if given.is_empty() {
            return usual.to_owned();
        }
        format!("{usual}; here {}", given.join(", "))
    }
}

/// Which event of a block-layer trace is the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Event {
    /// Issue to the driver (D): what the device sees.
    #[default]
    Issue,
    /// Queued (Q): before merging.
    Queue,
}

/// What to do about a line that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnBadLine {
    /// Stop with its place.
    #[default]
    Fail,
    /// Count and go on.
    Skip,
}

/// How to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ReadOptions {
    /// Bad lines.
    pub on_bad_line: OnBadLine,
    /// Event of block-layer traces.
    pub event: Event,
    /// Allow formats that cannot tell reads from writes.
    pub cache_study: bool,
}

/// A format override that says nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SpecError {
    /// The format.
    #[error("trace format is `{found}`, expected one of {}", Format::names())]
    Format {
        /// The name given.
        found: String,
    },
    /// A part after the format.
    #[error(
        "trace format option is `{found}`, expected time=ns|us|ms|s, addr=bytes|512 or read=0|1"
    )]
    Option {
        /// The text given.
        found: String,
    },
    /// The option means nothing in this format.
    #[error("{} has no use for `{option}`", .format.name())]
    Unused {
        /// The format named.
        format: Format,
        /// The option.
        option: &'static str,
    },
}

#[cfg(test)]
mod tests {
    use super::{AddrUnit, Format, FormatSpec, SpecError, TimeUnit};

    #[test]
    fn overrides_are_parsed_and_judged() {
        let spec = FormatSpec::parse("mqsim:time=us:addr=bytes:read=0").unwrap();
        assert_eq!(spec.format, Format::Mqsim);
        assert_eq!(spec.time, Some(TimeUnit::Us));
        assert_eq!(spec.addr, Some(AddrUnit::Bytes));
        assert_eq!(spec.read, Some(0));
        assert!(matches!(FormatSpec::parse("mrs"), Err(SpecError::Format { .. })));
        assert!(matches!(FormatSpec::parse("msr:time=h"), Err(SpecError::Option { .. })));
        assert!(matches!(FormatSpec::parse("oft:addr=512"), Err(SpecError::Unused { .. })));
        for format in Format::ALL {
            assert_eq!(Format::from_name(format.name()), Some(format));
        }
    }
}
