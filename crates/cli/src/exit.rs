//! Exit codes: the one table of this program, in its help and, word for word, in docs/exit-codes.md.

use std::process::ExitCode;

/// How the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All went well.
    Ok,
    /// The command failed.
    Failed,
    /// The command line is wrong.
    Usage,
    /// The configuration cannot work.
    Infeasible,
    /// The trace is bad or truncated.
    BadTrace,
    /// The image, volume or socket is in use.
    Busy,
    /// `check` or `scrub` repaired something (fsck(8)).
    Repaired,
    /// `check` or `scrub` found damage and left it (fsck(8)).
    Damaged,
    /// Both: something was repaired, and something else was not (fsck(8) adds up).
    PartlyRepaired,
    /// `check` or `scrub` could not run (fsck(8)).
    CheckFailed,
    /// A power cut breaks what a program promised, or its file system.
    PowerCut,
    /// A budget of `try` is broken.
    Budget,
    /// The program of `try` cannot be started.
    NotFound,
    /// Ended by SIGINT.
    Interrupted,
    /// Ended by SIGTERM.
    Terminated,
}

impl Exit {
    /// Every way to end, in the order of the table.
    pub(crate) const ALL: [Self; 15] = [
        Self::Ok,
        Self::Failed,
        Self::Repaired,
        Self::Usage,
        Self::Infeasible,
        Self::BadTrace,
        Self::Damaged,
        Self::Busy,
        Self::PartlyRepaired,
        Self::Budget,
        Self::PowerCut,
        Self::CheckFailed,
        Self::NotFound,
        Self::Interrupted,
        Self::Terminated,
    ];

    /// The number that a shell sees.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Failed | Self::Repaired => 1,
            Self::Usage => 2,
            Self::Infeasible => 3,
            Self::BadTrace | Self::Damaged => 4,
            Self::Busy | Self::PartlyRepaired => 5,
            Self::Budget => 6,
            Self::PowerCut => 7,
            Self::CheckFailed => 8,
            Self::NotFound => 127,
            Self::Interrupted => 130,
            Self::Terminated => 143,
        }
    }

    /// Which commands end so.
    pub(crate) const fn commands(self) -> &'static str {
        match self {
            Self::Repaired | Self::Damaged | Self::PartlyRepaired | Self::CheckFailed => {
                "check, scrub"
            }
            Self::BadTrace => "reading a trace",
            Self::PowerCut => "try, crash explore",
            Self::Budget | Self::NotFound => "try",
            Self::Ok
            | Self::Failed
            | Self::Usage
            | Self::Infeasible
            | Self::Busy
            | Self::Interrupted
            | Self::Terminated => "all",
        }
    }

    /// What it means.
    pub(crate) const fn meaning(self) -> &'static str {
        match self {
            Self::Ok => {
                "done; of check and scrub: clean; of serve: ended by a signal, all is stored"
            }
            Self::Failed => {
                "the command failed; of study check: a claim does not hold; of study verify: a number is not that of the table; of study run and grid: no point has a result"
            }
            Self::Repaired => "something was repaired",
            Self::Usage => "the command line is wrong",
            Self::Infeasible => "the configuration cannot work",
            Self::BadTrace => "the trace is damaged, cut off, unknown or too large for the device",
            Self::Damaged => "something is damaged or lost, and was not repaired",
            Self::Busy => "the image, volume, folder, state or socket is in use",
            Self::PartlyRepaired => "something was repaired, and something else was not",
            Self::Budget => "a budget is broken",
            Self::PowerCut => "a state after a power cut fails",
            Self::CheckFailed => "the check could not run",
            Self::NotFound => "the program cannot be started",
            Self::Interrupted => "ended by SIGINT; a result so far is kept and says so",
            Self::Terminated => "ended by SIGTERM; a result so far is kept and says so",
        }
    }

    /// The table for `--help`.
    pub(crate) fn help() -> String {
        let line = |exit: Self| {
            format!("  {:>3}  {:15}  {}\n", exit.code(), exit.commands(), exit.meaning())
        };
        format!("Exit codes:\n{}", Self::ALL.map(line).concat())
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::Exit;

    #[test]
    fn the_documented_table_is_this_one() {
        let page = include_str!("../../../docs/exit-codes.md");
        let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
        let row =
            |exit: Exit| format!("| {} | {} | {} |", exit.code(), exit.commands(), exit.meaning());
        assert_eq!(rows, Exit::ALL.map(row));
    }
}
