//! Reading a result, and saying why a text is none.

use serde::Deserialize;

use super::{RunResult, SCHEMA};

/// The part of [`SCHEMA`] before the version.
const SCHEMA_FAMILY: &str = "onefold.sim/";
/// The version in [`SCHEMA`].
const SCHEMA_VERSION: u64 = 1;

/// Why a text is no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResultError {
    /// Nothing to read.
    #[error(
        "the file is empty, expected one JSON object of schema {SCHEMA}; write it with `onefold sim run --format json -o FILE`"
    )]
    Empty,
    /// The JSON ends too early.
    #[error(
        "the JSON ends in the middle (line {line}, column {column}): the file is truncated or still being written; run it again"
    )]
    Truncated {
        /// Line of the end.
        line: usize,
        /// Column of the end.
        column: usize,
    },
    /// The text is not JSON.
    #[error(
        "not JSON: {source}; expected one object of schema {SCHEMA} as `onefold sim run --format json` prints it"
    )]
    NotJson {
        /// What the parser found, and where.
        source: serde_json::Error,
    },
    /// JSON, but no result of Onefold.
    #[error(
        "the JSON has no key `schema`, expected \"{SCHEMA}\": not a result of `onefold sim run`"
    )]
    NoSchema,
    /// A result of something else.
    #[error("schema is \"{found}\", expected \"{SCHEMA}\": not a result of `onefold sim run`")]
    OtherSchema {
        /// The schema of the text.
        found: String,
    },
    /// A result of a later Onefold.
    #[error(
        "schema is \"{found}\", this version reads up to \"{SCHEMA}\"; upgrade Onefold to read it"
    )]
    NewerSchema {
        /// The schema of the text.
        found: String,
    },
    /// The right schema, but a key is missing or of another type.
    #[error("not a complete result of schema {SCHEMA}: {source}")]
    Shape {
        /// Which key, and where.
        source: serde_json::Error,
    },
}

impl RunResult {
    /// Reads what [`RunResult::to_json_pretty`] wrote, of this or a later minor version.
    pub fn from_json(text: &str) -> Result<Self, ResultError> {
        let text = text.trim_start_matches('\u{feff}');
        if text.trim().is_empty() {
            return Err(ResultError::Empty);
        }
        check_schema(text)?;
        serde_json::from_str(text).map_err(broken)
    }
}

/// The one key that has to be right before the others mean anything.
#[derive(Deserialize)]
struct Head {
    schema: Option<String>,
}

fn check_schema(text: &str) -> Result<(), ResultError> {
    let head: Head = serde_json::from_str(text).map_err(|error| match error.classify() {
        serde_json::error::Category::Data => ResultError::NoSchema,
        _ => broken(error),
    })?;
    let found = head.schema.ok_or(ResultError::NoSchema)?;
    let version = found.strip_prefix(SCHEMA_FAMILY).and_then(|v| v.parse::<u64>().ok());
    match version {
        Some(SCHEMA_VERSION) => Ok(()),
        Some(version) if version > SCHEMA_VERSION => Err(ResultError::NewerSchema { found }),
        _ => Err(ResultError::OtherSchema { found }),
    }
}

fn broken(error: serde_json::Error) -> ResultError {
    match error.classify() {
        serde_json::error::Category::Eof => {
            ResultError::Truncated { line: error.line(), column: error.column() }
        }
        serde_json::error::Category::Data => ResultError::Shape { source: error },
        _ => ResultError::NotJson { source: error },
    }
}
