//! Counts by cause, as an object whose keys stand in report order.

use std::fmt;

use onefold_units::{Cause, CauseCounts};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Pages by cause (design.md, contract 3), in the order in which they are printed.
///
/// Causes this version does not know are kept: a later version may add some, and the sum has to
/// stay right.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ByCause(Vec<(String, u64)>);

impl ByCause {
    /// The causes with a count, and always `user` and `gc`: short enough for one object per window.
    #[must_use]
    pub fn non_zero(counts: &CauseCounts) -> Self {
        let kept = counts
            .iter()
            .filter(|(cause, pages)| *pages > 0 || matches!(cause, Cause::User | Cause::Gc));
        Self(kept.map(|(cause, pages)| (cause.name().to_owned(), pages)).collect())
    }

    /// The count of the cause called `name`; 0 if absent.
    #[must_use]
    pub fn of(&self, name: &str) -> u64 {
        self.0.iter().find(|(cause, _)| cause == name).map_or(0, |(_, pages)| *pages)
    }

    /// The sum over all causes.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().fold(0, |sum, (_, pages)| sum.saturating_add(*pages))
    }

    /// Every cause with its count.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(cause, pages)| (cause.as_str(), *pages))
    }
}

impl From<&CauseCounts> for ByCause {
    fn from(counts: &CauseCounts) -> Self {
        Self(counts.iter().map(|(cause, pages)| (cause.name().to_owned(), pages)).collect())
    }
}

impl Serialize for ByCause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for ByCause {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(CausesVisitor)
    }
}

struct CausesVisitor;

impl<'de> Visitor<'de> for CausesVisitor {
    type Value = ByCause;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of page counts by cause")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ByCause, A::Error> {
        let mut causes = Vec::new();
        while let Some(entry) = map.next_entry()? {
            causes.push(entry);
        }
        Ok(ByCause(causes))
    }
}
