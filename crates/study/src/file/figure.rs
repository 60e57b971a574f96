//! What a figure shows.

use onefold_sim::result::{Column, ColumnKind, column};
use serde::{Serialize, Serializer};

use super::Published;
use super::area::{Accessed, AreaRatio};

/// How a figure shows its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FigureKind {
    /// Bars, grouped by workload and size, with marks for the bounds.
    Bars,
    /// Numbers only.
    Table,
    /// The zones that a journal goes through, and the metric below (Choi 2022, Fig. 3).
    Zones,
    /// The metric over virtual time, and that of the whole run below (Wu 2022, Fig. 8).
    Series,
}

impl FigureKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Bars, Self::Table, Self::Zones, Self::Series];

    /// Name in study files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bars => "bars",
            Self::Table => "table",
            Self::Zones => "zones",
            Self::Series => "series",
        }
    }
}

/// A number of one point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Runs of the simulator: a number by its name in the result, such as `latency_ns.write.p99`.
    Column(&'static Column),
    /// Hits in one area of a policy per page accessed.
    Area(&'static AreaRatio),
    /// Hits per page accessed by the target.
    TargetHitRatio,
    /// Hits per page accessed by anyone.
    TotalHitRatio,
    /// Hits per page read by the target.
    TargetReadHitRatio,
    /// Hits per page written by the target.
    TargetWriteHitRatio,
    /// Mean latency of the reads and writes of the target.
    TargetLatency,
    /// Mean latency of all reads and writes.
    TotalLatency,
    /// Pages programmed for anyone.
    PagesProgrammed,
    /// 1 - pages programmed / pages written.
    Absorption,
    /// Devices: MB read, written and remapped per second of virtual time.
    Bandwidth,
    /// Devices: pages programmed / pages written, deduplicated ones included.
    Waf,
    /// Devices: requests completed per second of virtual time.
    OpsPerSecond,
    /// Devices: pages programmed for any cause.
    FlashPages,
    /// Devices: pages deduplicated / pages written.
    DedupShare,
    /// Devices: mean latency of a write.
    WriteLatency,
    /// Devices: mean latency of a read.
    ReadLatency,
    /// Devices with a volume: pages sent to the device / pages written; 1 without.
    WafHost,
    /// Devices with a volume: write amplification of data alone, of the load and of the cleaner; that of the device without.
    WafData,
    /// Devices with a volume: longest time that it let a request wait; 0 without.
    LongestStall,
    /// Devices with a volume: valid pages that were copied, those thrown away included ("valid page copies" of Choi 2022).
    ValidCopies,
    /// Devices with a zoned volume: those of [`Metric::ValidCopies`] that went to the regular device.
    ValidCopiesRegular,
    /// Devices with a zoned volume: those of [`Metric::ValidCopies`] that went to the zoned device.
    ValidCopiesZoned,
    /// Devices with a zoned volume: pages of the journal among the valid ones that were copied.
    JournalCopyShare,
    /// Devices with a zoned volume: pages of the journal, in place and appended / pages written.
    JournalShare,
    /// Devices with a volume: pages sent to all devices / pages written.
    PhysPerUser,
    /// Devices with a zoned volume: zeroes that fill holes, those thrown away included / pages written.
    ZeroFill,
    /// Devices with a zoned volume: reclaims begun.
    Reclaims,
    /// Devices with a zoned volume: reclaims given up because the load wanted the zone / begun.
    Aborted,
    /// Devices with a zoned volume: requests that waited for reclaim or for a free zone.
    Waits,
    /// Devices with a volume: zones of the zoned device that were reset, which are its erases.
    ZoneResets,
    /// Devices with a zoned volume: how often another zone took the journal than before.
    JournalMoves,
    /// Drives: virtual time at the end of the first window of the series in which collection copied pages.
    GcBegins,
    /// Drives: virtual time at the end of the first window in which remaps were carried out as copies.
    CopiesBegin,
    /// Drives: bandwidth of the windows before the first in which collection copied pages.
    BandwidthBeforeGc,
    /// Drives: bandwidth from the first window on in which collection copied pages.
    BandwidthAfterGc,
    /// Drives: least bandwidth of a window.
    LowestBandwidth,
    /// Drives: pages with current content in the end, shared ones once.
    ValidPages,
    /// Drives: pages of full superblocks without current content, in the end.
    StalePages,
}

impl Metric {
    /// Every metric with a name of its own.
    pub const ALL: [Self; 37] = [
        Self::TargetHitRatio,
        Self::TotalHitRatio,
        Self::TargetReadHitRatio,
        Self::TargetWriteHitRatio,
        Self::TargetLatency,
        Self::TotalLatency,
        Self::PagesProgrammed,
        Self::Absorption,
        Self::Bandwidth,
        Self::Waf,
        Self::OpsPerSecond,
        Self::FlashPages,
        Self::DedupShare,
        Self::WriteLatency,
        Self::ReadLatency,
        Self::WafHost,
        Self::WafData,
        Self::LongestStall,
        Self::ValidCopies,
        Self::ValidCopiesRegular,
        Self::ValidCopiesZoned,
        Self::JournalCopyShare,
        Self::JournalShare,
        Self::PhysPerUser,
        Self::ZeroFill,
        Self::Reclaims,
        Self::Aborted,
        Self::Waits,
        Self::ZoneResets,
        Self::JournalMoves,
        Self::GcBegins,
        Self::CopiesBegin,
        Self::BandwidthBeforeGc,
        Self::BandwidthAfterGc,
        Self::LowestBandwidth,
        Self::ValidPages,
        Self::StalePages,
    ];

    /// The metric of that name: one of [`Metric::ALL`], a hit ratio in an area, or a number of a
    /// result of the simulator.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        let own = Self::ALL.into_iter().find(|metric| metric.name() == name);
        own.or_else(|| AreaRatio::find(name).map(Self::Area)).or_else(|| {
            let column = column(name)?;
            matches!(column.kind, ColumnKind::Count | ColumnKind::Real)
                .then_some(Self::Column(column))
        })
    }

    /// Name in study files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Column(column) => &column.name,
            Self::Area(ratio) => &ratio.name,
            Self::TargetHitRatio => Accessed::Target.names().0,
            Self::TotalHitRatio => Accessed::All.names().0,
            Self::TargetReadHitRatio => Accessed::TargetReads.names().0,
            Self::TargetWriteHitRatio => Accessed::TargetWrites.names().0,
            Self::TargetLatency => "target_latency",
            Self::TotalLatency => "total_latency",
            Self::PagesProgrammed => "pages_programmed",
            Self::Absorption => "absorption",
            Self::Bandwidth => "bandwidth",
            Self::Waf => "waf",
            Self::OpsPerSecond => "ops_per_s",
            Self::FlashPages => "flash_pages",
            Self::DedupShare => "dedup_share",
            Self::WriteLatency => "write_latency",
            Self::ReadLatency => "read_latency",
            Self::WafHost => "waf_host",
            Self::WafData => "waf_data",
            Self::LongestStall => "longest_stall",
            Self::ValidCopies => "valid_copies",
            Self::ValidCopiesRegular => "valid_copies_regular",
            Self::ValidCopiesZoned => "valid_copies_zoned",
            Self::JournalCopyShare => "journal_copy_share",
            Self::JournalShare => "journal_share",
            Self::PhysPerUser => "phys_per_user",
            Self::ZeroFill => "zero_fill",
            Self::Reclaims => "reclaims",
            Self::Aborted => "aborted",
            Self::Waits => "waits",
            Self::ZoneResets => "zone_resets",
            Self::JournalMoves => "journal_moves",
            Self::GcBegins => "gc_begins",
            Self::CopiesBegin => "copies_begin",
            Self::BandwidthBeforeGc => "bandwidth_before_gc",
            Self::BandwidthAfterGc => "bandwidth_after_gc",
            Self::LowestBandwidth => "lowest_bandwidth",
            Self::ValidPages => "valid_pages",
            Self::StalePages => "stale_pages",
        }
    }

    /// Name in figures.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Column(column) => &column.name,
            Self::Area(ratio) => &ratio.title,
            Self::TargetHitRatio => Accessed::Target.names().1,
            Self::TotalHitRatio => Accessed::All.names().1,
            Self::TargetReadHitRatio => Accessed::TargetReads.names().1,
            Self::TargetWriteHitRatio => Accessed::TargetWrites.names().1,
            Self::TargetLatency => "mean latency of the target",
            Self::TotalLatency => "mean latency of all tenants",
            Self::PagesProgrammed | Self::FlashPages => "pages programmed",
            Self::Absorption => "write absorption",
            Self::Bandwidth => "bandwidth in MB/s",
            Self::Waf => "write amplification",
            Self::OpsPerSecond => "requests per second",
            Self::DedupShare => "writes deduplicated",
            Self::WriteLatency => "mean latency of writes",
            Self::ReadLatency => "mean latency of reads",
            Self::WafHost => "write amplification of the volume",
            Self::WafData => "write amplification of data",
            Self::LongestStall => "longest wait for the volume",
            Self::ValidCopies => "valid pages copied",
            Self::ValidCopiesRegular => "valid pages copied to the regular device",
            Self::ValidCopiesZoned => "valid pages copied to the zoned device",
            Self::JournalCopyShare => "share of the journal in what was copied",
            Self::JournalShare => "share of the journal in what was written",
            Self::PhysPerUser => "written to devices / written by the load",
            Self::ZeroFill => "zeroes that fill holes / written by the load",
            Self::Reclaims => "reclaims begun",
            Self::Aborted => "share of the reclaims given up",
            Self::Waits => "requests that waited for a zone",
            Self::ZoneResets => "zones reset",
            Self::JournalMoves => "moves of the journal to another zone",
            Self::GcBegins => "time when collection begins to copy",
            Self::CopiesBegin => "time when remaps begin to be copies",
            Self::BandwidthBeforeGc => "bandwidth before collection in MB/s",
            Self::BandwidthAfterGc => "bandwidth since collection began in MB/s",
            Self::LowestBandwidth => "lowest bandwidth of a window in MB/s",
            Self::ValidPages => "valid pages",
            Self::StalePages => "stale pages",
        }
    }

    /// Whether it is a share of 1.
    #[must_use]
    pub fn is_share(self) -> bool {
        if let Self::Column(column) = self {
            return column.name.ends_with("_ratio") || column.name.ends_with("absorption");
        }
        let is_ratio = matches!(
            self,
            Self::Waf | Self::WafHost | Self::WafData | Self::PhysPerUser | Self::ZeroFill
        );
        let is_amount = matches!(
            self,
            Self::PagesProgrammed
                | Self::Bandwidth
                | Self::OpsPerSecond
                | Self::FlashPages
                | Self::ValidCopies
                | Self::ValidCopiesRegular
                | Self::ValidCopiesZoned
                | Self::Reclaims
                | Self::Waits
                | Self::ZoneResets
                | Self::JournalMoves
        ) || self.is_of_series();
        !self.is_time() && !is_ratio && !is_amount
    }

    /// Whether it is a time in nanoseconds.
    #[must_use]
    pub fn is_time(self) -> bool {
        if let Self::Column(column) = self {
            let name = column.name.as_str();
            let last = name.rsplit('.').next();
            return name.ends_with("_ns")
                || (name.starts_with("latency_") && last != Some("count"));
        }
        matches!(
            self,
            Self::TargetLatency
                | Self::TotalLatency
                | Self::WriteLatency
                | Self::ReadLatency
                | Self::LongestStall
                | Self::GcBegins
                | Self::CopiesBegin
        )
    }

    /// Whether it is a number of the windows of a run.
    #[must_use]
    pub const fn is_of_series(self) -> bool {
        matches!(
            self,
            Self::GcBegins
                | Self::CopiesBegin
                | Self::BandwidthBeforeGc
                | Self::BandwidthAfterGc
                | Self::LowestBandwidth
                | Self::ValidPages
                | Self::StalePages
        )
    }

    /// Whether each window of a run has it, so that a figure can draw it over time.
    #[must_use]
    pub const fn is_over_time(self) -> bool {
        matches!(self, Self::Bandwidth | Self::FlashPages | Self::ValidPages | Self::StalePages)
    }

    /// Whether it is one of devices, not of buffers.
    #[must_use]
    pub const fn is_of_devices(self) -> bool {
        self.is_of_series()
            || matches!(
                self,
                Self::Column(_)
                    | Self::Bandwidth
                    | Self::Waf
                    | Self::OpsPerSecond
                    | Self::FlashPages
                    | Self::DedupShare
                    | Self::WriteLatency
                    | Self::ReadLatency
                    | Self::WafHost
                    | Self::WafData
                    | Self::LongestStall
                    | Self::ValidCopies
                    | Self::ValidCopiesRegular
                    | Self::ValidCopiesZoned
                    | Self::JournalCopyShare
                    | Self::JournalShare
                    | Self::PhysPerUser
                    | Self::ZeroFill
                    | Self::Reclaims
                    | Self::Aborted
                    | Self::Waits
                    | Self::ZoneResets
                    | Self::JournalMoves
            )
    }

    /// Whether more is better: hits, speed, and writes that were saved.
    #[must_use]
    pub fn is_gain(self) -> bool {
        let name = self.name();
        let saved = ["ops_per_s", "dedup_share", "remap.deduplicated", "remap.remapped"];
        let is_speed = name.contains("bandwidth");
        name.contains("hit") || name.contains("absor") || is_speed || saved.contains(&name)
    }

    /// Whether it needs a target.
    #[must_use]
    pub const fn is_of_target(self) -> bool {
        match self {
            Self::Area(ratio) => ratio.accessed.is_of_target(),
            _ => matches!(
                self,
                Self::TargetHitRatio
                    | Self::TargetReadHitRatio
                    | Self::TargetWriteHitRatio
                    | Self::TargetLatency
            ),
        }
    }
}

