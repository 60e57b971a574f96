//! The area of a plot with grid, axes and titles.

use super::axis::Axis;
use super::{px, text_width};
use crate::report::Markup;

/// Size of axis text, as in the style sheet.
const TEXT: f64 = 12.0;
const TOP: f64 = 12.0;
const RIGHT: f64 = 22.0;
const BOTTOM: f64 = 46.0;

/// Where values go in the picture.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl Frame {
    pub(super) fn x(&self, axis: &Axis, value: f64) -> f64 {
        self.left + axis.scale.position(value) * (self.right - self.left)
    }

    pub(super) fn y(&self, axis: &Axis, value: f64) -> f64 {
        self.bottom - axis.scale.position(value) * (self.bottom - self.top)
    }
}

/// A picture with a name for readers who do not see it.
pub(super) fn picture(
    page: &mut Markup,
    title: &str,
    (width, height): (f64, f64),
    content: impl FnOnce(&mut Markup),
) {
    let view = format!("0 0 {} {}", px(width), px(height));
    page.within(
        "svg",
        &[
            ("xmlns", &"http://www.w3.org/2000/svg"),
            ("class", &"plot"),
            ("role", &"img"),
            ("aria-label", &title),
            ("viewBox", &view),
        ],
        content,
    );
}

/// Draws grid, ticks and titles of both axes, and says where the values go.
pub(super) fn axes(svg: &mut Markup, (width, height): (f64, f64), x: &Axis, y: &Axis) -> Frame {
    let widest = y.ticks.iter().map(|tick| text_width(&tick.label, TEXT)).fold(0.0, f64::max);
    let frame = Frame {
        left: (widest + 38.0).min(width / 3.0),
        right: width - RIGHT,
        top: TOP,
        bottom: height - BOTTOM,
    };
    horizontal_lines(svg, &frame, y);
    vertical_ticks(svg, &frame, x);
    titles(svg, &frame, x, y);
    frame
}

fn horizontal_lines(svg: &mut Markup, frame: &Frame, y: &Axis) {
    for tick in &y.ticks {
        let at = frame.y(y, tick.at);
        line(svg, "grid", (frame.left, at), (frame.right, at));
        if !tick.label.is_empty() {
            text(svg, "tick end", (frame.left - 8.0, at + 4.0), &tick.label);
        }
    }
}

fn vertical_ticks(svg: &mut Markup, frame: &Frame, x: &Axis) {
    for tick in &x.ticks {
        let at = frame.x(x, tick.at);
        line(svg, "grid", (at, frame.top), (at, frame.bottom));
        if !tick.label.is_empty() {
            line(svg, "axis", (at, frame.bottom), (at, frame.bottom + 5.0));
            text(svg, "tick middle", (at, frame.bottom + 19.0), &tick.label);
        }
    }
    line(svg, "axis", (frame.left, frame.bottom), (frame.right, frame.bottom));
}

fn titles(svg: &mut Markup, frame: &Frame, x: &Axis, y: &Axis) {
    let middle = f64::midpoint(frame.left, frame.right);
    text(svg, "title middle", (middle, frame.bottom + 39.0), &x.title);
    let height = f64::midpoint(frame.top, frame.bottom);
    let turned = format!("rotate(-90 14 {})", px(height));
    svg.element(
        "text",
        &[("class", &"title middle"), ("x", &14), ("y", &px(height)), ("transform", &turned)],
        &y.title,
    );
}

pub(super) fn line(svg: &mut Markup, class: &str, from: (f64, f64), to: (f64, f64)) {
    svg.leaf(
        "line",
        &[
            ("class", &class),
            ("x1", &px(from.0)),
            ("y1", &px(from.1)),
            ("x2", &px(to.0)),
            ("y2", &px(to.1)),
        ],
    );
}

pub(super) fn text(svg: &mut Markup, class: &str, (x, y): (f64, f64), content: &str) {
    svg.element("text", &[("class", &class), ("x", &px(x)), ("y", &px(y))], content);
}
