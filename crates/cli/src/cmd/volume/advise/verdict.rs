//! Whether a volume helps: the rows of docs/volume.md, "When it helps, and when not", in the order in which they decide.

/// What is known of a device and of what is to be written to it. What is not known decides nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Case {
    pub(super) zoned: bool,
    /// Bytes of the indirection unit.
    pub(super) unit: Option<u64>,
    /// Bandwidth of random writes of 4 KiB / of sequential ones.
    pub(super) random_share: Option<f64>,
    pub(super) rotational: bool,
    /// A file system on it that is a log itself.
    pub(super) log_on_top: Option<String>,
    pub(super) utilisation: f64,
    /// Flushes per write, and mean bytes of a write.
    pub(super) flushes_per_write: Option<f64>,
    pub(super) write_bytes: Option<f64>,
    /// Share of requests that go on where the one before ended.
    pub(super) sequential_share: Option<f64>,
    /// Predicted amplification without a volume and with one.
    pub(super) predicted: Option<(f64, f64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Use,
    Neutral,
    Dont,
}

impl Verdict {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Use => "use",
            Self::Neutral => "neutral",
            Self::Dont => "don't",
        }
    }
}

/// A verdict, the row that decided, and why it applies.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Decision {
    pub(super) verdict: Verdict,
    pub(super) row: &'static str,
    pub(super) why: String,
}

/// Above this part of the log in use, cleaning costs more than it can bring.
const FULL: f64 = 0.85;
/// Up to this part it pays where the device gains.
const ROOMY: f64 = 0.7;
/// Random writes that reach this share of sequential ones leave nothing to gain.
const SAME: f64 = 0.8;
/// Below this share a drive suffers from random writes.
const SUFFERS: f64 = 0.3;
/// Indirection unit from which on small writes are rewritten many times.
const LARGE_UNIT: u64 = 16 << 10;

