//! Horizontal bars made of hatched segments: shares of a total, one bar per run.

use super::axis::Axis;
use super::frame::{Frame, axes, line, picture, text};
use super::marks::hatch_fill;
use super::{px, text_width};
use crate::report::Markup;

/// Height of a bar.
const BAR: f64 = 30.0;
/// Height of a bar with its label and the space to the next.
const PITCH: f64 = 62.0;
/// Least width of a segment that carries its name.
const LABEL_MARGIN: f64 = 12.0;

/// One part of a bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    /// Name, written into the segment where it fits.
    pub label: String,
    /// Which hatch it has.
    pub hatch: usize,
    /// Length on the axis.
    pub length: f64,
    /// Tooltip.
    pub tip: String,
}

/// One bar.
#[derive(Clone, Debug, PartialEq)]
pub struct StackedBar {
    /// Name, written above the bar.
    pub label: String,
    /// Note beside the name, such as the total.
    pub note: String,
    /// Parts from left to right.
    pub segments: Vec<Segment>,
}

/// A plot of stacked bars.
#[derive(Clone, Debug, PartialEq)]
pub struct StackedPlot {
    /// Name of the plot for readers who do not see it.
    pub title: String,
    /// Width in pixels; the height follows from the bars.
    pub width: f64,
    /// Horizontal axis.
    pub x: Axis,
    /// Bars from top to bottom.
    pub bars: Vec<StackedBar>,
}

impl StackedPlot {
    /// Adds the plot to a page.
    pub fn draw(&self, page: &mut Markup) {
        let rows = f64::from(u32::try_from(self.bars.len()).unwrap_or(u32::MAX));
        let size = (self.width, rows * PITCH + 64.0);
        let no_labels = Axis { title: String::new(), ticks: Vec::new(), ..self.x.clone() };
        picture(page, &self.title, size, |svg| {
            let mut frame = axes(svg, size, &self.x, &no_labels);
            line(svg, "axis", (frame.left, frame.top), (frame.left, frame.bottom));
            frame.top += 20.0;
            for bar in &self.bars {
                self.draw_bar(svg, &frame, bar);
                frame.top += PITCH;
            }
        });
    }

    /// Draws one bar with its name at the top of the frame.
    fn draw_bar(&self, svg: &mut Markup, frame: &Frame, bar: &StackedBar) {
        svg.within(
            "text",
            &[("class", &"name"), ("x", &px(frame.left + 6.0)), ("y", &px(frame.top))],
            |name| {
                name.element("tspan", &[("class", &"strong")], &bar.label);
                name.text(&format!("   {}", bar.note));
            },
        );
        let top = frame.top + 8.0;
        let mut end = 0.0;
        for segment in bar.segments.iter().filter(|segment| segment.length > 0.0) {
            let left = frame.x(&self.x, end);
            end += segment.length;
            let width = frame.x(&self.x, end) - left;
            svg.open(
                "rect",
                &[
                    ("class", &"bar"),
                    ("fill", &hatch_fill(segment.hatch)),
                    ("x", &px(left)),
                    ("y", &px(top)),
                    ("width", &px(width.max(0.5))),
                    ("height", &px(BAR)),
                ],
            );
            svg.element("title", &[], &segment.tip);
            svg.close();
            label(svg, segment, (left, top), width);
        }
    }
}

/// Writes the name into a segment wide enough for it.
fn label(svg: &mut Markup, segment: &Segment, (left, top): (f64, f64), width: f64) {
    let needed = text_width(&segment.label, 12.0) + LABEL_MARGIN;
    if width < needed {
        return;
    }
    let middle = left + width / 2.0;
    svg.leaf(
        "rect",
        &[
            ("class", &"plate"),
            ("x", &px(middle - needed / 2.0 + 1.0)),
            ("y", &px(top + 6.0)),
            ("width", &px(needed - 2.0)),
            ("height", &px(BAR - 12.0)),
            ("rx", &3),
        ],
    );
    text(svg, "inside middle", (middle, top + BAR / 2.0 + 4.0), &segment.label);
}
