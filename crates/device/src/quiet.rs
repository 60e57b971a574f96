//! Telling people once what happens a thousand times.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// After something was told it is not told again for so long.
const QUIET: Duration = Duration::from_secs(30);

/// One kind of thing that may be told.
#[derive(Debug, Default)]
pub(crate) struct Quiet(Mutex<(Option<Instant>, u64)>);

impl Quiet {
    /// It happened. If it is to be told: how often it happened since it was told last, this time included.
    pub(crate) fn happened(&self) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (told, times) = &mut *state;
        *times += 1;
        if told.is_some_and(|told| told.elapsed() < QUIET) {
            return None;
        }
        *told = Some(Instant::now());
        Some(std::mem::take(times))
    }
}

#[cfg(test)]
mod tests {
    use super::Quiet;

    #[test]
    fn what_happens_again_and_again_is_told_once() {
        let quiet = Quiet::default();
        let told: Vec<_> = (0..1000).filter_map(|_| quiet.happened()).collect();
        assert_eq!(told, [1]);
    }
}
