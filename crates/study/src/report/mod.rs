//! What a study came to: figures, headlines and checks, as text and as HTML.

mod beside;
mod checks;
mod data;
mod headlines;
mod html;
mod metric;
mod text;
mod value;

pub use checks::{Case, CheckData};
pub use data::{Data, Group, Point};
pub use headlines::{HeadlineData, Ratios, Versus};
pub use html::html;
pub use text::{checks as checks_text, text};

use serde::Serialize;

use crate::{Row, Study};

/// What a study came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The figures of the study, or those of the two hit ratios if it describes none.
    pub figures: Vec<Data>,
    /// Averages.
    pub headlines: Vec<HeadlineData>,
    /// What became of the checks.
    pub checks: Vec<CheckData>,
}

impl Report {
    /// What rows say about a study; numbers without a row are missing.
    #[must_use]
    pub fn new(study: &Study, rows: &[Row]) -> Self {
        Self {
            figures: data::figures(study, rows),
            headlines: headlines::headlines(study, rows),
            checks: checks::checks(study, rows),
        }
    }
}
