//! Whether a volume or streams help: the one judgement, of two simulations of the same load.

use onefold_units::convert::float;

/// What a load came to on a drive, alone or through a volume.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Measured {
    /// Bytes that flash programmed / bytes that the load wrote.
    pub(super) programmed: f64,
    /// Time from the first request to the last answer.
    pub(super) time_ns: u64,
    /// Pages that the load wrote.
    pub(super) written_pages: u64,
    /// Superblocks erased.
    pub(super) erases: u64,
}

/// A drive alone may not take a load at all, as one with zones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Alone {
    Measured(Measured),
    Refused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Use,
    DoesNotHelp,
    NotMeasurable,
}

impl Verdict {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Use => "use",
            Self::DoesNotHelp => "does not help",
            Self::NotMeasurable => "not measurable",
        }
    }
}

/// A verdict and the numbers that it follows from, in words.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Judgement {
    pub(super) verdict: Verdict,
    pub(super) why: String,
}

/// The share of the bytes that a volume or streams have to save. The simulation agrees with served drives within 2 %.
pub(super) const MARGIN: f64 = 0.05;

/// Share by which the time has to differ to be worth a word.
const TIME: f64 = 0.2;

/// Judges two runs of the same load, which should have written so many pages: the drive alone, and `with` what `what` says.
pub(super) fn judge(alone: &Alone, with: &Measured, wanted_pages: u64, what: &str) -> Judgement {
    let not = |why: String| Judgement { verdict: Verdict::NotMeasurable, why };
    if with.written_pages == 0 {
        return not("the load writes nothing".to_owned());
    }
    let Alone::Measured(alone) = alone else {
        let why = "the drive alone does not take this load: its zones are written in order";
        return Judgement { verdict: Verdict::Use, why: why.to_owned() };
    };
    if with.written_pages < wanted_pages / 2 {
        return not(format!(
            "the load writes {} pages of the {wanted_pages} in which a drive of this state shows what it collects",
            with.written_pages
        ));
    }
    if alone.erases == 0 || with.erases == 0 {
        return not("nothing was erased: the drive had free space, and garbage collection is in none of the numbers"
            .to_owned());
    }
    let change = with.programmed / alone.programmed - 1.0;
    let verdict = if change <= -MARGIN { Verdict::Use } else { Verdict::DoesNotHelp };
    let bytes = format!(
        "flash programs {:.2} bytes for each byte written with {what}, {:.2} without: {}",
        with.programmed,
        alone.programmed,
        difference(change),
    );
    Judgement { verdict, why: bytes + &in_time(verdict, alone, with) }
}

fn difference(change: f64) -> String {
    let percent = change.abs() * 100.0;
    match change {
        change if change <= -MARGIN => format!("{percent:.0} % less"),
        change if change < 0.0 => {
            format!("{percent:.1} % less, and a gain begins at {:.0} %", MARGIN * 100.0)
        }
        _ => format!("{percent:.1} % more"),
    }
}

/// Bytes decide. Where the time says something else, the user is told.
fn in_time(verdict: Verdict, alone: &Measured, with: &Measured) -> String {
    let ratio = float(with.time_ns) / float(alone.time_ns.max(1));
    match verdict {
        Verdict::Use if ratio > 1.0 + TIME => {
            format!("; but the load takes {ratio:.1} times as long")
        }
        Verdict::DoesNotHelp if ratio < 1.0 - TIME => {
            format!("; it is the time that gets less, to {:.0} %", ratio * 100.0)
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Alone, Measured, Verdict, judge};

    const SIDE: Measured =
        Measured { programmed: 2.0, time_ns: 1000, written_pages: 1000, erases: 9 };

    fn verdict(alone: f64, with: f64) -> Verdict {
        let alone = Alone::Measured(Measured { programmed: alone, ..SIDE });
        judge(&alone, &Measured { programmed: with, ..SIDE }, 1000, "a volume").verdict
    }

    #[test]
    fn the_verdict_flips_where_the_bytes_do() {
        for (alone, with, expected) in [
            (2.0, 1.0, Verdict::Use),
            (2.0, 1.899, Verdict::Use),
            (2.0, 1.901, Verdict::DoesNotHelp),
            (2.0, 2.0, Verdict::DoesNotHelp),
            (1.0, 2.0, Verdict::DoesNotHelp),
        ] {
            assert_eq!(verdict(alone, with), expected, "{alone} {with}");
        }
    }

    #[test]
    fn runs_that_collect_nothing_or_are_short_prove_nothing() {
        let alone = Alone::Measured(SIDE);
        for (with, wanted) in [
            (Measured { written_pages: 0, ..SIDE }, 0),
            (Measured { erases: 0, ..SIDE }, 1000),
            (SIDE, 2002),
        ] {
            assert_eq!(
                judge(&alone, &with, wanted, "a volume").verdict,
                Verdict::NotMeasurable,
                "{with:?}"
            );
        }
        assert_eq!(judge(&alone, &SIDE, 2000, "a volume").verdict, Verdict::DoesNotHelp);
        assert_eq!(judge(&Alone::Refused, &SIDE, 1000, "a volume").verdict, Verdict::Use);
    }

    #[test]
    fn time_is_told_where_it_says_something_else() {
        let why = |alone, with, time_ns| {
            let alone = Alone::Measured(Measured { programmed: alone, ..SIDE });
            judge(&alone, &Measured { programmed: with, time_ns, ..SIDE }, 0, "a volume").why
        };
        assert!(why(2.0, 1.0, 3000).ends_with("50 % less; but the load takes 3.0 times as long"));
        assert!(
            why(1.0, 1.1, 300).ends_with("10.0 % more; it is the time that gets less, to 30 %")
        );
        assert!(why(2.0, 1.0, 300).ends_with("50 % less"));
        assert!(why(2.0, 1.96, 1000).ends_with("2.0 % less, and a gain begins at 5 %"));
    }
}
