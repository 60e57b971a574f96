//! Why a study cannot run.

use std::io;
use std::path::PathBuf;

use onefold_config::{ConfigError, Origin};
use onefold_tracefile::TraceFileError;

/// Who has to act, for exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The command line.
    Usage,
    /// The study file.
    Study,
    /// A trace.
    Trace,
    /// Another process uses the results.
    Busy,
    /// The machine, or damaged results.
    Run,
}

/// Why a study cannot run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StudyError {
    /// The study file cannot be read.
    #[error("cannot read the study {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Not TOML.
    #[error("{origin}: not valid TOML: {message}")]
    Syntax {
        /// Where.
        origin: Origin,
        /// What the parser says.
        message: String,
    },
    /// No such key.
    #[error("{origin}: `{key}` is no key of {section}")]
    UnknownKey {
        /// Where it stands.
        origin: Origin,
        /// What was found.
        key: String,
        /// The table it stands in.
        section: &'static str,
        /// The key that was probably meant.
        suggestion: Option<String>,
        /// All keys of the table.
        known: &'static [&'static str],
    },
    /// A key that has to be there.
    #[error("{origin}: {section} has no `{key}`, expected {expected}")]
    Missing {
        /// Where the table starts.
        origin: Origin,
        /// The table.
        section: &'static str,
        /// The key.
        key: &'static str,
        /// What to write.
        expected: &'static str,
    },
    /// A value that its key does not accept.
    #[error("{origin}: {key} is {found}, {problem}")]
    Value {
        /// Where it stands.
        origin: Origin,
        /// The key.
        key: String,
        /// What was found.
        found: String,
        /// What is wrong with it, with the limit.
        problem: String,
    },
    /// A point whose configuration is not accepted.
    #[error("{origin}: {point}: {problem}")]
    Point {
        /// Where the points stand.
        origin: Origin,
        /// The point, in words.
        point: String,
        /// What is wrong with its configuration.
        problem: String,
    },
    /// A source that does not fit the device or its neighbours.
    #[error("workload {workload}, source {name}: {problem}")]
    Source {
        /// The workload.
        workload: String,
        /// The source.
        name: String,
        /// The inequality that fails.
        problem: String,
    },
    /// No such workload.
    #[error("--only is `{found}`, expected a workload of the study: {known}")]
    Only {
        /// What was asked for.
        found: String,
        /// The names there are.
        known: String,
    },
    /// Something else is where the study of a grid is to be kept.
    #[error("{} is a file of somebody else", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// No such axis.
    #[error("--by is `{found}`, expected an axis of the study: {known}")]
    Axis {
        /// What was asked for.
        found: String,
        /// The axes there are.
        known: String,
    },
    /// No such policy.
    #[error("--policy is `{found}`, expected a policy or bound of the study: {known}")]
    Policy {
        /// What was asked for.
        found: String,
        /// The labels there are.
        known: String,
    },
    /// A factor that does not shorten.
    #[error("--scale is {found}, expected a number above 0 and at most 1")]
    Scale {
        /// What was asked for.
        found: f64,
    },
    /// A factor for runs of the simulator.
    #[error("--scale does not apply to a study of devices, whose workloads say their length")]
    ScaleOfDevices,
    /// The preset of the latency model.
    #[error("the preset of the latency model: {0}")]
    Preset(#[from] ConfigError),
    /// A trace cannot be used.
    #[error("workload {workload}: {source}")]
    Trace {
        /// The workload.
        workload: String,
        /// Why.
        source: Box<TraceFileError>,
    },
    /// Results cannot be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Results {
        /// The file.
        path: PathBuf,
        /// `read` or `write`.
        action: &'static str,
        /// Why.
        source: io::Error,
    },
    /// A line of the results is not one.
    #[error("{}, line {line}: no result of a study: {message}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
        /// What the parser says.
        message: String,
    },
    /// A line of a kept table is not one.
    #[error("{}, line {line}: no table of results: {message}", path.display())]
    NoTable {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
        /// What is wrong with it.
        message: String,
    },
    /// Another run uses the folder.
    #[error("the results in {} are being written by another run", path.display())]
    Busy {
        /// The folder.
        path: PathBuf,
    },
}

impl StudyError {
    /// Who has to act.
    #[must_use]
    pub const fn fault(&self) -> Fault {
        match self {
            Self::Read { .. }
            | Self::Only { .. }
            | Self::Axis { .. }
            | Self::Foreign { .. }
            | Self::Policy { .. }
            | Self::Scale { .. }
            | Self::ScaleOfDevices => Fault::Usage,
            Self::Syntax { .. }
            | Self::UnknownKey { .. }
            | Self::Missing { .. }
            | Self::Value { .. }
            | Self::Point { .. }
            | Self::Source { .. }
            | Self::Preset(_) => Fault::Study,
            Self::Trace { .. } => Fault::Trace,
            Self::Busy { .. } => Fault::Busy,
            Self::Results { .. } | Self::Damaged { .. } | Self::NoTable { .. } => Fault::Run,
        }
    }

    /// Stable code of the error, such as `study::unknown_key`.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Read { .. } => "study::read",
            Self::Syntax { .. } => "study::syntax",
            Self::UnknownKey { .. } => "study::unknown_key",
            Self::Missing { .. } => "study::missing_key",
            Self::Value { .. } | Self::Point { .. } => "study::value",
            Self::Source { .. } => "study::source",
            Self::Only { .. } => "study::only",
            Self::Axis { .. } => "study::axis",
            Self::Foreign { .. } => "study::foreign",
            Self::Policy { .. } => "study::policy",
            Self::Scale { .. } | Self::ScaleOfDevices => "study::scale",
            Self::Preset(_) => "study::preset",
            Self::Trace { .. } => "study::trace",
            Self::Results { .. } => "study::results",
            Self::Damaged { .. } => "study::damaged_results",
            Self::NoTable { .. } => "study::damaged_table",
            Self::Busy { .. } => "study::busy",
        }
    }

    /// What to do about it, where the message does not say so.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        match self {
            Self::UnknownKey { suggestion: Some(key), .. } => {
                Some(format!("did you mean `{key}`?"))
            }
            Self::UnknownKey { key, .. } if key == "zip" => {
                Some("put it into [grid], whose axes it names".to_owned())
            }
            Self::UnknownKey { known, .. } => Some(format!("use one of {}", known.join(", "))),
            Self::Damaged { .. } => {
                Some("delete that line: `onefold study run` computes its point again".to_owned())
            }
            Self::NoTable { .. } => {
                Some("write it again: `onefold study export STUDY.toml -o FILE.csv`".to_owned())
            }
            Self::Busy { .. } => Some("wait for it, or give another folder with -o".to_owned()),
            Self::Foreign { .. } => Some("name another folder with -o".to_owned()),
            Self::Preset(error) => Some(error.help()),
            _ => None,
        }
    }
}