impl Serialize for Metric {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// One figure of the report. Empty lists mean all.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Title.
    pub title: String,
    /// What to know about it.
    pub note: String,
    /// How it is shown.
    pub kind: FigureKind,
    /// What it shows.
    pub metric: Metric,
    /// Names of the workloads.
    pub workloads: Vec<String>,
    /// Sizes in bytes.
    pub sizes: Vec<u64>,
    /// Labels of policies and names of bounds.
    pub policies: Vec<String>,
    /// Labels of what it is about: a part of the study with none of them has no such figure.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub about: Vec<String>,
    /// Label of the latency model; the first of the study if `None`.
    pub latency: Option<String>,
    /// Label of the policy that the others are divided by.
    pub baseline: Option<String>,
    /// Ids of the checks that are shown beside it.
    pub checks: Vec<String>,
    /// What the figure of the paper shows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<Published>,
}

impl Figure {
    /// Everything about one metric.
    #[must_use]
    pub fn of(metric: Metric) -> Self {
        let title = metric.title();
        let (first, rest) = title.split_at(1);
        Self {
            title: first.to_uppercase() + rest,
            note: String::new(),
            kind: FigureKind::Bars,
            metric,
            workloads: Vec::new(),
            sizes: Vec::new(),
            policies: Vec::new(),
            about: Vec::new(),
            latency: None,
            baseline: None,
            checks: Vec::new(),
            published: Vec::new(),
        }
    }
}
