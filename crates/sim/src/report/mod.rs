//! The HTML report: one self-contained file with inline CSS and SVG, no scripts, no requests.

mod breakdown;
mod figures;
mod markup;
mod page;
pub mod plot;
mod sections;
#[cfg(test)]
mod tests;
mod traffic;

use crate::result::{RunResult, labels};

pub use markup::{Attributes, Markup};
pub use page::{GENERATOR, html};
pub use traffic::hatch_of;

/// Most runs whose colours and line patterns differ; more share them in turn.
pub const STYLES: usize = 8;

/// Renders runs as one HTML file. The file is well-formed XML too, readable without colour and on
/// paper, and follows the reader's light or dark setting.
#[must_use]
pub fn render(runs: &[RunResult]) -> String {
    let labels = labels(runs);
    html(&page::title(runs), |page| {
        sections::header(page, runs, &labels);
        sections::summary(page, runs, &labels);
        traffic::flash(page, runs, &labels);
        figures::waf_over_time(page, runs, &labels);
        figures::latency_ccdf(page, runs, &labels);
        figures::latency_over_time(page, runs, &labels);
        breakdown::delays(page, runs, &labels);
        breakdown::tenants(page, runs, &labels);
        figures::valid_histogram(page, runs, &labels);
        sections::details(page, runs, &labels);
    })
}
