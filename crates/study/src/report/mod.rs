//! What a study came to: figures, headlines and checks, as text and as HTML.

mod bars;
mod beside;
mod checks;
mod data;
mod headlines;
mod html;
mod line_plots;
mod metric;
mod over_time;
mod part;
mod pictures;
mod ranking;
mod ranking_tables;
mod text;
mod value;
mod zones;

pub use checks::{Case, CheckData};
pub(crate) use data::shown_figures;
pub use data::{Data, Group, Point};
pub use headlines::{HeadlineData, Ratios, Versus};
pub use html::html;
pub(crate) use metric::metric as metric_of;
pub use part::LeftOut;
pub use pictures::{Picture, pictures};
pub(crate) use ranking::usual_metrics;
pub use ranking::{Marginal, MarginalValue, Mean, Question, Ranked, Ranking};
pub use text::{checks as checks_text, text};

pub(crate) use zones::journal_path;

use std::borrow::Cow;

use serde::Serialize;

use crate::file::{Devices, Metric};
use crate::{Options, Row, Study, StudyError};
use part::Shown;

/// What a study came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// All points and means along axes: of a grid, and where somebody asks for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranking: Option<Ranking>,
    /// The figures of the study, or those of the two hit ratios if it describes none.
    pub figures: Vec<Data>,
    /// Averages.
    pub headlines: Vec<HeadlineData>,
    /// What became of the checks.
    pub checks: Vec<CheckData>,
    /// What a part of a study cannot show.
    #[serde(skip_serializing_if = "LeftOut::is_nothing")]
    pub left_out: LeftOut,
}

impl Report {
    /// What rows say about a study; numbers without a row are missing.
    #[must_use]
    pub fn new(study: &Study, rows: &[Row]) -> Self {
        Self::of(study, rows, &Shown::new(study), LeftOut::default())
    }

    /// What rows say about the part of a study that options name. Figures have no place for other
    /// workloads and policies; averages and checks that need them are left out. Numbers of the part
    /// without a row are missing.
    #[must_use]
    pub fn of_part(study: &Study, options: &Options, rows: &[Row]) -> Self {
        let (shown, left_out) = Shown::of_part(study, options);
        Self::of(study, rows, &shown, left_out)
    }

    fn of(study: &Study, rows: &[Row], shown: &Shown, left_out: LeftOut) -> Self {
        let is_grid = study.devices.as_ref().is_some_and(Devices::is_grid);
        // Without an axis that is asked for, nothing can fail.
        let ranking = is_grid.then(|| Ranking::new(study, rows, &Question::default()).ok());
        Self {
            ranking: ranking.flatten(),
            figures: data::figures(study, rows, &shown.figures),
            headlines: headlines::headlines(study, rows, &shown.headlines),
            checks: checks::checks(study, rows, &shown.checks),
            left_out,
        }
    }
}

impl Report {
    /// The answer to a question about the points, without figures.
    ///
    /// # Errors
    /// As [`Ranking::new`].
    pub fn answer(study: &Study, rows: &[Row], question: &Question) -> Result<Self, StudyError> {
        let ranking = Some(Ranking::new(study, rows, question)?);
        let (figures, headlines, checks) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { ranking, figures, headlines, checks, left_out: LeftOut::default() })
    }
}

/// The rows with the latencies of one model: the first of the study if none is named.
pub(crate) fn with_latency<'a>(
    study: &Study,
    rows: &'a [Row],
    label: Option<&str>,
) -> Cow<'a, [Row]> {
    let labels = || study.latencies.iter().skip(1).map(|choice| choice.label.as_str());
    let Some(at) = label.and_then(|label| labels().position(|other| other == label)) else {
        return Cow::Borrowed(rows);
    };
    let mut rows = rows.to_vec();
    let name = label.unwrap_or_default();
    for kept in rows.iter_mut().filter_map(|row| row.kept.as_mut()) {
        **kept = kept.with_latency(name);
    }
    for tenant in rows.iter_mut().flat_map(|row| &mut row.tenants) {
        tenant.latency_ns = tenant.other_latencies_ns.get(at).copied().unwrap_or_default();
    }
    Cow::Owned(rows)
}

/// Name of a metric, with the latency model if one is named.
fn title(metric: Metric, latency: Option<&str>) -> String {
    let model = latency.map_or_else(String::new, |label| format!(" ({label})"));
    format!("{}{model}", metric.title())
}
