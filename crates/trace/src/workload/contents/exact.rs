//! Contents of which a fixed share of the pages in use repeats another one.
//!
//! Drawing "repeat with probability `ratio`" would miss the ratio: when a page is overwritten, pages
//! that shared its content lose their partner, so random overwrites would leave half of the wanted
//! duplicates. The model therefore knows the content of every page and repeats one whenever the
//! duplicates in use are below the ratio.
//!
//! Invariants:
//! 1. `refs[c]` is the number of pages with content `c`; `free` holds those that no page has.
//! 2. `used` pages are in use, and `distinct` contents.

use onefold_units::Rng;
use onefold_units::convert::{float, floor_u64, index, index64, narrow, u64_from};

/// Draws of a content to repeat. Few contents are free, unless most pages were trimmed. If only free
/// ones were drawn, the write is unique and a later one makes up for it.
const DRAWS_MAX: u32 = 64;

#[derive(Clone, Debug)]
pub(super) struct ExactRatio {
    ratio: f64,
    rng: Rng,
    /// By page: content + 1, or 0.
    content_of: Vec<u32>,
    refs: Vec<u32>,
    /// By content: its id. A content that was given up comes back with another one.
    ids: Vec<u64>,
    /// Ids given out.
    last_id: u64,
    free: Vec<u32>,
    used: u64,
    distinct: u64,
}

onefold_units::keep!(ExactRatio { rng, content_of, refs, ids, last_id, free, used, distinct } but { ratio });

impl ExactRatio {
    pub(super) fn new(ratio: f64, units: u32, seed: u64) -> Self {
        Self {
            ratio,
            rng: Rng::new(seed),
            content_of: vec![0; index(units)],
            refs: Vec::new(),
            ids: Vec::new(),
            last_id: 0,
            free: Vec::new(),
            used: 0,
            distinct: 0,
        }
    }

    pub(super) fn of_write(&mut self, lpn: u32) -> u128 {
        self.trim(lpn);
        // With this page, whose content is still open.
        let wanted = floor_u64(self.ratio * float(self.used + 1));
        let repeated = if self.used - self.distinct < wanted { self.draw() } else { None };
        let content = repeated.unwrap_or_else(|| self.fresh());
        self.refs[index(content)] += 1;
        self.content_of[index(lpn)] = content + 1;
        self.used += 1;
        u128::from(self.ids[index(content)])
    }

    pub(super) fn trim(&mut self, lpn: u32) {
        let Some(content) = self.content_of[index(lpn)].checked_sub(1) else { return };
        self.content_of[index(lpn)] = 0;
        self.used -= 1;
        let refs = &mut self.refs[index(content)];
        *refs -= 1;
        if *refs == 0 {
            self.distinct -= 1;
            self.free.push(content);
        }
    }

    /// A random content in use.
    fn draw(&mut self) -> Option<u32> {
        let contents = u64_from(self.refs.len());
        (0..DRAWS_MAX)
            .map(|_| self.rng.below(contents))
            .find(|content| self.refs.get(index64(*content)).is_some_and(|refs| *refs > 0))
            .map(narrow)
    }

    /// A content that no page has or had.
    fn fresh(&mut self) -> u32 {
        self.distinct += 1;
        let content = self.free.pop().unwrap_or_else(|| {
            self.refs.push(0);
            self.ids.push(0);
            narrow(u64_from(self.refs.len() - 1))
        });
        self.last_id += 1;
        self.ids[index(content)] = self.last_id;
        content
    }
}
