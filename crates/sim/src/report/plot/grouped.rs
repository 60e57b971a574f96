//! Vertical bars in groups, one hatch per series, with levels across each group to compare with.

use onefold_units::convert::{float, u64_from};

use super::axis::Axis;
use super::frame::{Frame, axes, line, picture, text};
use super::marks::{dashes, hatch_fill, mark, style};
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
        let groups = float(u64_from(self.groups.len()).max(1));
        let x = Axis { ticks: Vec::new(), ..Axis::number(&self.x_title, groups) };
        picture(page, &self.title, self.size, |svg| {
            let frame = axes(svg, self.size, &x, &self.y);
            let width = (frame.right - frame.left) / groups;
            for (group, at) in self.groups.iter().zip(0_u32..) {
                let left = frame.left + width * f64::from(at);
                self.draw_group(svg, &frame, group, (left, width));
            }
            if let Some(height) = self.reference {
                let y = frame.y(&self.y, height);
                line(svg, "reference", (frame.left, y), (frame.right, y));
            }
        });
    }

    fn draw_group(
        &self,
        svg: &mut Markup,
        frame: &Frame,
        group: &Group,
        (left, width): (f64, f64),
    ) {
        let bars = float(u64_from(group.bars.len()).max(1));
        let (first, bar_width) = (left + width * GAP / 2.0, width * (1.0 - GAP) / bars);
        for (bar, at) in group.bars.iter().zip(0_u32..) {
            let Some(bar) = bar else { continue };
            let top = frame.y(&self.y, bar.height).min(frame.bottom - 1.5);
            svg.open(
                "rect",
                &[
                    ("class", &"bar"),
                    ("fill", &hatch_fill(bar.series)),
                    ("x", &px(first + bar_width * f64::from(at))),
                    ("y", &px(top)),
                    ("width", &px(bar_width.max(0.5))),
                    ("height", &px(frame.bottom - top)),
                ],
            );
            svg.element("title", &[], &bar.tip);
            svg.close();
        }
        for level in &group.levels {
            let (y, right) = (frame.y(&self.y, level.height), left + width * (1.0 - GAP / 2.0));
            svg.open("g", &[("class", &style(level.series))]);
            svg.element("title", &[], &level.tip);
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
        // A name too wide for its group would run into the next one; the tooltips have it too.
        if text_width(&group.label, TEXT) <= width {
            let middle = left + width / 2.0;
            text(svg, "tick middle", (middle, frame.bottom + 19.0), &group.label);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Group, GroupedPlot, Level};
    use crate::report::Markup;
    use crate::report::plot::Axis;

    #[test]
    fn every_value_is_drawn_with_its_tooltip() {
        let level = |series, height| {
            let tip = format!("series {series}");
            Level { series, height, tip }
        };
        let bars = vec![Some(level(0, 0.5)), None, Some(level(2, 0.0))];
        let group = Group { label: "<8 MiB>".to_owned(), bars, levels: vec![level(3, 0.75)] };
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
        roxmltree::Document::parse(&svg).unwrap();
    }
}
