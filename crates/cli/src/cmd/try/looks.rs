//! Looks at the file system while the program runs: by time for the account, by entry of the log for messages.

use std::ops::Range;
use std::path::Path;

use onefold_try::account::files::Layout;
use onefold_try::account::{Look, Owners};

/// Looks so far.
#[derive(Default)]
pub(super) struct Looks {
    by_time: Vec<Look>,
    by_entry: Vec<Look>,
}

/// What is known of the owners of the bytes of a disk.
pub(super) struct Known {
    pub(super) by_time: Owners,
    pub(super) by_entry: Owners,
}

impl Looks {
    /// Looks at a folder when the log had so many entries.
    pub(super) fn look(&mut self, folder: &Path, entries: u64) {
        match Look::now(folder) {
            Ok(look) => {
                // Entries up to this one came before.
                let of_entry = Look { at: entries + 1, snapshot: look.snapshot.clone() };
                self.by_entry.push(of_entry);
                self.by_time.push(look);
            }
            Err(error) => tracing::warn!(%error, "files are not known by name"),
        }
    }

    /// All that is known of a disk that was this image before.
    pub(super) fn finish(self, base: &Path) -> Known {
        let layout = Layout::of_image(base).unwrap_or_else(|error| {
            tracing::warn!(%error, "the journal and tables of the file system are not known");
            Layout::default()
        });
        Known {
            by_time: Owners::new(layout.clone(), self.by_time),
            by_entry: Owners::new(layout, self.by_entry),
        }
    }
}

impl Known {
    /// What a range belonged to when an entry wrote it, in words.
    pub(super) fn name_of(&self, entry: u64, bytes: Range<u64>) -> Option<String> {
        self.by_entry.name_of(entry, bytes)
    }
}
