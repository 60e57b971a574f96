//! Lines over two axes.

use super::axis::Axis;
use super::frame::{Frame, axes, picture};
use super::marks::{dashes, mark, style};
use super::px;
use crate::report::Markup;

/// Marks along one line.
const MARKS: usize = 7;
/// Points of one line that answer the pointer.
const TIPS: usize = 60;
/// Most points drawn of one line: more would not show.
const POINTS: usize = 1000;

/// Describes a point for its tooltip.
type Tip<'a> = &'a dyn Fn(f64, f64) -> String;

/// One line; a gap where the second value is absent.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Name in tooltips.
    pub label: String,
    /// Which of the styles (colour, dashes, mark) it has.
    pub style: usize,
    /// Points in the order of x.
    pub points: Vec<(f64, Option<f64>)>,
}

/// A plot of lines.
#[derive(Clone, Debug, PartialEq)]
pub struct LinePlot {
    /// Name of the plot for readers who do not see it.
    pub title: String,
    /// Width and height in pixels.
    pub size: (f64, f64),
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// What is drawn.
    pub lines: Vec<Line>,
}

impl LinePlot {
    /// Adds the plot to a page. `tip` describes a point for its tooltip.
    pub fn draw(&self, page: &mut Markup, tip: impl Fn(f64, f64) -> String) {
        picture(page, &self.title, self.size, |svg| self.draw_all(svg, Some(&tip)));
    }

    /// Adds the plot to a picture, without tooltips.
    pub(super) fn draw_short(&self, svg: &mut Markup) {
        self.draw_all(svg, None);
    }

    fn draw_all(&self, svg: &mut Markup, tip: Option<Tip<'_>>) {
        let frame = axes(svg, self.size, &self.x, &self.y);
        for (order, line) in self.lines.iter().enumerate() {
            self.draw_line(svg, &frame, order, line, tip);
        }
    }

    fn draw_line(
        &self,
        svg: &mut Markup,
        frame: &Frame,
        order: usize,
        line: &Line,
        tip: Option<Tip<'_>>,
    ) {
        let points = thinned(&line.points);
        let place = |x: f64, y: f64| (frame.x(&self.x, x), frame.y(&self.y, y));
        svg.open("g", &[("class", &style(line.style))]);
        let path = path(points.iter().map(|&(x, y)| y.map(|y| place(x, y))));
        if !path.is_empty() {
            let dash = dashes(line.style);
            svg.leaf("path", &[("class", &"line"), ("stroke-dasharray", &dash), ("d", &path)]);
        }
        let known: Vec<(f64, f64)> = points.iter().filter_map(|&(x, y)| Some((x, y?))).collect();
        // Lines that lie on each other still show their own marks.
        let shift = known.len() * order / (MARKS * self.lines.len().max(1));
        for &(x, y) in every(&known, MARKS, shift) {
            let (x, y) = place(x, y);
            mark(svg, line.style, x, y);
        }
        if let Some(tip) = tip {
            for &(x, y) in every(&known, TIPS, 0) {
                draw_tip(svg, place(x, y), &format!("{}: {}", line.label, tip(x, y)));
            }
        }
        svg.close();
    }
}

/// A place that answers the pointer.
fn draw_tip(svg: &mut Markup, (x, y): (f64, f64), tip: &str) {
    svg.open("circle", &[("class", &"tip"), ("cx", &px(x)), ("cy", &px(y)), ("r", &7)]);
    svg.element("title", &[], tip);
    svg.close();
}

/// About `wanted` of the items at equal distances, from item `first` on.
fn every<T>(items: &[T], wanted: usize, first: usize) -> impl Iterator<Item = &T> {
    items.iter().skip(first).step_by(items.len().div_ceil(wanted).max(1))
}

/// The path through the points, with a gap at each absent one. A point between two gaps is a dot.
fn path(points: impl Iterator<Item = Option<(f64, f64)>>) -> String {
    let mut path = String::new();
    let mut pen_down = false;
    for point in points {
        if let Some((x, y)) = point {
            let command = if pen_down { 'L' } else { 'M' };
            path.push(command);
            let piece = format!("{} {}", px(x), px(y));
            path.push_str(&piece);
            if !pen_down {
                path.push_str("h0");
            }
        }
        pen_down = point.is_some();
    }
    path
}

/// At most [`POINTS`] points, each the mean of as many neighbours.
fn thinned(points: &[(f64, Option<f64>)]) -> Vec<(f64, Option<f64>)> {
    let group = points.len().div_ceil(POINTS).max(1);
    points.chunks(group).map(mean).collect()
}

fn mean(group: &[(f64, Option<f64>)]) -> (f64, Option<f64>) {
    let x = group.last().map_or(0.0, |point| point.0);
    let (mut sum, mut known) = (0.0, 0_u32);
    for y in group.iter().filter_map(|point| point.1) {
        sum += y;
        known += 1;
    }
    (x, (known > 0).then(|| sum / f64::from(known)))
}

#[cfg(test)]
mod tests {
    use super::{path, thinned};

    #[test]
    fn gaps_lift_the_pen() {
        let points = [Some((0.0, 1.0)), Some((1.0, 2.0)), None, Some((3.0, 4.5))];
        assert_eq!(path(points.into_iter()), "M0 1h0L1 2M3 4.5h0");
        assert_eq!(path([None, None].into_iter()), "");
    }

    #[test]
    fn long_lines_are_thinned_by_means() {
        let long: Vec<(f64, Option<f64>)> =
            (0..2500).map(|n| (f64::from(n), (n % 3 != 0).then_some(2.0))).collect();
        let short = thinned(&long);
        assert!(short.len() <= 1000 && short.len() > 500);
        assert!(short.iter().all(|point| point.1.is_none_or(|y| (y - 2.0).abs() < 1e-12)));
        assert!((short[short.len() - 1].0 - 2499.0).abs() < 1e-12);
    }
}
