//! Values before their keys gave them a meaning.

use onefold_units::numbers::{self, NumberError};

/// A value as found in a file or on the command line, before its key gave it a meaning.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Raw {
    /// Text of `--set`, whose quotes are optional.
    Bare(String),
    /// A TOML string.
    Text(String),
    /// A TOML integer.
    Integer(i128),
    /// A TOML float.
    Float(f64),
    /// A TOML boolean.
    Flag(bool),
    /// An array.
    List(Vec<Self>),
    /// A TOML value that no key accepts.
    Other(&'static str),
}

impl Raw {
    /// Text of `--set`: a list in brackets or one value, with or without quotes.
    pub(crate) fn bare(text: &str) -> Self {
        let text = text.trim();
        let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        match inner {
            Some(inner) => Self::List(
                inner.split(',').filter(|part| !part.trim().is_empty()).map(Self::word).collect(),
            ),
            None => Self::word(text),
        }
    }

    fn word(text: &str) -> Self {
        let text = text.trim();
        let quoted = ['"', '\'']
            .into_iter()
            .find_map(|quote| text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)));
        quoted.map_or_else(|| Self::Bare(text.to_owned()), |text| Self::Text(text.to_owned()))
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Bare(text) | Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn real(&self) -> Option<f64> {
        match self {
            Self::Integer(number) => number.to_string().parse().ok(),
            Self::Float(number) => Some(*number),
            Self::Bare(text) | Self::Text(text) => numbers::real(text),
            _ => None,
        }
        .filter(|number: &f64| number.is_finite())
    }

    /// A whole number, also one that no key takes.
    pub(crate) fn count(&self) -> Option<i128> {
        let text = match self {
            Self::Integer(number) => return Some(*number),
            // TOML has no other way to write 1e6.
            Self::Float(number) => &number.to_string(),
            Self::Bare(text) | Self::Text(text) => text.trim(),
            _ => return None,
        };
        let (is_negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let count = match numbers::count(text) {
            Err(NumberError::TooLarge) => i128::MAX,
            count => count.ok()?.into(),
        };
        Some(if is_negative { -count } else { count })
    }
}

impl std::fmt::Display for Raw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bare(text) => write!(f, "`{}`", shorten(text)),
            Self::Text(text) => write!(f, "\"{}\"", shorten(text)),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Float(number) => write!(f, "{number:?}"),
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::List(items) => {
                let items: Vec<_> = items.iter().take(8).map(ToString::to_string).collect();
                write!(f, "[{}]", items.join(", "))
            }
            Self::Other(kind) => f.write_str(kind),
        }
    }
}

/// Keeps a message readable when the value is not.
fn shorten(text: &str) -> String {
    const LONGEST: usize = 80;
    if text.chars().count() <= LONGEST {
        return text.escape_debug().to_string();
    }
    let start: String = text.chars().take(LONGEST).collect();
    format!("{}..", start.escape_debug())
}
