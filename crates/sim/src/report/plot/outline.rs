//! Hollow, dashed outlines over bars: numbers that somebody else published.

use super::axis::Axis;
use super::frame::Frame;
use super::px;
use crate::report::Markup;

/// Least width of an outline, so that it shows over a narrow bar, and least height of a range.
const LEAST: f64 = 5.0;
/// Half the size of the mark of an exact number.
const MARK: f64 = 4.0;

/// A published number about a bar: exact where both ends are equal.
#[derive(Clone, Debug, PartialEq)]
pub struct Outline {
    /// The least; `None` if there is no lower limit.
    pub from: Option<f64>,
    /// The most; `None` if there is no upper limit.
    pub to: Option<f64>,
    /// Tooltip.
    pub tip: String,
}

/// Paths of outlines: the dashed lines, and the marks of exact numbers.
#[derive(Debug, Default)]
pub(super) struct Outlines {
    dashed: String,
    marks: String,
}

impl Outline {
    fn is_exact(&self) -> bool {
        self.from.is_some() && self.from == self.to
    }
}

impl Outlines {
    /// Adds the outline of a bar that is `width` wide at `left`.
    pub(super) fn add(
        &mut self,
        (frame, y): (&Frame, &Axis),
        outline: &Outline,
        (left, width): (f64, f64),
    ) {
        let wide = (width - 2.0).max(LEAST);
        let left = left + (width - wide) / 2.0;
        let at = |value: Option<f64>, open: f64| value.map_or(open, |value| frame.y(y, value));
        let (high, low) = (at(outline.to, frame.top), at(outline.from, frame.bottom));
        let (x, w) = (px(left), px(wide));
        let piece = if outline.is_exact() {
            self.diamond((left + wide / 2.0, high));
            format!("M{x} {}h{w}", px(high))
        } else {
            let high = high.min(low - LEAST);
            let (high, low) = (px(high), px(low));
            match (outline.from, outline.to) {
                (Some(_), Some(_)) => format!("M{x} {high}h{w}V{low}h-{w}Z"),
                // Open above, open below.
                (Some(_), None) => format!("M{x} {high}V{low}h{w}V{high}"),
                _ => format!("M{x} {low}V{high}h{w}V{low}"),
            }
        };
        self.dashed.push_str(&piece);
    }

    fn diamond(&mut self, (x, y): (f64, f64)) {
        let (left, up) = (px(x - MARK), px(y));
        let step = px(MARK);
        let piece = format!("M{left} {up}l{step} -{step}l{step} {step}l-{step} {step}Z");
        self.marks.push_str(&piece);
    }

    /// Draws what was added.
    pub(super) fn draw(&self, svg: &mut Markup) {
        if !self.dashed.is_empty() {
            svg.leaf("path", &[("class", &"published"), ("d", &self.dashed)]);
        }
        if !self.marks.is_empty() {
            svg.leaf("path", &[("class", &"published-mark"), ("d", &self.marks)]);
        }
    }
}
