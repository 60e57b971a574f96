//! What a row of a kept table holds instead of a result.

use std::collections::BTreeMap;

use crate::file::Metric;
use crate::series::Windows;

/// The numbers of a row of a kept table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kept {
    /// Numbers by the name of their column.
    pub(crate) numbers: BTreeMap<String, f64>,
    /// The zones of the journal, if a figure shows them.
    pub(crate) path: Option<JournalPath>,
    /// The windows of the run, if a figure shows them.
    pub(crate) windows: Option<Windows>,
}

/// The zones that a journal went through: each with the pages of the journal written before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct JournalPath {
    pub(crate) zones: Vec<(u64, u32)>,
    /// Pages of the journal in all.
    pub(crate) pages: u64,
}

impl Kept {
    /// With the latencies of another model as those that are meant.
    pub(crate) fn with_latency(&self, label: &str) -> Self {
        let end = format!("[{label}]");
        let of_model = self.numbers.iter().filter_map(|(name, value)| {
            name.strip_suffix(&end).map(|name| (name.to_owned(), *value))
        });
        let mut numbers = self.numbers.clone();
        for metric in [Metric::TargetLatency, Metric::TotalLatency] {
            numbers.remove(metric.name());
        }
        numbers.extend(of_model);
        Self { numbers, ..self.clone() }
    }
}

impl JournalPath {
    /// `0>17 1200>18 5000`: zones with the pages before them, then all pages.
    pub(crate) fn text(&self) -> String {
        let zones = self.zones.iter().map(|(pages, zone)| format!("{pages}>{zone} "));
        zones.collect::<String>() + &self.pages.to_string()
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut words: Vec<&str> = text.split(' ').collect();
        let pages = words.pop()?.parse().ok()?;
        let zone = |word: &str| {
            let (pages, zone) = word.split_once('>')?;
            Some((pages.parse().ok()?, zone.parse().ok()?))
        };
        let zones = words.into_iter().map(zone).collect::<Option<_>>()?;
        Some(Self { zones, pages })
    }
}

#[cfg(test)]
mod tests {
    use super::JournalPath;

    #[test]
    fn the_path_of_a_journal_is_read_back() {
        for zones in [vec![], vec![(0, 17), (1200, 18)]] {
            let path = JournalPath { zones, pages: 5000 };
            assert_eq!(JournalPath::parse(&path.text()), Some(path));
        }
        for bad in ["", "x", "0>17", "0>17 ", "0-17 5", "0>17  5", "-1>2 5"] {
            assert_eq!(JournalPath::parse(bad), None, "{bad}");
        }
    }
}
