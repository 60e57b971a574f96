//! Where the journal and the metadata with a fixed place lie, as the disk says it before the run.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use onefold_journal::{Class, Found, Survey, System};
use onefold_units::PAGE_BYTES;
use serde::{Deserialize, Serialize};

use super::read::Read;
use super::{ext4, xfs};

/// What lies at a fixed place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fixed {
    /// The journal of a file system.
    Journal,
    /// Tables of a file system.
    Metadata,
}

/// The fixed places of the file systems on a disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// Names of the file systems that were found.
    pub systems: Vec<String>,
    /// Bytes of the disk, in order and apart from each other.
    ranges: Vec<(Range<u64>, Fixed)>,
}

impl Layout {
    /// Of an image of a disk.
    ///
    /// # Errors
    /// The image cannot be opened.
    pub fn of_image(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        Ok(Self::of(bytes, &mut |offset, buffer| file.read_exact_at(buffer, offset).is_ok()))
    }

    /// Of a disk of so many bytes. `read` fills a buffer with what lies at an offset, and says
    /// whether it could.
    pub fn of(bytes: u64, read: &mut dyn FnMut(u64, &mut [u8]) -> bool) -> Self {
        let found = survey(bytes, read);
        let mut places = Vec::new();
        for range in &found.ranges {
            let fixed = match range.class {
                Class::JournalLog | Class::JournalHot => Fixed::Journal,
                Class::MetaHot => Fixed::Metadata,
            };
            let (first, end) = (range.first.raw() * PAGE_BYTES, range.end.raw() * PAGE_BYTES);
            places.push((first..end, fixed));
        }
        let origins = found.ranges.iter().map(|range| range.origin).chain(found.remarks);
        let mut systems: Vec<_> = origins
            .filter(|origin| !matches!(origin.system, System::Gpt | System::Mbr))
            .map(|origin| (origin.at, origin.system))
            .collect();
        systems.sort_unstable_by_key(|(at, system)| (*at, system.name()));
        systems.dedup();
        for (at, system) in &systems {
            let tables = match system {
                System::Ext4 => ext4::tables(*at, bytes, read),
                System::Xfs => xfs::headers(*at, bytes, read),
                _ => None,
            };
            places.extend(tables.into_iter().flatten().map(|range| (range, Fixed::Metadata)));
        }
        let systems = systems.into_iter().map(|(_, system)| system.name().to_owned()).collect();
        Self { systems, ranges: apart(&places) }
    }

    /// What lies at a byte, and up to where all bytes are alike.
    pub(super) fn at(&self, byte: u64) -> (Option<Fixed>, u64) {
        let next = self.ranges.partition_point(|(range, _)| range.end <= byte);
        match self.ranges.get(next) {
            Some((range, fixed)) if range.start <= byte => (Some(*fixed), range.end),
            Some((range, _)) => (None, range.start),
            None => (None, u64::MAX),
        }
    }
}

fn survey(bytes: u64, read: Read<'_>) -> Found {
    let mut survey = Survey::new(bytes / PAGE_BYTES);
    while let Some(lba) = survey.ask() {
        let mut block = [0; 4096];
        let is_read = read(lba.raw() * PAGE_BYTES, &mut block);
        survey.supply(lba, is_read.then_some(&block));
    }
    survey.finish().unwrap_or_default()
}

/// Ranges in order. Where two overlap, the journal counts.
fn apart(places: &[(Range<u64>, Fixed)]) -> Vec<(Range<u64>, Fixed)> {
    let journals = merged(places, Fixed::Journal);
    let mut kept = Vec::new();
    for table in merged(places, Fixed::Metadata) {
        let mut start = table.start;
        let first = journals.partition_point(|journal| journal.end <= table.start);
        for journal in journals[first..].iter().take_while(|journal| journal.start < table.end) {
            kept.push((start..journal.start, Fixed::Metadata));
            start = journal.end;
        }
        kept.push((start..table.end, Fixed::Metadata));
    }
    kept.retain(|(range, _)| range.start < range.end);
    kept.extend(journals.into_iter().map(|journal| (journal, Fixed::Journal)));
    kept.sort_by_key(|(range, _)| range.start);
    kept
}

/// The ranges of a kind in order, those that touch as one.
fn merged(places: &[(Range<u64>, Fixed)], kind: Fixed) -> Vec<Range<u64>> {
    let of_kind = places.iter().filter(|(_, fixed)| *fixed == kind);
    let mut ranges: Vec<Range<u64>> = of_kind.map(|(range, _)| range.clone()).collect();
    ranges.sort_by_key(|range| range.start);
    let mut merged: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::{Fixed, Layout, apart};

    #[test]
    fn a_journal_counts_before_tables() {
        use Fixed::{Journal, Metadata};
        let ranges =
            apart(&[(0..100, Metadata), (40..60, Journal), (50..55, Metadata), (90..120, Journal)]);
        assert_eq!(
            ranges,
            [(0..40, Metadata), (40..60, Journal), (60..90, Metadata), (90..120, Journal)]
        );
        let layout = Layout { systems: Vec::new(), ranges };
        assert_eq!(layout.at(0), (Some(Metadata), 40));
        assert_eq!(layout.at(59), (Some(Journal), 60));
        assert_eq!(layout.at(120), (None, u64::MAX));
    }
}
