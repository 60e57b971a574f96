//! Vertical bars in groups, one hatch per series, with levels across each group to compare with.

use std::collections::BTreeMap;

use onefold_units::convert::{float, u64_from};

use super::axis::Axis;
use super::frame::{Frame, axes, line, picture, text};
use super::marks::{dashes, hatch_fill, mark, style};
use super::outline::{Outline, Outlines};
use super::{px, text_width};
use crate::report::Markup;

/// Share of a group's width that separates it from the next.
const GAP: f64 = 0.16;
/// Size of the names of groups, as in the style sheet.
const TEXT: f64 = 12.0;

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// Which series: its hatch as a bar, its colour and mark as a level.
    pub series: usize,
    /// Height on the axis.
    pub height: f64,
    /// Tooltip.
    pub tip: String,
}

/// Values that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Name below the bars.
    pub label: String,
    /// Bars from left to right; a place stays free where there is no value.
    pub bars: Vec<Option<Level>>,
    /// Published numbers, one per bar; none if empty.
    pub outlines: Vec<Option<Outline>>,
    /// Lines across the group.
    pub levels: Vec<Level>,
}

/// A plot of grouped bars.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupedPlot {
    /// Name of the plot for readers who do not see it.
    pub title: String,
    /// Width and height in pixels.
    pub size: (f64, f64),
    /// What the names of the groups are.
    pub x_title: String,
    /// Vertical axis.
    pub y: Axis,
    /// Height of a line across the whole plot to compare with.
    pub reference: Option<f64>,
    /// Groups from left to right.
    pub groups: Vec<Group>,
}

impl GroupedPlot {
    /// Adds the plot to a page.
    pub fn draw(&self, page: &mut Markup) {
        picture(page, &self.title, self.size, |svg| {
            let frame = self.frame(svg);
            for (at, group) in self.groups.iter().enumerate() {
                self.draw_bars(svg, &frame, at);
                self.draw_outlines(svg, &frame, at);
                self.draw_levels(svg, &frame, at);
                self.draw_name(svg, &frame, (at, &group.label));
            }
            self.draw_reference(svg, &frame);
        });
    }

    /// Adds the plot to a picture, without tooltips: all bars of a series are one path, so that the text is short.
    pub(super) fn draw_short(&self, svg: &mut Markup) {
        let frame = self.frame(svg);
        let mut series: BTreeMap<usize, String> = BTreeMap::new();
        for (at, group) in self.groups.iter().enumerate() {
            for (bar, n) in group.bars.iter().zip(0_u32..) {
                let Some(bar) = bar else { continue };
                let (left, width) = self.bar(&frame, at, n);
                let top = self.top(&frame, bar.height);
                let (x, y) = (px(left), px(top));
                let (w, h) = (px(width.max(0.5)), px(frame.bottom - top));
                let piece = format!("M{x} {y}h{w}v{h}h-{w}Z");
                series.entry(bar.series).or_default().push_str(&piece);
            }
        }
        for (n, path) in &series {
            svg.leaf("path", &[("class", &"bar"), ("fill", &hatch_fill(*n)), ("d", path)]);
        }
        for (at, group) in self.groups.iter().enumerate() {
            self.draw_outlines(svg, &frame, at);
            self.draw_levels(svg, &frame, at);
            self.draw_name(svg, &frame, (at, &group.label));
        }
        self.draw_reference(svg, &frame);
    }

    fn frame(&self, svg: &mut Markup) -> Frame {
        let x = Axis { ticks: Vec::new(), ..Axis::number(&self.x_title, self.count()) };
        axes(svg, self.size, &x, &self.y)
    }

    fn count(&self) -> f64 {
        float(u64_from(self.groups.len()).max(1))
    }

    /// Left end and width of a group.
    fn place(&self, frame: &Frame, at: usize) -> (f64, f64) {
        let width = (frame.right - frame.left) / self.count();
        (frame.left + width * float(u64_from(at)), width)
    }

    /// Left end and width of a bar of a group.
    fn bar(&self, frame: &Frame, at: usize, bar: u32) -> (f64, f64) {
        let (left, width) = self.place(frame, at);
        let bars = float(u64_from(self.groups[at].bars.len()).max(1));
        let bar_width = width * (1.0 - GAP) / bars;
        (left + width * GAP / 2.0 + bar_width * f64::from(bar), bar_width)
    }

