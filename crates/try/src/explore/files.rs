//! States as files of a folder.

use std::sync::Arc;

use onefold_crash::{Disk, Log, State};
use onefold_device::BlockDevice;
use onefold_serve::Files;

/// A file for each state of a log, by its name. What is written to one is gone when it is closed.
#[derive(Debug)]
pub struct StateFiles {
    log: Arc<Log>,
    listed: Vec<String>,
}

impl StateFiles {
    /// The states of a log, of which these are listed.
    #[must_use]
    pub const fn new(log: Arc<Log>, listed: Vec<String>) -> Self {
        Self { log, listed }
    }

    /// A state of a name. A number before it and a dot, as in `7.e3204-all`, make another file of the same state.
    fn state(&self, name: &str) -> Option<State> {
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let numbered = name.split_once('.').filter(|(number, _)| is_number(number));
        State::parse(numbered.map_or(name, |(_, name)| name), &self.log).ok()
    }
}

impl Files for StateFiles {
    fn size(&self, name: &str) -> Option<u64> {
        self.state(name).map(|_| self.log.size())
    }

    fn open(&self, name: &str) -> Option<Box<dyn BlockDevice>> {
        let state = self.state(name)?;
        Some(Box::new(Disk::new(Arc::clone(&self.log), &state)))
    }

    fn names(&self) -> Vec<String> {
        self.listed.clone()
    }
}
