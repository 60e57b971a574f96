//! What tells lines and bars apart besides colour: marks, dashes, hatches.

use std::collections::BTreeSet;

use super::px;
use crate::report::{Markup, STYLES};

/// Colours of hatches, `h0` to `h9` of the style sheet.
pub(super) const COLOURS: usize = 10;
/// Hatches there are: every colour with two patterns. More kinds share them in turn.
const HATCHES: usize = 2 * COLOURS;

/// Dashes of the line of run `n`; the first is solid.
const DASHES: [&str; STYLES] = ["", "7 4", "2 3", "9 3 2 3", "12 4", "4 2", "1 4", "9 3 2 3 2 3"];

/// Strokes of the hatches, in a tile of 8 x 8.
const STROKES: [&str; COLOURS] = [
    "",
    "M-2 2L2 -2M0 8L8 0M6 10L10 6",
    "M2 2h.01M6 6h.01",
    "M-2 6L2 10M0 0L8 8M6 -2L10 2",
    "M0 4H8",
    "M4 0V8",
    "M0 0L8 8M8 0L0 8",
    "M0 4H8M4 0V8",
    "M1 2H4M5 6H8",
    "M4 4h.01",
];

pub(super) fn style(n: usize) -> String {
    format!("s{}", n % STYLES)
}

pub(super) fn dashes(n: usize) -> &'static str {
    DASHES[n % STYLES]
}

fn hatch(n: usize) -> usize {
    n % HATCHES
}

/// The strokes of hatch `n`: in the second round of colours, those of the third kind after it.
fn strokes(n: usize) -> &'static str {
    STROKES[(n + 3 * (n / COLOURS)) % COLOURS]
}

/// Fill of kind `n`, defined by [`hatches`].
pub(super) fn hatch_fill(n: usize) -> String {
    format!("url(#hatch{})", hatch(n))
}

/// The hatches of all plots of a page, which must contain this once.
pub(crate) fn hatches(page: &mut Markup) {
    let hidden = "position:absolute;width:0;height:0";
    page.open(
        "svg",
        &[("style", &hidden), ("aria-hidden", &"true"), ("width", &0), ("height", &0)],
    );
    page.within("defs", &[], |defs| hatch_defs(defs, 0..HATCHES));
    page.close();
}

/// The patterns of some hatches, each once.
pub(super) fn hatch_defs(page: &mut Markup, kinds: impl IntoIterator<Item = usize>) {
    let kinds: BTreeSet<usize> = kinds.into_iter().map(hatch).collect();
    for n in kinds {
        let units = "userSpaceOnUse";
        page.open(
            "pattern",
            &[
                ("id", &format!("hatch{n}")),
                ("patternUnits", &units),
                ("width", &8),
                ("height", &8),
            ],
        );
        let colour = format!("h{}", n % COLOURS);
        page.leaf("rect", &[("class", &colour), ("width", &8), ("height", &8)]);
        if !strokes(n).is_empty() {
            page.leaf("path", &[("class", &"hatch"), ("d", &strokes(n))]);
        }
        page.close();
    }
}

/// The mark of line `n` at a point.
pub(super) fn mark(svg: &mut Markup, n: usize, x: f64, y: f64) {
    const R: f64 = 4.0;
    let at = |dx: f64, dy: f64| format!("{} {}", px(x + dx * R), px(y + dy * R));
    let polygon = |points: &[(f64, f64)]| {
        let points: Vec<String> = points.iter().map(|&(dx, dy)| at(dx, dy)).collect();
        format!("M{}Z", points.join("L"))
    };
    let path = match n % STYLES {
        0 => {
            svg.leaf("circle", &[("class", &"mark"), ("cx", &px(x)), ("cy", &px(y)), ("r", &R)]);
            return;
        }
        1 => polygon(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
        2 => polygon(&[(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)]),
        3 => polygon(&[(0.0, -1.3), (1.1, 0.0), (0.0, 1.3), (-1.1, 0.0)]),
        4 => polygon(&[(0.0, 1.2), (1.1, -0.8), (-1.1, -0.8)]),
        5 => format!("M{}L{}M{}L{}", at(-1.1, 0.0), at(1.1, 0.0), at(0.0, -1.1), at(0.0, 1.1)),
        6 => format!("M{}L{}M{}L{}", at(-0.9, -0.9), at(0.9, 0.9), at(-0.9, 0.9), at(0.9, -0.9)),
        _ => {
            polygon(&[(-1.1, -0.5), (0.0, -1.2), (1.1, -0.5), (1.1, 0.5), (0.0, 1.2), (-1.1, 0.5)])
        }
    };
    svg.leaf("path", &[("class", &"mark"), ("d", &path)]);
}

/// A sample of line `n` for a legend.
pub fn line_swatch(page: &mut Markup, n: usize) {
    swatch(page, 34, |svg| line_sample(svg, n));
}

/// The picture of [`line_swatch`].
pub(super) fn line_sample(svg: &mut Markup, n: usize) {
    svg.open("g", &[("class", &style(n))]);
    svg.leaf("path", &[("class", &"line"), ("stroke-dasharray", &dashes(n)), ("d", &"M0 8H34")]);
    mark(svg, n, 17.0, 8.0);
    svg.close();
}

/// A sample of hatch `n` for a legend.
pub fn hatch_swatch(page: &mut Markup, n: usize) {
    swatch(page, 22, |svg| hatch_sample(svg, n));
}

/// The picture of [`hatch_swatch`].
pub(super) fn hatch_sample(svg: &mut Markup, n: usize) {
    svg.leaf(
        "rect",
        &[
            ("class", &"bar"),
            ("fill", &hatch_fill(n)),
            ("x", &1),
            ("y", &2),
            ("width", &20),
            ("height", &12),
        ],
    );
}

/// A sample of a published number for a legend: the range, and the exact number.
pub fn outline_swatch(page: &mut Markup) {
    swatch(page, 44, outline_sample);
}

/// The picture of [`outline_swatch`], 44 wide and 16 high.
pub(super) fn outline_sample(svg: &mut Markup) {
    svg.leaf("path", &[("class", &"published"), ("d", &"M1 2h18v12h-18ZM25 8h18")]);
    svg.leaf("path", &[("class", &"published-mark"), ("d", &"M30 8l4 -4l4 4l-4 4Z")]);
}

fn swatch(page: &mut Markup, width: u32, content: impl FnOnce(&mut Markup)) {
    let view = format!("0 0 {width} 16");
    page.within(
        "svg",
        &[
            ("class", &"swatch"),
            ("aria-hidden", &"true"),
            ("width", &width),
            ("height", &16),
            ("viewBox", &view),
        ],
        content,
    );
}

#[cfg(test)]
mod tests {
    use super::{COLOURS, HATCHES, strokes};

    #[test]
    fn no_two_hatches_are_alike() {
        let all: std::collections::BTreeSet<_> =
            (0..HATCHES).map(|n| (n % COLOURS, strokes(n))).collect();
        assert_eq!(all.len(), HATCHES);
    }
}