type Row = (Verdict, &'static str, fn(&Case) -> Option<String>);

/// The first row that applies decides.
const ROWS: &[Row] = &[
    (Verdict::Dont, "a file system on top that is a log itself", log_on_top),
    (Verdict::Dont, "more than 85 % of the log in use", full),
    (Verdict::Use, "zoned", zoned),
    (Verdict::Neutral, "single small writes, each followed by a flush", flushed_alone),
    (Verdict::Neutral, "mostly sequential writes", sequential),
    (Verdict::Neutral, "writes of an indirection unit and more", long_writes),
    (
        Verdict::Use,
        "indirection unit of 16 KiB and more, at most 70 % of the log in use",
        large_unit,
    ),
    (Verdict::Neutral, "indirection unit of 16 KiB and more, 70 to 85 % of the log in use", fuller),
    (Verdict::Dont, "drives on which random writes are as fast as sequential ones", as_fast),
    (Verdict::Use, "eMMC- and SATA-class drives, at most 70 % of the log in use", suffers),
    (Verdict::Neutral, "a disk that may rotate, and was not measured", may_rotate),
    (Verdict::Dont, "a drive that maps 4 KiB", small_unit),
];

pub(super) fn decide(case: &Case) -> Decision {
    let applies =
        |(verdict, row, rule): &Row| rule(case).map(|why| Decision { verdict: *verdict, row, why });
    ROWS.iter().find_map(applies).unwrap_or_else(|| Decision {
        verdict: Verdict::Neutral,
        row: "nothing decisive is known",
        why: "measure with --scratch or --destructive, or say what is written with --trace"
            .to_owned(),
    })
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn log_on_top(case: &Case) -> Option<String> {
    case.log_on_top.as_ref().map(|name| format!("it holds {name}, which would be a log on a log"))
}

fn full(case: &Case) -> Option<String> {
    (case.utilisation > FULL).then(|| format!("{} would be in use", percent(case.utilisation)))
}

fn zoned(case: &Case) -> Option<String> {
    case.zoned.then(|| "random writes are not possible without a layer".to_owned())
}

fn flushed_alone(case: &Case) -> Option<String> {
    let (flushes, bytes) = (case.flushes_per_write?, case.write_bytes?);
    (flushes >= 0.5 && bytes <= 8192.0).then(|| {
        format!(
            "{flushes:.2} flushes per write of {bytes:.0} B: each batch is a header and little more"
        )
    })
}

fn sequential(case: &Case) -> Option<String> {
    let share = case.sequential_share?;
    (share >= SAME).then(|| format!("{} of the requests are sequential", percent(share)))
}

fn is_large(case: &Case) -> Option<u64> {
    case.unit.filter(|unit| *unit >= LARGE_UNIT)
}

/// They fill indirection units by themselves.
fn long_writes(case: &Case) -> Option<String> {
    is_large(case)?;
    let ((without, with), bytes) = (case.predicted?, case.write_bytes?);
    (with >= without).then(|| {
        format!("of {bytes:.0} B; write amplification would grow from {without:.2} to {with:.2}")
    })
}

fn large_unit(case: &Case) -> Option<String> {
    let unit = is_large(case)?;
    (case.utilisation <= ROOMY).then(|| rewritten(unit))
}

fn fuller(case: &Case) -> Option<String> {
    is_large(case).map(rewritten)
}

fn rewritten(unit: u64) -> String {
    format!("a write of 4 KiB rewrites {} KiB", unit >> 10)
}

fn as_fast(case: &Case) -> Option<String> {
    let share = case.random_share?;
    (share >= SAME).then(|| format!("random writes reach {} of the bandwidth", percent(share)))
}

fn suffers(case: &Case) -> Option<String> {
    let share = case.random_share?;
    (share < SUFFERS && case.utilisation <= ROOMY).then(|| {
        format!("random writes reach {} of the bandwidth of sequential ones", percent(share))
    })
}

/// Virtual disks say so as well, whatever they lie on.
fn may_rotate(case: &Case) -> Option<String> {
    (case.rotational && case.random_share.is_none()).then(|| {
        "the system says so, as it does of many virtual disks: --scratch FILE measures whether random writes are slow"
            .to_owned()
    })
}

fn small_unit(case: &Case) -> Option<String> {
    let unit = case.unit?;
    let (without, with) = case.predicted?;
    (unit < LARGE_UNIT && with >= without).then(|| {
        format!("write amplification would grow from {without:.2} to {with:.2}; only bandwidth could gain")
    })
}

#[cfg(test)]
mod tests {
    use super::{Case, Verdict, decide};

    #[test]
    fn each_row_decides_its_case() {
        let case = Case { utilisation: 0.7, predicted: Some((2.0, 2.5)), ..Case::default() };
        let small = Case { unit: Some(4096), ..case.clone() };
        let large = Case { unit: Some(16384), predicted: Some((8.0, 2.5)), ..case.clone() };
        for (case, verdict, row) in [
            (case.clone(), Verdict::Neutral, "nothing"),
            (small.clone(), Verdict::Dont, "maps 4 KiB"),
            (Case { random_share: Some(0.1), ..small.clone() }, Verdict::Use, "SATA"),
            (Case { random_share: Some(0.9), ..small.clone() }, Verdict::Dont, "as fast"),
            (Case { random_share: Some(0.5), ..small.clone() }, Verdict::Dont, "maps 4 KiB"),
            (Case { rotational: true, ..small.clone() }, Verdict::Neutral, "may rotate"),
            (
                Case { rotational: true, random_share: Some(0.1), ..small.clone() },
                Verdict::Use,
                "SATA",
            ),
            (large.clone(), Verdict::Use, "16 KiB and more, at most 70"),
            (Case { utilisation: 0.8, ..large.clone() }, Verdict::Neutral, "70 to 85"),
            (Case { utilisation: 0.9, ..large.clone() }, Verdict::Dont, "85 %"),
            (
                Case { log_on_top: Some("F2FS".to_owned()), ..large.clone() },
                Verdict::Dont,
                "on top",
            ),
            (Case { zoned: true, ..small.clone() }, Verdict::Use, "zoned"),
            (
                Case { write_bytes: Some(65536.0), predicted: Some((2.0, 2.5)), ..large.clone() },
                Verdict::Neutral,
                "indirection unit and more",
            ),
            (Case { sequential_share: Some(0.9), ..large.clone() }, Verdict::Neutral, "mostly"),
            (
                Case { flushes_per_write: Some(1.0), write_bytes: Some(4096.0), ..large.clone() },
                Verdict::Neutral,
                "each followed by a flush",
            ),
        ] {
            let found = decide(&case);
            assert!(found.verdict == verdict && found.row.contains(row), "{case:?}: {found:?}");
        }
    }
}
