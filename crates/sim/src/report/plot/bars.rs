//! Vertical bars that share one width: histograms.

use super::axis::Axis;
use super::frame::{axes, picture};
use super::marks::style;
use super::px;
use crate::report::Markup;

/// One bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// Where it begins on the horizontal axis.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    /// Its height on the vertical axis.
    pub height: f64,
    /// Tooltip.
    pub tip: String,
}

/// A plot of bars.
#[derive(Clone, Debug, PartialEq)]
pub struct BarPlot {
    /// Name of the plot for readers who do not see it.
    pub title: String,
    /// Width and height in pixels.
    pub size: (f64, f64),
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// Colour of all bars.
    pub style: usize,
    /// What is drawn.
    pub bars: Vec<Bar>,
}

impl BarPlot {
    /// Adds the plot to a page.
    pub fn draw(&self, page: &mut Markup) {
        picture(page, &self.title, self.size, |svg| {
            let frame = axes(svg, self.size, &self.x, &self.y);
            svg.open("g", &[("class", &style(self.style))]);
            for bar in self.bars.iter().filter(|bar| bar.height > 0.0) {
                let left = frame.x(&self.x, bar.from) + 1.0;
                let right = frame.x(&self.x, bar.to) - 1.0;
                // The smallest bar stays visible: few is not none.
                let top = frame.y(&self.y, bar.height).min(frame.bottom - 1.5);
                svg.open(
                    "rect",
                    &[
                        ("class", &"solid"),
                        ("x", &px(left)),
                        ("y", &px(top)),
                        ("width", &px((right - left).max(1.0))),
                        ("height", &px(frame.bottom - top)),
                    ],
                );
                svg.element("title", &[], &bar.tip);
                svg.close();
            }
            svg.close();
        });
    }
}
