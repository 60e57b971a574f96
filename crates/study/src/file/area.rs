//! Hit ratios by the area of a policy that the page was in: `total_hit_ratio.baw`.

use std::sync::LazyLock;

/// Hits in one area of a policy per page accessed. Those of all areas add up to the hit ratio itself.
#[derive(Debug, PartialEq, Eq)]
pub struct AreaRatio {
    /// Name in study files.
    pub name: String,
    /// Name in figures.
    pub title: String,
    /// What is counted, in the area and for the pages accessed.
    pub accessed: Accessed,
    /// Name of the area.
    pub area: &'static str,
}

/// Which accesses a hit ratio is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accessed {
    /// Those of the target.
    Target,
    /// Reads of the target.
    TargetReads,
    /// Writes of the target.
    TargetWrites,
    /// All.
    All,
}

impl Accessed {
    const ALL: [Self; 4] = [Self::Target, Self::TargetReads, Self::TargetWrites, Self::All];

    /// Names of the hit ratio, in study files and in figures.
    pub(super) const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Target => ("target_hit_ratio", "hit ratio of the target"),
            Self::TargetReads => ("target_read_hit_ratio", "read hit ratio of the target"),
            Self::TargetWrites => ("target_write_hit_ratio", "write hit ratio of the target"),
            Self::All => ("total_hit_ratio", "hit ratio of all tenants"),
        }
    }

    /// Whether other tenants do not count.
    pub(crate) const fn is_of_target(self) -> bool {
        !matches!(self, Self::All)
    }

    /// A count of reads and one of writes, as far as they are accesses of this kind.
    pub(crate) const fn of(self, reads: u64, writes: u64) -> u64 {
        match self {
            Self::Target | Self::All => reads.saturating_add(writes),
            Self::TargetReads => reads,
            Self::TargetWrites => writes,
        }
    }
}

/// Areas of the built-in policies that have several.
const AREAS: [&str; 21] = [
    "bar",
    "baw",
    "candidates",
    "cold",
    "cold-clean",
    "cold-dirty",
    "hir",
    "hot",
    "in",
    "lir",
    "main",
    "mixed",
    "often",
    "once",
    "probation",
    "protected",
    "random",
    "sequential",
    "small",
    "sorb",
    "window",
];

impl AreaRatio {
    fn new(accessed: Accessed, area: &'static str) -> Self {
        let (name, title) = accessed.names();
        Self { name: format!("{name}.{area}"), title: format!("{title} in {area}"), accessed, area }
    }

    /// The hit ratio of that name.
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        static RATIOS: LazyLock<Vec<AreaRatio>> = LazyLock::new(|| {
            let of = |accessed| AREAS.into_iter().map(move |area| AreaRatio::new(accessed, area));
            Accessed::ALL.into_iter().flat_map(of).collect()
        });
        RATIOS.iter().find(|ratio| ratio.name == name)
    }
}
