//! What the user wants of the detector.

use std::fmt;

use onefold_units::numbers::size;

/// Where journals are looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Setting {
    /// Find them.
    #[default]
    Detect,
    /// There is none: every block is data.
    Off,
    /// Exactly these ranges are journals, as first byte and first byte behind.
    Ranges(Vec<(u64, u64)>),
}

/// Most ranges that a user may give.
const RANGES_MAX: usize = 64;

/// Why a setting is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingError {
    /// It is no setting.
    Syntax {
        /// What was found.
        found: String,
    },
    /// A range is empty.
    Empty {
        /// Its first byte.
        first: u64,
        /// The first byte behind it.
        end: u64,
    },
    /// Too many ranges.
    Count {
        /// How many there are.
        found: usize,
    },
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax { found } => write!(
                f,
                "journal range {found:?}; expected `auto`, `off`, or ranges of bytes such as `448MiB-512MiB,1GiB-2GiB`, the \
                 end of each not included"
            ),
            Self::Empty { first, end } => {
                write!(
                    f,
                    "journal range from byte {first} to {end} is empty; give the end as the first byte behind it"
                )
            }
            Self::Count { found } => {
                write!(f, "{found} journal ranges; expected at most {RANGES_MAX}")
            }
        }
    }
}

impl std::error::Error for SettingError {}

impl Setting {
    /// Reads `auto`, `off`, or `A-B[,C-D..]`: sizes, in bytes where they have no unit.
    pub fn parse(text: &str) -> Result<Self, SettingError> {
        match text {
            "auto" => return Ok(Self::Detect),
            "off" => return Ok(Self::Off),
            _ => {}
        }
        let syntax = || SettingError::Syntax { found: text.chars().take(64).collect() };
        let count = text.split(',').count();
        if count > RANGES_MAX {
            return Err(SettingError::Count { found: count });
        }
        let mut ranges = Vec::new();
        for range in text.split(',') {
            let (first, end) = range.split_once('-').ok_or_else(syntax)?;
            let (first, end) =
                (size(first).map_err(|_| syntax())?, size(end).map_err(|_| syntax())?);
            if first >= end {
                return Err(SettingError::Empty { first, end });
            }
            ranges.push((first, end));
        }
        Ok(Self::Ranges(ranges))
    }
}
