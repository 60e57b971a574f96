//! Contents of writes, for deduplication: those the trace tells, else those of the model
//! (`dedup.content`).

use onefold_ssd::Command;
use onefold_trace::workload::{ContentModel, ContentSpec};
use onefold_units::convert::{index64, narrow};
use onefold_units::{Op, PAGE_BYTES};

use crate::SimError;
use crate::setup::Setup;

/// What is known of a page of which nothing is known.
const UNKNOWN: u128 = 0;

/// Gives every page written its content.
pub(crate) struct Contents {
    model: ContentModel,
    /// Of the pages of one command.
    pages: Vec<u128>,
}

onefold_units::keep!(Contents { model } but { pages });

impl Contents {
    /// Contents on a device of `capacity` bytes, if it `asks` for them. A wrong model is an error even
    /// where nobody looks at contents.
    pub(crate) fn new(setup: &Setup, capacity: u64, asks: bool) -> Result<Option<Self>, SimError> {
        let text = setup.config.content();
        let spec = ContentSpec::parse(text);
        let spec = spec.map_err(|source| SimError::Content { text: text.to_owned(), source })?;
        if !asks {
            return Ok(None);
        }
        // Whole pages: a last one in part is never written whole.
        let pages = u32::try_from(capacity.div_ceil(PAGE_BYTES))
            .map_err(|_| SimError::ContentPages { capacity })?;
        Ok(Some(Self { model: spec.model(pages, setup.seed), pages: Vec::new() }))
    }

    /// The contents of a write of whole pages.
    pub(crate) fn of_pages(&mut self, first: u64, pages: u64) -> &[u128] {
        self.pages.clear();
        for page in first..first + pages {
            self.pages.push(self.model.of_write(narrow(page)));
        }
        &self.pages
    }

    /// The contents of a write, page by page; `told` are those the trace tells. A page that is written
    /// in part has no known content.
    pub(crate) fn of_write(&mut self, command: &Command, told: Option<Vec<u128>>) -> &[u128] {
        let (first, end) = (command.offset, command.offset + command.len);
        let pages = first / PAGE_BYTES..end.div_ceil(PAGE_BYTES);
        let told = told.unwrap_or_default();
        self.pages.clear();
        for page in pages.clone() {
            let whole = first <= page * PAGE_BYTES && end - page * PAGE_BYTES >= PAGE_BYTES;
            let known = told.get(index64(page - pages.start)).copied();
            self.pages.push(match known.unwrap_or(UNKNOWN) {
                UNKNOWN if whole => self.model.of_write(narrow(page)),
                known => known,
            });
        }
        &self.pages
    }

    /// Another command: what it trims repeats nothing any more.
    pub(crate) fn note(&mut self, command: &Command) {
        if matches!(command.op, Op::Trim | Op::WriteZeroes) {
            let end = (command.offset + command.len) / PAGE_BYTES;
            for page in command.offset.div_ceil(PAGE_BYTES)..end {
                self.model.trim(narrow(page));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use onefold_config::{Config, Sources};
    use onefold_tracefile::Options;

    use super::{Contents, SimError};
    use crate::Setup;
    use crate::result::Program;

    fn contents(content: &str, capacity: u64, asks: bool) -> Result<bool, SimError> {
        let sets = [format!("dedup.content={content}")];
        let config = Config::load(&Sources { sets: &sets, ..Sources::default() });
        let (config, program) = (config.expect("a configuration"), Program::default());
        let setup = Setup { config, trace_options: Options::default(), seed: 1, program };
        Contents::new(&setup, capacity, asks).map(|contents| contents.is_some())
    }

    #[test]
    fn large_drives_have_no_contents_and_need_none() {
        let (model, limit) = ("iid_zipf", 4096 * u64::from(u32::MAX));
        assert!(contents(model, 1 << 20, true).expect("it fits"));
        assert!(!contents(model, limit + 1, false).expect("nobody asks"));
        assert!(matches!(contents(model, limit + 1, true), Err(SimError::ContentPages { .. })));
        assert!(matches!(contents("no-model", 1 << 20, false), Err(SimError::Content { .. })));
    }
}
