//! How far the states are: on a terminal, or a line a minute elsewhere.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use onefold_try::explore::Amount;

use crate::output::Global;

/// How often is told where nobody watches a terminal.
const LINE_EVERY: Duration = Duration::from_mins(1);

/// Tells how many states were tried.
pub(crate) struct Watched {
    bar: ProgressBar,
    /// When a line was told; `None` where there is a bar, or nobody wants to hear.
    told: Option<Mutex<Instant>>,
}

impl Watched {
    pub(crate) fn new(amount: Amount, global: &Global) -> Self {
        let bar = match amount {
            _ if !global.shows_progress() => ProgressBar::hidden(),
            Amount::Most(most) => ProgressBar::new(most),
            Amount::All => ProgressBar::new_spinner(),
        };
        if let Ok(style) = ProgressStyle::with_template("{wide_bar} {pos} states, {msg}") {
            bar.set_style(style);
        }
        let has_lines = !global.quiet && !global.shows_progress();
        Self { bar, told: has_lines.then(|| Mutex::new(Instant::now())) }
    }

    /// So many were tried, and so many of them fail.
    pub(crate) fn told(&self, tried: u64, failing: u64) {
        self.bar.set_position(tried);
        self.bar.set_message(format!("{failing} fail"));
        let Some(told) = &self.told else { return };
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.elapsed() >= LINE_EVERY {
            *told = Instant::now();
            eprintln!("{tried} states tried, {failing} fail");
        }
    }

    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }
}
