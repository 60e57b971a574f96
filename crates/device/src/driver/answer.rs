//! Who waits for the end of a request, and how it ended.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// What a request came to, once it is over. Copies are of the same request.
pub(crate) struct Answer<T>(Arc<(Mutex<Option<T>>, Condvar)>);

impl<T> Clone for Answer<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for Answer<T> {
    fn default() -> Self {
        Self(Arc::new((Mutex::new(None), Condvar::new())))
    }
}

impl<T> Answer<T> {
    /// Tells the one who waits.
    pub(crate) fn give(&self, what: T) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
        self.0.1.notify_one();
    }

    /// Waits for it.
    pub(crate) fn wait(&self) -> T {
        let mut given = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match given.take() {
                Some(what) => return what,
                None => given = self.0.1.wait(given).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

/// Requests by their tags, and those that somebody waits for.
pub(crate) struct Waiting<T> {
    next: u64,
    answers: BTreeMap<u64, Answer<T>>,
}

impl<T> Default for Waiting<T> {
    fn default() -> Self {
        Self { next: 0, answers: BTreeMap::new() }
    }
}

impl<T> Waiting<T> {
    /// The tag of the next request, until it is [taken](Self::taken).
    pub(crate) const fn tag(&self) -> u64 {
        self.next
    }

    /// The request with the next tag was taken.
    pub(crate) const fn taken(&mut self) {
        self.next += 1;
    }

    /// Somebody waits for the request of a tag.
    pub(crate) fn expect(&mut self, tag: u64, answer: &Answer<T>) {
        self.answers.insert(tag, answer.clone());
    }

    /// A request is over. Nothing happens if nobody waits for it.
    pub(crate) fn end(&mut self, tag: u64, what: T) {
        if let Some(answer) = self.answers.remove(&tag) {
            answer.give(what);
        }
    }

    /// All who wait are told the same.
    pub(crate) fn end_all(&mut self, mut what: impl FnMut() -> T) {
        for answer in std::mem::take(&mut self.answers).into_values() {
            answer.give(what());
        }
    }

    /// Whether nobody waits.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }
}