    /// Upper end of a bar: the smallest stays visible.
    fn top(&self, frame: &Frame, height: f64) -> f64 {
        frame.y(&self.y, height).min(frame.bottom - 1.5)
    }

    fn draw_bars(&self, svg: &mut Markup, frame: &Frame, at: usize) {
        for (bar, n) in self.groups[at].bars.iter().zip(0_u32..) {
            let Some(bar) = bar else { continue };
            let ((left, width), top) = (self.bar(frame, at, n), self.top(frame, bar.height));
            svg.open(
                "rect",
                &[
                    ("class", &"bar"),
                    ("fill", &hatch_fill(bar.series)),
                    ("x", &px(left)),
                    ("y", &px(top)),
                    ("width", &px(width.max(0.5))),
                    ("height", &px(frame.bottom - top)),
                ],
            );
            svg.element("title", &[], &bar.tip);
            svg.close();
        }
    }

    fn draw_outlines(&self, svg: &mut Markup, frame: &Frame, at: usize) {
        for (outline, n) in self.groups[at].outlines.iter().zip(0_u32..) {
            let Some(outline) = outline else { continue };
            let mut paths = Outlines::default();
            paths.add((frame, &self.y), outline, self.bar(frame, at, n));
            if outline.tip.is_empty() {
                paths.draw(svg);
                continue;
            }
            svg.open("g", &[]);
            svg.element("title", &[], &outline.tip);
            paths.draw(svg);
            svg.close();
        }
    }

    fn draw_levels(&self, svg: &mut Markup, frame: &Frame, at: usize) {
        let (left, width) = self.place(frame, at);
        let first = left + width * GAP / 2.0;
        for level in &self.groups[at].levels {
            let (y, right) = (frame.y(&self.y, level.height), left + width * (1.0 - GAP / 2.0));
            svg.open("g", &[("class", &style(level.series))]);
            if !level.tip.is_empty() {
                svg.element("title", &[], &level.tip);
            }
            svg.leaf(
                "path",
                &[
                    ("class", &"line"),
                    ("stroke-dasharray", &dashes(level.series)),
                    ("d", &format!("M{} {}H{}", px(first), px(y), px(right))),
                ],
            );
            mark(svg, level.series, right, y);
            svg.close();
        }
    }

    fn draw_name(&self, svg: &mut Markup, frame: &Frame, (at, name): (usize, &str)) {
        let (left, width) = self.place(frame, at);
        // A name too wide for its group would run into the next one; the tooltips have it too.
        if text_width(name, TEXT) <= width {
            text(svg, "tick middle", (left + width / 2.0, frame.bottom + 19.0), name);
        }
    }

    fn draw_reference(&self, svg: &mut Markup, frame: &Frame) {
        if let Some(height) = self.reference {
            let y = frame.y(&self.y, height);
            line(svg, "reference", (frame.left, y), (frame.right, y));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Group, GroupedPlot, Level, Outline};
    use crate::report::Markup;
    use crate::report::plot::Axis;

    #[test]
    fn every_value_is_drawn_with_its_tooltip() {
        let level = |series, height| {
            let tip = format!("series {series}");
            Level { series, height, tip }
        };
        let bars = vec![Some(level(0, 0.5)), None, Some(level(2, 0.0))];
        let outline = |from, to| {
            let tip = "published".to_owned();
            Some(Outline { from, to, tip })
        };
        let outlines = vec![outline(Some(0.4), Some(0.6)), None, outline(Some(0.2), Some(0.2))];
        let levels = vec![level(3, 0.75)];
        let group = Group { label: "<8 MiB>".to_owned(), bars, outlines, levels };
        let plot = GroupedPlot {
            title: "hits".to_owned(),
            size: (400.0, 300.0),
            x_title: "size".to_owned(),
            y: Axis::share("hit ratio", 1.0),
            reference: Some(0.25),
            groups: vec![group.clone(), group],
        };
        let mut page = Markup::new();
        plot.draw(&mut page);
        let svg = page.finish();
        let count = |text: &str| svg.matches(text).count();
        assert_eq!([count("<rect"), count("class=\"s3\""), count("series 2<")], [4, 2, 2]);
        assert_eq!([count("&lt;8 MiB&gt;"), count(">size<"), count("reference")], [2, 1, 1]);
        assert_eq!(
            [count("\"published\""), count("published-mark"), count(">published<")],
            [4, 2, 4]
        );
        roxmltree::Document::parse(&svg).unwrap();
    }
}
