//! One reading of a device: partitions, the file systems in them, their journals.

use onefold_units::Lba;

use crate::blocks::{Blocks, Stop};
use crate::class::{Confidence, Origin, Range, Remark, System};
use crate::parsed::{Journal, Parsed};
use crate::partitions::{self, PARTITIONS_MAX};
use crate::ring::Extent;
use crate::{btrfs, ext4, f2fs, hidden, xfs};

/// Most ranges that a reading gives.
pub(crate) const RANGES_MAX: usize = 2048;

type Parser = fn(&mut Blocks, Extent) -> Result<Option<Parsed>, Stop>;

const PARSERS: [(System, Parser); 5] = [
    (System::Ext4, ext4::parse),
    (System::Xfs, xfs::parse),
    (System::F2fs, f2fs::parse),
    (System::Btrfs, btrfs::parse),
    (System::Hidden, hidden::parse),
];

/// What a reading found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// In the order in which they were found; they may overlap.
    pub ranges: Vec<Range>,
    /// Journals whose tails can be told.
    pub journals: Vec<Journal>,
    /// What gives no range, and why.
    pub remarks: Vec<Remark>,
    /// The blocks that this was read from, in order. A write to one of them makes it stale.
    pub read_from: Vec<u64>,
}

/// A reading. Ask [`ask`](Self::ask) for the blocks it needs, answer each with [`supply`](Self::supply), until
/// [`finish`](Self::finish) gives the result.
///
/// ```
/// # use onefold_journal::Survey;
/// let mut survey = Survey::new(1024);
/// while let Some(lba) = survey.ask() {
///     survey.supply(lba, Some(&[0; 4096])); // what block `lba` of the device holds
/// }
/// assert!(survey.finish().unwrap().ranges.is_empty());
/// ```
#[derive(Debug)]
pub struct Survey {
    blocks: Blocks,
    count: u64,
    found: Option<Found>,
}

impl Survey {
    /// Of a device of `count` blocks of 4 KiB.
    #[must_use]
    pub fn new(count: u64) -> Self {
        let mut survey = Self { blocks: Blocks::new(count), count, found: None };
        survey.advance();
        survey
    }

    /// A block that it needs, each once; `None` while all have been asked for, and when it is done.
    pub fn ask(&mut self) -> Option<Lba> {
        self.blocks.ask()
    }

    /// What a block holds that was asked for; `None` if it cannot be read.
    pub fn supply(&mut self, lba: Lba, bytes: Option<&[u8; 4096]>) {
        self.blocks.supply(lba, bytes);
        self.advance();
    }

    /// The result, when nothing is asked for any more.
    #[must_use]
    pub fn finish(self) -> Option<Found> {
        self.found
    }

    /// Whether it has looked at one of the blocks from `first` to before `end`.
    pub(crate) fn has_seen(&self, first: Lba, end: Lba) -> bool {
        self.blocks.has_seen(first, end)
    }

    /// Whether [`finish`](Self::finish) has a result.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.found.is_some()
    }

    fn advance(&mut self) {
        if self.found.is_some() || self.blocks.is_waiting() {
            return;
        }
        let found = look(&mut self.blocks, self.count);
        if !self.blocks.is_waiting() {
            self.found = Some(Found { read_from: self.blocks.seen(), ..found });
        }
    }
}

/// Looks at everything as far as blocks are there.
fn look(blocks: &mut Blocks, count: u64) -> Found {
    let mut found = Found::default();
    let whole = Extent { at: 0, bytes: blocks.device_bytes() };
    match partitions::parse(blocks) {
        Ok(Some(table)) => {
            let mut remark = |why| {
                found.remarks.push(Origin { system: table.system, at: 0, why });
            };
            remark("a table of partitions");
            if table.places.len() > PARTITIONS_MAX {
                remark("only its first 128 partitions are looked at");
            }
            for place in table.places.into_iter().take(PARTITIONS_MAX) {
                look_in(blocks, place, count, &mut found);
            }
        }
        Ok(None) => look_in(blocks, whole, count, &mut found),
        Err(Stop::Missing) => {}
        Err(Stop::Rejected(why)) => {
            found.remarks.push(Origin { system: System::Gpt, at: 0, why });
        }
    }
    found
}

/// Looks for file systems in a place.
fn look_in(blocks: &mut Blocks, place: Extent, count: u64, found: &mut Found) {
    let mut all = Vec::new();
    for (system, parse) in PARSERS {
        match parse(blocks, place) {
            Ok(parsed) => all.extend(parsed),
            Err(Stop::Missing) => {}
            Err(Stop::Rejected(why)) => {
                found.remarks.push(Origin { system, at: place.at, why });
            }
        }
    }
    let is_ambiguous = all.len() > 1;
    for parsed in all {
        add(parsed, place, is_ambiguous, count, found);
    }
}

fn add(parsed: Parsed, place: Extent, is_ambiguous: bool, count: u64, found: &mut Found) {
    let origin = |why| Origin { system: parsed.system, at: place.at, why };
    found.remarks.extend(parsed.remark.map(origin));
    if is_ambiguous {
        found.remarks.push(origin("it is not the only one here: one of them is left over"));
    }
    if found.ranges.len() + parsed.parts.len() > RANGES_MAX {
        found.remarks.push(origin("there are too many ranges on this device to add its own"));
        return;
    }
    let most = if is_ambiguous { Confidence::Medium } else { Confidence::High };
    let confidence = parsed.confidence.min(most);
    let ranges = parsed.parts.iter().filter_map(|(class, extent, why)| {
        Range::around(*extent, count, *class, confidence, origin(why))
    });
    found.ranges.extend(ranges);
    found.journals.extend(parsed.journal);
}
