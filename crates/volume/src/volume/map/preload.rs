//! Reading the map in the background after an opening (volume.md, section 7, step 7), if there is memory for all of it.
//!
//! The sweep writes images of neighbouring pages side by side, so that most of the map is read in long requests.

use crate::map::preload::{TOGETHER, TOGETHER_MAX};
use crate::map::{Map, Ready};
use crate::volume::Volume;

impl Volume {
    /// Begins with the first page.
    pub(crate) fn begin_preload(&mut self) {
        self.loads.preload_mut().begin(self.options.preload > 0);
    }

    /// Whether the map is being read.
    pub(crate) fn is_preloading(&self) -> bool {
        self.loads.preload().is_on() && !self.is_resizing() && !self.checkpoint.is_closing()
    }

    /// Whether pages can be asked for now.
    pub(crate) fn preloads(&self) -> bool {
        self.is_preloading() && self.loads.count() <= self.preloads_together()
    }

    /// Pages that are asked for together: few at first, as the host waits for its first ones then.
    fn preloads_together(&self) -> usize {
        self.map.resident().clamp(TOGETHER, TOGETHER_MAX)
    }

    /// Asks for the next pages.
    pub(crate) fn step_preload(&mut self) {
        while self.preloads()
            && let Some(next) = self.loads.preload_mut().take()
        {
            // Never in the place of others.
            if self.map.pages_of_all() > self.options.map_pages || self.frozen.is_some() {
                return;
            }
            // The images of a member that is coming may be being written.
            let missing = |key: &usize| {
                self.map.ready(*key) == Ready::Missing && !self.is_coming(Map::of_key(*key).0)
            };
            let most = self.preloads_together();
            let pages: Vec<usize> = self.map.keys_from(next).filter(missing).take(most).collect();
            if let Some(last) = pages.last() {
                self.loads.preload_mut().go_on(last + 1);
                self.load_pages(&pages, true);
            }
        }
    }
}
