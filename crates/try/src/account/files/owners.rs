//! Whose bytes a request writes: the journal's, a table's, a file's, or unknown.
//!
//! What lies at a fixed place is known for good. Files are known by looks. A write between two
//! looks belongs to the file that has its bytes at the later look, if no other had them at the
//! earlier one. Bytes that no file has at the later look, as those of a file that was removed, and
//! bytes that went from one file to another, are unknown.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::layout::{Fixed, Layout};
use super::snapshot::{Seen, Snapshot};

/// A look, and when it was taken: on the same scale as the requests that are asked about, such as
/// entries of a log or nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Look {
    /// Requests before this had begun when the look was taken.
    pub at: u64,
    /// What it saw.
    pub snapshot: Snapshot,
}

/// Whose bytes are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner<'a> {
    /// Data of a file, by its path.
    File(&'a str),
    /// The journal of the file system.
    Journal,
    /// Tables of the file system, and folders.
    Metadata,
    /// Nobody knows.
    Unknown,
}

/// All that is known about the owners of the bytes of a disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owners {
    layout: Layout,
    /// In the order of time.
    looks: Vec<Look>,
}

impl Owners {
    /// Of a disk with this layout, and these looks at it.
    #[must_use]
    pub fn new(layout: Layout, mut looks: Vec<Look>) -> Self {
        looks.sort_by_key(|look| look.at);
        Self { layout, looks }
    }

    /// What is at fixed places.
    #[must_use]
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The looks, in the order of time.
    #[must_use]
    pub fn looks(&self) -> &[Look] {
        &self.looks
    }

    /// The owners of the bytes that a request at a time writes, piece by piece.
    pub fn of(&self, at: u64, bytes: Range<u64>) -> impl Iterator<Item = (Owner<'_>, u64)> {
        let later = self.looks.partition_point(|look| look.at <= at);
        let before = later.checked_sub(1).and_then(|look| self.looks.get(look));
        let after = self.looks.get(later);
        let mut from = bytes.start;
        std::iter::from_fn(move || {
            if from >= bytes.end {
                return None;
            }
            let (owner, end) = self.at(from, before, after);
            let end = end.clamp(from + 1, bytes.end);
            let piece = (owner, end - from);
            from = end;
            Some(piece)
        })
    }

    fn at<'a>(
        &'a self,
        byte: u64,
        before: Option<&'a Look>,
        after: Option<&'a Look>,
    ) -> (Owner<'a>, u64) {
        let (fixed, end) = self.layout.at(byte);
        match fixed {
            Some(Fixed::Journal) => return (Owner::Journal, end),
            Some(Fixed::Metadata) => return (Owner::Metadata, end),
            None => {}
        }
        let (before, first) = sight(byte, before);
        let (after, second) = sight(byte, after);
        let file = match (before, after) {
            (Sight::NoLook | Sight::Nobody, Sight::File(file))
            | (Sight::File(file), Sight::NoLook) => Some(file),
            (Sight::File(before), Sight::File(after)) => {
                Some(after).filter(|_| before.is_same(after))
            }
            (_, Sight::Nobody) | (Sight::NoLook | Sight::Nobody, Sight::NoLook) => None,
        };
        let owner = match file {
            Some(file) if file.is_folder => Owner::Metadata,
            Some(file) => Owner::File(&file.path),
            None => Owner::Unknown,
        };
        (owner, end.min(first).min(second))
    }

    /// What most of a range belongs to at a time, in words for messages; `None` if that is unknown.
    #[must_use]
    pub fn name_of(&self, at: u64, bytes: Range<u64>) -> Option<String> {
        let mut parts: BTreeMap<Owner<'_>, u64> = BTreeMap::new();
        for (owner, bytes) in self.of(at, bytes) {
            *parts.entry(owner).or_default() += bytes;
        }
        let most = parts.into_iter().max_by_key(|(_, bytes)| *bytes);
        match most.map_or(Owner::Unknown, |(owner, _)| owner) {
            Owner::File(path) => Some(format!("`{path}`")),
            Owner::Journal => Some("the journal of the file system".to_owned()),
            Owner::Metadata => Some("tables or folders of the file system".to_owned()),
            Owner::Unknown => None,
        }
    }
}

/// What a look says about a byte.
#[derive(Clone, Copy)]
enum Sight<'a> {
    /// There is no such look.
    NoLook,
    /// It belongs to no file.
    Nobody,
    /// It belongs to a file.
    File(&'a Seen),
}

/// What a look says about a byte, and up to where all bytes are alike.
fn sight(byte: u64, look: Option<&Look>) -> (Sight<'_>, u64) {
    match look.map(|look| look.snapshot.at(byte)) {
        Some((Some(file), end)) => (Sight::File(file), end),
        Some((None, end)) => (Sight::Nobody, end),
        None => (Sight::NoLook, u64::MAX),
    }
}

impl Seen {
    /// Whether two looks see one file: it may have got another name, or another file its name.
    fn is_same(&self, other: &Self) -> bool {
        self.inode == other.inode || self.path == other.path
    }
}

#[cfg(test)]
mod tests {
    use super::{Look, Owner, Owners};
    use crate::account::files::{Layout, Snapshot};

    fn owners() -> Owners {
        let first = Snapshot::with(&[("a", 1, 0..100), ("old", 2, 100..200), ("d/", 3, 200..300)]);
        let second = Snapshot::with(&[("b", 1, 0..150), ("d/", 3, 200..300), ("c", 4, 300..400)]);
        let looks = vec![Look { at: 20, snapshot: second }, Look { at: 10, snapshot: first }];
        Owners::new(Layout::default(), looks)
    }

    fn of(at: u64, bytes: std::ops::Range<u64>) -> Vec<(String, u64)> {
        let owners = owners();
        let name = |owner| match owner {
            Owner::File(path) => path.to_owned(),
            other => format!("{other:?}").to_lowercase(),
        };
        owners.of(at, bytes).map(|(owner, bytes)| (name(owner), bytes)).collect()
    }

    #[test]
    fn files_are_known_by_the_looks_around_a_request() {
        let pieces = |at| of(at, 0..500);
        let known = |parts: &[(&str, u64)]| -> Vec<(String, u64)> {
            parts.iter().map(|(name, bytes)| ((*name).to_owned(), *bytes)).collect()
        };
        // Before the first look only that one is known.
        let first = known(&[("a", 100), ("old", 100), ("metadata", 100), ("unknown", 200)]);
        assert_eq!(pieces(9), first);
        // Between them: `a` got another name, `old` went to it, or away; `c` is new.
        let between = [
            ("b", 100),
            ("unknown", 50),
            ("unknown", 50),
            ("metadata", 100),
            ("c", 100),
            ("unknown", 100),
        ];
        assert_eq!(pieces(10), known(&between));
        let last = [("b", 150), ("unknown", 50), ("metadata", 100), ("c", 100), ("unknown", 100)];
        assert_eq!(pieces(20), known(&last));
        assert_eq!(of(20, 120..160), known(&[("b", 30), ("unknown", 10)]));
    }

    #[test]
    fn messages_name_what_most_of_a_range_belongs_to() {
        let owners = owners();
        assert_eq!(owners.name_of(20, 120..170).as_deref(), Some("`b`"));
        assert_eq!(
            owners.name_of(20, 100..400).as_deref(),
            Some("tables or folders of the file system")
        );
        assert_eq!(owners.name_of(20, 140..200), None);
        assert_eq!(Owners::default().name_of(0, 0..4096), None);
    }
}
