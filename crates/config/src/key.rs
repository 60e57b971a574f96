//! Configuration keys. Parsing, errors, the reference and the JSON Schema all come from their one table.

mod table;

use crate::policies::Policies;
use crate::quantity::Measure;
use crate::raw::Raw;
use crate::suggest;
use crate::value::{Kind, Value};

pub(crate) use table::{KEYS, SPELLINGS, STACK_KEYS, TENANT_KEYS};

/// One key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    /// Section and name, such as `ftl.victim`.
    pub(crate) path: &'static str,
    /// What it accepts.
    pub(crate) kind: Kind,
    /// Default, written as for `--set`; empty = none.
    pub(crate) default: &'static str,
    /// What it means.
    pub(crate) meaning: &'static str,
}

impl Key {
    /// The default as a value.
    pub(crate) fn default_value(&self) -> Value {
        // Programmer error: a test parses every default.
        let raw = Raw::bare(self.default);
        self.kind.parse(&raw, &Policies::builtin()).expect("defaults of the key table are valid")
    }

    /// Section and name within it; top-level keys have the section "".
    pub(crate) fn split(&self) -> (&'static str, &'static str) {
        self.path.split_once('.').unwrap_or(("", self.path))
    }
}

/// Another way to say a key: it is read, and its value is the other's from there on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spelling {
    /// How it is said.
    pub(crate) key: Key,
    /// The key that gets the value.
    pub(crate) of: &'static str,
}

const fn key(path: &'static str, kind: Kind, default: &'static str, meaning: &'static str) -> Key {
    Key { path, kind, default, meaning }
}

const fn count(min: u64, max: u64) -> Kind {
    Kind::Count { min, max }
}

const fn real(min: f64, max: f64) -> Kind {
    Kind::Real { min, max }
}

const fn words(words: &'static [&'static str]) -> Kind {
    Kind::Choice { words, planned: &[] }
}

/// One hour; longer is a slip.
const LONGEST: u64 = 3_600_000_000_000;
const TIMES: Kind = Kind::Times { max: LONGEST };
const TIME: Kind = Kind::Quantity { measure: Measure::Time, min: 0, max: LONGEST };
/// 1 PB/s.
const RATE: Kind = Kind::Quantity { measure: Measure::Rate, min: 0, max: 1_000_000_000_000_000 };
const PAGE_SIZE: Kind = Kind::PowerOfTwo { min: 4096, max: 65_536 };
const fn size(min: u64, max: u64) -> Kind {
    Kind::Quantity { measure: Measure::Size, min, max }
}
/// A tenant may start a year late.
const START: Kind = Kind::Quantity { measure: Measure::Time, min: 0, max: 365 * 24 * LONGEST };

/// Keys whose new value displaces the other's: transfers have a rate or a time, a run has a
/// workload or a trace.
pub(crate) const EXCLUSIVE: [(&str, &str); 2] =
    [("timing.channel", "timing.transfer"), ("workload", "trace")];

/// Sections and keys that describe a drive; two take off it what a preset puts on it. The others say how a simulation prepares it,
/// what lies on it and what load it gets.
pub const OF_A_DRIVE: &[&str] = &[
    "name",
    "geometry",
    "capacity",
    "timing",
    "ftl",
    "buffer",
    "dedup",
    "namespace",
    "faults",
    "volume.mode",
    "zoned.policy",
];

/// Sections that a device can be served with other values of: nothing on its medium depends on them.
pub const SERVED: &[&str] = &["timing", "buffer"];

/// Sections and keys of which a simulation that goes on from an image can have other values.
pub const REPLAYED: &[&str] = &[
    "timing",
    "buffer",
    "run",
    "volume.batch",
    "volume.ack",
    "volume.cpu",
    "volume.victim",
    "volume.clean_move",
    "volume.streams",
    "volume.map_memory",
    "volume.checkpoint",
    "volume.clean_below",
    "volume.trim",
    "volume.trim_pause",
];

