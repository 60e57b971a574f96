//! How much of something passes places one after another: a stack of blocks for each place, and
//! bands between them. What a place adds has no band from before.

use super::frame::{picture, text};
use super::marks::hatch_fill;
use super::stacked::Segment;
use super::{px, text_width};
use crate::report::Markup;

/// Height of the names above the stacks.
const NAMES: f64 = 44.0;
/// Height of a line of blocks that have no room for their names.
const LINE: f64 = 16.0;
/// Least height of a block that carries its name.
const NAMED: f64 = 15.0;
/// Share of a place that its stack takes; the band to the next takes the rest.
const STACK: f64 = 0.66;
/// Least height of a block that is not nothing.
const THIN: f64 = 0.75;

/// A place.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowColumn {
    /// Its name.
    pub label: String,
    /// The sum, written below the name.
    pub note: String,
    /// Parts from top to bottom.
    pub blocks: Vec<Segment>,
    /// So many of the first are what came from the place before.
    pub carried: usize,
}

/// A picture of what passes places.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowPlot {
    /// Name of the picture for readers who do not see it.
    pub title: String,
    /// Width in pixels; the height follows from the tallest stack.
    pub width: f64,
    /// Pixels for a length of 1.
    pub scale: f64,
    /// Places from left to right.
    pub columns: Vec<FlowColumn>,
}

/// Where a stack is drawn.
#[derive(Clone, Copy)]
struct Place {
    left: f64,
    right: f64,
}

impl FlowPlot {
    /// Adds the picture to a page.
    pub fn draw(&self, page: &mut Markup) {
        let heights = self.columns.iter().map(|column| {
            let lines = u32::try_from(self.unnamed(column).len()).unwrap_or(u32::MAX);
            self.height(&column.blocks) + f64::from(lines) * LINE
        });
        let size = (self.width, NAMES + heights.fold(0.0, f64::max) + 8.0);
        picture(page, &self.title, size, |svg| {
            for (n, pair) in self.columns.windows(2).enumerate() {
                self.band(svg, (&pair[0], self.place(n)), (&pair[1], self.place(n + 1)));
            }
            for (n, column) in self.columns.iter().enumerate() {
                self.column(svg, column, self.place(n));
            }
        });
    }

    fn place(&self, n: usize) -> Place {
        let of = |n: usize| f64::from(u32::try_from(n).unwrap_or(u32::MAX));
        // The last stack has no band behind it.
        let pitch = self.width / (of(self.columns.len()) - 1.0 + STACK);
        let left = of(n) * pitch;
        Place { left, right: left + pitch * STACK }
    }

    fn block_height(&self, block: &Segment) -> f64 {
        if block.length > 0.0 { (block.length * self.scale).max(THIN) } else { 0.0 }
    }

    fn height(&self, blocks: &[Segment]) -> f64 {
        blocks.iter().map(|block| self.block_height(block)).sum()
    }

    /// Blocks too small for their names.
    fn unnamed<'a>(&self, column: &'a FlowColumn) -> Vec<&'a Segment> {
        let small = |block: &&Segment| block.length > 0.0 && self.block_height(block) < NAMED;
        column.blocks.iter().filter(small).collect()
    }

    /// What all of a stack becomes in the next one.
    fn band(
        &self,
        svg: &mut Markup,
        (from, left): (&FlowColumn, Place),
        (to, right): (&FlowColumn, Place),
    ) {
        let carried = &to.blocks[..to.carried.min(to.blocks.len())];
        let (sent, came) = (self.height(&from.blocks), self.height(carried));
        if sent <= 0.0 || came <= 0.0 {
            return;
        }
        let (x0, x1, top) = (left.right, right.left, NAMES);
        let middle = px(f64::midpoint(x0, x1));
        let (x0, x1) = (px(x0), px(x1));
        let (top, sent, came) = (px(top), px(top + sent), px(top + came));
        let path = format!(
            "M{x0} {top}L{x1} {top}L{x1} {came}C{middle} {came} {middle} {sent} {x0} {sent}Z"
        );
        svg.leaf("path", &[("class", &"band"), ("d", &path)]);
    }

    fn column(&self, svg: &mut Markup, column: &FlowColumn, place: Place) {
        let width = place.right - place.left;
        text(svg, "name strong", (place.left, 14.0), &fitted(&column.label, width, 13.0));
        text(svg, "name", (place.left, 32.0), &column.note);
        let mut top = NAMES;
        for block in &column.blocks {
            let height = self.block_height(block);
            if height > 0.0 {
                draw_block(svg, block, (place, top), height);
            }
            top += height;
        }
        for block in self.unnamed(column) {
            top += LINE;
            svg.leaf(
                "rect",
                &[
                    ("class", &"bar"),
                    ("fill", &hatch_fill(block.hatch)),
                    ("x", &px(place.left)),
                    ("y", &px(top - 9.0)),
                    ("width", &9),
                    ("height", &9),
                ],
            );
            text(svg, "tick", (place.left + 14.0, top), &fitted(&block.label, width, 12.0));
        }
    }
}

