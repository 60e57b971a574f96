//! Plots as SVG, small functions over [`Markup`](super::Markup). A plot takes its colours from the
//! style sheet of the page (classes `s0` to `s7` for runs, `h0` to `h9` for hatches), and never says
//! anything by colour alone: lines differ by dashes and marks, bars by hatching and labels.

mod axis;
mod bars;
mod flow;
mod frame;
mod grouped;
mod line;
mod marks;
mod outline;
mod scale;
mod sheet;
mod stacked;

pub use axis::Axis;
pub use bars::{Bar, BarPlot};
pub use flow::{FlowColumn, FlowPlot};
pub use grouped::{Group, GroupedPlot, Level};
pub use line::{Line, LinePlot};
pub(crate) use marks::hatches;
pub use marks::{hatch_swatch, line_swatch, outline_swatch};
pub use outline::Outline;
pub use scale::{Scale, Tick};
pub use sheet::{Key, Panel, Sheet};
pub use stacked::{Segment, StackedBar, StackedPlot};

/// A coordinate in pixels with one decimal. Anything that is no number sits at the origin.
fn px(value: f64) -> String {
    let value = if value.is_finite() { value.clamp(-1e6, 1e6) } else { 0.0 };
    let text = format!("{value:.1}");
    match text.strip_suffix(".0") {
        Some("-0") => "0".to_owned(),
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

/// Width of a text in pixels, roughly: enough to decide whether a label fits.
fn text_width(text: &str, size: f64) -> f64 {
    let characters = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
    f64::from(characters) * size * 0.56
}
