//! Values of keys as plain numbers, for tables over many configurations.

use serde::{Deserialize, Serialize};

use crate::error::{ConfigError, Origin};
use crate::key;
use crate::policies::Policies;
use crate::raw::Raw;
use crate::value::{Capacity, Kind, Value};

/// A value without its unit: sizes in bytes, times in nanoseconds, rates in bytes per second, shares as parts of 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Typed {
    /// A truth value.
    Flag(bool),
    /// A whole number from 0.
    Count(u64),
    /// A number.
    Real(f64),
    /// Anything else.
    Text(String),
}

/// The value that `text` is for a key, also for one of a place of a stack (`stack.NAME.SECTION.KEY`).
///
/// # Errors
/// There is no such key, or it does not accept the text.
pub fn typed(path: &str, text: &str) -> Result<Typed, ConfigError> {
    let of_place = path.strip_prefix("stack.").and_then(|rest| rest.split_once('.'));
    let raw = Raw::bare(text);
    let (key, _) = key::resolve(of_place.map_or(path, |(_, path)| path)).ok_or_else(|| {
        ConfigError::UnknownKey {
            origin: Origin::Arguments,
            key: path.to_owned(),
            suggestion: key::suggested(path),
        }
    })?;
    if matches!(key.kind, Kind::Policy(_)) {
        // Which policies there are is known where the configuration is loaded.
        return Ok(Typed::Text(text.to_owned()));
    }
    let value =
        key.kind.parse(&raw, &Policies::builtin()).map_err(|problem| ConfigError::Value {
            origin: Origin::Arguments,
            key: path.to_owned(),
            found: raw.to_string(),
            problem: Box::new(problem),
        })?;
    Ok(match (value, raw.real()) {
        // What is written is the share of the spare area, not that of the capacity.
        (_, Some(spare)) if matches!(key.kind, Kind::Spare) => Typed::Real(spare),
        (Value::Count(count) | Value::Quantity(_, count), _) => Typed::Count(count),
        (Value::Capacity(Capacity::Bytes(bytes)) | Value::MapCache(Some(bytes)), _) => {
            Typed::Count(bytes)
        }
        (Value::Real(number) | Value::Capacity(Capacity::Fraction(number)), _) => {
            Typed::Real(number)
        }
        (Value::Times(times), _) if times.len() == 1 => Typed::Count(times[0]),
        (Value::Flag(flag), _) => Typed::Flag(flag),
        _ => Typed::Text(text.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::{Typed, typed};

    #[test]
    fn values_are_plain_numbers() {
        let text = |text: &str| Typed::Text(text.to_owned());
        let typed = |path, text| typed(path, text).unwrap();
        assert_eq!(typed("buffer.size", "8MiB"), Typed::Count(8 << 20));
        assert_eq!(typed("timing.read", "50us"), Typed::Count(50_000));
        assert_eq!(typed("timing.read", "[50us,60us]"), text("[50us,60us]"));
        assert_eq!(typed("timing.erase", "2ms"), Typed::Count(2_000_000));
        assert_eq!(typed("capacity.op", "7 %"), Typed::Real(0.07));
        assert_eq!(typed("capacity.logical", "0.875"), Typed::Real(0.875));
        assert_eq!(typed("stack.log.volume.op", "10%"), Typed::Real(0.1));
        assert_eq!(typed("ftl.victim", "greedy"), text("greedy"));
        assert_eq!(typed("ftl.gc_pacing", "true"), Typed::Flag(true));
        assert!(super::typed("ftl.gc_pacing", "maybe").is_err());
        let unknown = super::typed("ftl.victm", "fifo").unwrap_err();
        assert!(unknown.help().contains("ftl.victim"));
    }
}