/// Draws a block, with its name if there is room.
fn draw_block(svg: &mut Markup, block: &Segment, (place, top): (Place, f64), height: f64) {
    let width = place.right - place.left;
    svg.open(
        "rect",
        &[
            ("class", &"bar"),
            ("fill", &hatch_fill(block.hatch)),
            ("x", &px(place.left)),
            ("y", &px(top)),
            ("width", &px(width)),
            ("height", &px(height)),
        ],
    );
    svg.element("title", &[], &block.tip);
    svg.close();
    if height < NAMED {
        return;
    }
    let label = fitted(&block.label, width - 8.0, 12.0);
    let back = (text_width(&label, 12.0) + 8.0).min(width);
    let (middle, centre) = (place.left + width / 2.0, top + height / 2.0);
    svg.leaf(
        "rect",
        &[
            ("class", &"plate"),
            ("x", &px(middle - back / 2.0)),
            ("y", &px(centre - 7.0)),
            ("width", &px(back)),
            ("height", &px(14.0)),
            ("rx", &3),
        ],
    );
    text(svg, "inside middle", (middle, centre + 4.0), &label);
}

/// The text, or as much of its end as has room: paths end with what tells them apart, and labels
/// with a size.
fn fitted(label: &str, width: f64, size: f64) -> String {
    if text_width(label, size) <= width {
        return label.to_owned();
    }
    let mut rest = label.chars();
    while rest.next().is_some() && text_width(rest.as_str(), size) > width - size {}
    format!("\u{2026}{}", rest.as_str())
}

#[cfg(test)]
mod tests {
    use super::{FlowColumn, FlowPlot, Segment, fitted};
    use crate::report::Markup;

    fn column(lengths: &[f64], carried: usize) -> FlowColumn {
        let block = |length: &f64| Segment {
            label: format!("part {length}"),
            hatch: 1,
            length: *length,
            tip: String::new(),
        };
        let blocks = lengths.iter().map(block).collect();
        FlowColumn { label: "place".to_owned(), note: String::new(), blocks, carried }
    }

    fn drawn(columns: Vec<FlowColumn>) -> String {
        let mut page = Markup::new();
        let plot = FlowPlot { title: "flow".to_owned(), width: 400.0, scale: 1.0, columns };
        plot.draw(&mut page);
        page.finish()
    }

    #[test]
    fn a_band_goes_from_all_of_a_place_to_what_the_next_one_carries() {
        let svg = drawn(vec![column(&[60.0, 20.0], 0), column(&[40.0, 5.0, 90.0], 2)]);
        // 80 pixels below the names on the left, 45 on the right.
        assert_eq!(svg.matches("class=\"band\"").count(), 1);
        assert!(svg.contains(" 44L") && svg.contains(" 89C") && svg.contains(" 124Z"), "{svg}");
        // The small block has its name below the stack, and the picture room for it.
        assert_eq!(svg.matches("<text class=\"tick\"").count(), 1);
        assert!(svg.contains(&format!("viewBox=\"0 0 400 {}\"", 44 + 135 + 16 + 8)), "{svg}");
    }

    #[test]
    fn nothing_has_no_band_and_odd_lengths_are_drawn() {
        let svg = drawn(vec![column(&[0.0], 0), column(&[10.0], 1), column(&[f64::NAN, 3.0], 9)]);
        assert_eq!(svg.matches("class=\"band\"").count(), 1);
        assert!(!svg.contains("NaN\" y"), "{svg}");
        assert!(drawn(Vec::new()).contains("<svg"));
    }

    #[test]
    fn long_names_keep_their_end() {
        assert_eq!(fitted("a.db 4 KiB", 200.0, 12.0), "a.db 4 KiB");
        let short = fitted("a/very/long/path/to/the/rows.db 4 KiB", 120.0, 12.0);
        assert!(short.starts_with('\u{2026}') && short.ends_with("rows.db 4 KiB"), "{short}");
    }
}