/// The key called `path`.
pub(crate) fn find(keys: &'static [Key], path: &str) -> Option<&'static Key> {
    keys.iter().find(|key| key.path == path)
}

/// The key called `path` outside tenants and stacks, and the one of [`KEYS`] that gets its value.
pub(crate) fn resolve(path: &str) -> Option<(&'static Key, &'static str)> {
    let spelling = SPELLINGS.iter().find(|one| one.key.path == path);
    let spelled = spelling.map(|one| (&one.key, one.of));
    spelled.or_else(|| find(KEYS, path).map(|key| (key, key.path)))
}

/// Every key outside tenants and stacks: those of [`KEYS`], each followed by its other spellings.
pub(crate) fn spelled() -> impl Iterator<Item = &'static Key> {
    let also = |key: &'static Key| SPELLINGS.iter().filter(move |one| one.of == key.path);
    KEYS.iter().flat_map(move |key| std::iter::once(key).chain(also(key).map(|one| &one.key)))
}

/// The key that somebody who wrote `found` most likely meant.
pub(crate) fn suggested(found: &str) -> Option<String> {
    let near = suggest::nearest(found, spelled().map(|key| key.path).chain(["extends"]));
    // `victim=fifo` without its section is a common slip.
    near.or_else(|| spelled().find(|key| key.split().1 == found).map(|key| key.path.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::{
        EXCLUSIVE, KEYS, Key, OF_A_DRIVE, REPLAYED, SERVED, STACK_KEYS, TENANT_KEYS, find,
    };
    use crate::raw::Raw;
    use crate::{Config, Policies, Sources};

    #[test]
    fn every_default_is_valid_and_every_key_explained() {
        for key in KEYS.iter().chain(TENANT_KEYS).chain(STACK_KEYS) {
            let value = key.default_value();
            let again = key.kind.parse(&Raw::bare(&value.toml()), &Policies::builtin()).unwrap();
            assert_eq!(value, again, "{}", key.path);
            assert!(key.meaning.ends_with(['.', '%']), "{}", key.path);
        }
    }

    /// Each key acts on an emulated drive, or is refused where one is made; so it is with those that
    /// a served one can have anew.
    #[test]
    fn every_key_acts_or_is_refused() {
        let with = |path: &str| {
            let key = find(KEYS, path).expect("it is one");
            let sets = [format!("{path}={}", key.default_value().toml())];
            Config::load(&Sources { sets: &sets, ..Sources::default() })
        };
        let mut refused = 0;
        for Key { path, default, .. } in KEYS.iter().filter(|key| !key.default.is_empty()) {
            let Ok(config) = with(path) else { continue };
            let of_a_drive = OF_A_DRIVE.iter().any(|section| path.starts_with(section));
            let elsewhere = config.acting_elsewhere(OF_A_DRIVE);
            assert_eq!(elsewhere.is_ok(), of_a_drive, "{path}={default}");
            refused += usize::from(elsewhere.is_err());
            let sets = [format!("{path}={default}")];
            for changeable in [SERVED, REPLAYED] {
                let changed = config.with_sets(&sets, changeable);
                let acts = changeable.iter().any(|name| path.starts_with(name));
                assert!(acts || changed.is_err(), "{path}");
            }
        }
        assert!(refused > 30, "{refused} keys are not of a drive");
    }

    #[test]
    fn keys_are_unique_and_grouped_by_section() {
        let mut sections: Vec<&str> = KEYS.iter().map(|key| key.split().0).collect();
        sections.dedup();
        let mut sorted = sections.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sections.len(), sorted.len(), "each section stands in one piece");
        let mut paths: Vec<&str> = KEYS.iter().map(|key| key.path).collect();
        paths.sort_unstable();
        assert!(paths.windows(2).all(|pair| pair[0] != pair[1]));
        for (a, b) in EXCLUSIVE {
            assert!(find(KEYS, a).is_some() && find(KEYS, b).is_some());
        }
    }
}
