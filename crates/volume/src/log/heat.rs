//! Which parts of the exported device are written often.

use onefold_units::convert::u64_from;

/// A part is hot above this many times the mean.
const HOT_FACTOR: u64 = 2;

/// All counters are halved when the mean reaches this.
const MEAN_MAX: u64 = 1024;

/// One decaying counter of written blocks per map page (volume.md, section 5.5).
#[derive(Debug)]
pub(crate) struct Heat {
    written: Vec<u32>,
    total: u64,
}

impl Heat {
    pub(crate) fn new(pages: usize) -> Self {
        Self { written: vec![0; pages], total: 0 }
    }

    /// How many pages there are.
    pub(crate) const fn pages(&self) -> usize {
        self.written.len()
    }

    /// Another number of pages.
    pub(crate) fn resize(&mut self, pages: usize) {
        self.written.resize(pages, 0);
        self.total = self.written.iter().map(|count| u64::from(*count)).sum();
    }

    /// Notes a write to a page and says whether the page is hot.
    pub(crate) fn touch(&mut self, page: usize, blocks: u32) -> bool {
        let count = &mut self.written[page];
        *count += blocks;
        self.total += u64::from(blocks);
        let (count, pages) = (u64::from(*count), u64_from(self.written.len()));
        let hot = count * pages > HOT_FACTOR * self.total;
        if self.total > MEAN_MAX * pages {
            self.decay();
        }
        hot
    }

    fn decay(&mut self) {
        self.total = 0;
        for count in &mut self.written {
            *count /= 2;
            self.total += u64::from(*count);
        }
    }
}
