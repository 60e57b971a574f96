//! Plots with a legend as one SVG file: a picture in a page that has no style sheet of ours.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::frame::text;
use super::marks::{COLOURS, hatch_defs, hatch_sample, line_sample, outline_sample};
use super::{GroupedPlot, LinePlot, px, text_width};
use crate::report::page::STYLE;
use crate::report::{Markup, STYLES};

/// Space around the content, in pixels.
const MARGIN: f64 = 12.0;
/// Height of the title, of a line of the legend, and of the title of a panel.
const TITLE: f64 = 24.0;
const LINE: f64 = 22.0;
const PANEL_TITLE: f64 = 20.0;
/// Space between a sample in the legend and its name, and between entries.
const SPACE: f64 = 8.0;
const GAP: f64 = 16.0;

/// What an entry of the legend is a sample of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// The bars of a series.
    Hatch(usize),
    /// The line of a series.
    Line(usize),
    /// Published numbers.
    Outline,
}

/// One plot of a sheet.
#[derive(Clone, Debug, PartialEq)]
pub enum Panel {
    /// Bars in groups.
    Bars(GroupedPlot),
    /// Lines.
    Lines(LinePlot),
}

/// Plots below a title and a legend. A plot stands beside the one before where there is room.
#[derive(Clone, Debug, PartialEq)]
pub struct Sheet {
    /// Title, also for readers who do not see the picture.
    pub title: String,
    /// Width in pixels.
    pub width: f64,
    /// Entries of the legend.
    pub legend: Vec<(Key, String)>,
    /// Titles of plots, and the plots.
    pub panels: Vec<(String, Panel)>,
}

impl Panel {
    const fn size(&self) -> (f64, f64) {
        match self {
            Self::Bars(plot) => plot.size,
            Self::Lines(plot) => plot.size,
        }
    }

    fn draw(&self, svg: &mut Markup) {
        match self {
            Self::Bars(plot) => plot.draw_short(svg),
            Self::Lines(plot) => plot.draw_short(svg),
        }
    }
}

impl Sheet {
    /// The file. The same numbers make the same text.
    #[must_use]
    pub fn svg(&self) -> String {
        let legend = self.legend_places();
        let top = MARGIN + TITLE + legend.last().map_or(0.0, |at| at.1 + LINE) + 4.0;
        let places = self.panel_places(top);
        let bottom =
            |(panel, at): (&(String, Panel), &(f64, f64))| at.1 + PANEL_TITLE + panel.1.size().1;
        let height = self.panels.iter().zip(&places).map(bottom).fold(top, f64::max) + MARGIN;
        let mut svg = Markup::new();
        let view = format!("0 0 {} {}", px(self.width), px(height));
        svg.open(
            "svg",
            &[
                ("xmlns", &"http://www.w3.org/2000/svg"),
                ("role", &"img"),
                ("aria-label", &self.title),
                ("viewBox", &view),
                ("width", &px(self.width)),
                ("height", &px(height)),
            ],
        );
        svg.element("style", &[], &self.style());
        svg.within("defs", &[], |defs| hatch_defs(defs, self.hatches()));
        let (width, height) = (px(self.width), px(height));
        svg.leaf("rect", &[("class", &"back"), ("width", &width), ("height", &height), ("rx", &6)]);
        text(&mut svg, "strong", (MARGIN, MARGIN + 14.0), &self.title);
        for ((key, name), (x, y)) in self.legend.iter().zip(legend) {
            let at = (MARGIN + x, MARGIN + TITLE + y);
            moved(&mut svg, at, |sample| key.draw(sample));
            text(&mut svg, "tick", (at.0 + key.width() + SPACE, at.1 + 12.0), name);
        }
        for ((title, panel), (x, y)) in self.panels.iter().zip(places) {
            if !title.is_empty() {
                text(&mut svg, "strong", (x, y + 14.0), title);
            }
            moved(&mut svg, (x, y + title_height(title)), |svg| panel.draw(svg));
        }
        svg.finish()
    }

    /// Where the entries of the legend go, from its corner.
    fn legend_places(&self) -> Vec<(f64, f64)> {
        let widths = self
            .legend
            .iter()
            .map(|(key, name)| (key.width() + SPACE + text_width(name, 12.0) + GAP, LINE));
        rows(widths, self.width - 2.0 * MARGIN)
    }

    fn panel_places(&self, top: f64) -> Vec<(f64, f64)> {
        let sizes = self.panels.iter().map(|(_, panel)| panel.size());
        let sizes = sizes
            .zip(&self.panels)
            .map(|((width, height), (title, _))| (width, height + title_height(title)));
        let places = rows(sizes, self.width - 2.0 * MARGIN);
        places.into_iter().map(|(x, y)| (x + MARGIN, y + top)).collect()
    }

    /// The series of bars.
    fn hatches(&self) -> BTreeSet<usize> {
        let of = |key: &(Key, String)| match key.0 {
            Key::Hatch(n) => Some(n),
            Key::Line(_) | Key::Outline => None,
        };
        self.legend.iter().filter_map(of).collect()
    }

    /// Sizes, then the colours of both settings of the reader.
    fn style(&self) -> String {
        let (light, dark) = (self.colours(false), self.colours(true));
        format!("{PLAIN}{light}@media (prefers-color-scheme:dark){{{dark}}}")
    }

    /// The rules that set colours, of what the sheet shows.
    fn colours(&self, dark: bool) -> String {
        let colour = |name: &str| colour(name, dark);
        let (paper, ink, soft) = (colour("paper"), colour("ink"), colour("soft"));
        let (grid, axis, hatch) = (colour("grid"), colour("axis"), colour("hatch"));
        let mut out = format!(
            ".back{{fill:{paper}}}text{{fill:{ink}}}.title,.tick{{fill:{soft}}}.grid{{stroke:{grid}}}\
             .axis{{stroke:{axis}}}.reference,.published{{stroke:{ink}}}\
             .published-mark{{fill:{paper};stroke:{ink}}}.bar{{stroke:{paper}}}.hatch{{stroke:{hatch}}}"
        );
        // Writing to a string cannot fail.
        for (key, _) in &self.legend {
            let _ = match *key {
                Key::Hatch(n) => {
                    let n = n % COLOURS;
                    write!(out, ".h{n}{{fill:{}}}", colour(&format!("h{n}")))
                }
                Key::Line(n) => {
                    let n = n % STYLES;
                    let (name, colour) = (format!("s{n}"), colour(&format!("s{n}")));
                    write!(out, ".{name} *{{stroke:{colour}}}.{name} .mark{{fill:{colour}}}")
                }
                Key::Outline => Ok(()),
            };
        }
        out
    }
}

impl Key {
    /// Width of the sample.
    const fn width(self) -> f64 {
        match self {
            Self::Hatch(_) => 22.0,
            Self::Line(_) => 34.0,
            Self::Outline => 44.0,
        }
    }

    fn draw(self, svg: &mut Markup) {
        match self {
            Self::Hatch(n) => hatch_sample(svg, n),
            Self::Line(n) => line_sample(svg, n),
            Self::Outline => outline_sample(svg),
        }
    }
}

/// What does not depend on the setting of the reader.
const PLAIN: &str = "text{font:12px system-ui,\"Segoe UI\",\"Liberation Sans\",\"DejaVu Sans\",sans-serif}\
    .middle{text-anchor:middle}.end{text-anchor:end}.strong{font-weight:600}\
    .published{fill:none;stroke-width:1.5;stroke-dasharray:3 2}.published-mark{stroke-width:1.3}\
    .reference{stroke-dasharray:1 3}.hatch{fill:none;stroke-width:1.5;stroke-linecap:round}\
    .line{fill:none;stroke-width:2;stroke-linejoin:round}.mark{stroke-width:1.6}";

/// A colour of the style sheet of reports.
fn colour(name: &str, dark: bool) -> &'static str {
    let (light_part, dark_part) =
        STYLE.split_once("@media (prefers-color-scheme: dark)").unwrap_or((STYLE, STYLE));
    let part = if dark { dark_part } else { light_part };
    let value = part.split_once(&format!("--{name}: ")).map(|(_, rest)| rest);
    value.and_then(|rest| rest.split(';').next()).unwrap_or("#888888")
}

/// Height of the title of a panel.
const fn title_height(title: &str) -> f64 {
    if title.is_empty() { 0.0 } else { PANEL_TITLE }
}

/// Places from left to right, and in a new row where there is no room.
fn rows(sizes: impl Iterator<Item = (f64, f64)>, width: f64) -> Vec<(f64, f64)> {
    let (mut x, mut y, mut tallest) = (0.0, 0.0, 0.0_f64);
    let mut places = Vec::new();
    for (wide, tall) in sizes {
        if x > 0.0 && x + wide > width + 0.5 {
            (x, y, tallest) = (0.0, y + tallest, 0.0);
        }
        places.push((x, y));
        (x, tallest) = (x + wide, tallest.max(tall));
    }
    places
}

fn moved(svg: &mut Markup, (x, y): (f64, f64), content: impl FnOnce(&mut Markup)) {
    let place = format!("translate({} {})", px(x), px(y));
    svg.within("g", &[("transform", &place)], content);
}

#[cfg(test)]
mod tests {
    use super::{Key, Panel, Sheet, colour, rows};
    use crate::report::plot::{Axis, Group, GroupedPlot, Level, Outline};

    #[test]
    fn the_style_sheet_has_both_settings() {
        assert_eq!((colour("paper", false), colour("paper", true)), ("#ffffff", "#14181e"));
        for name in ["ink", "soft", "grid", "axis", "hatch", "h9", "s7"] {
            assert_ne!(colour(name, false), colour(name, true), "{name}");
        }
    }

    #[test]
    fn rows_break_where_there_is_no_room() {
        let sizes = [(60.0, 10.0), (40.0, 30.0), (1.0, 5.0), (200.0, 5.0)];
        let places = rows(sizes.into_iter(), 100.0);
        assert_eq!(places, [(0.0, 0.0), (60.0, 0.0), (0.0, 30.0), (0.0, 35.0)]);
    }

    #[test]
    fn a_sheet_is_one_well_formed_file() {
        let level = |series| Some(Level { series, height: 0.5, tip: String::new() });
        let outline = Outline { from: Some(0.4), to: None, tip: String::new() };
        let group = Group {
            label: "a<b".to_owned(),
            bars: vec![level(0), level(1)],
            outlines: vec![Some(outline), None],
            levels: Vec::new(),
        };
        let plot = GroupedPlot {
            title: "hits".to_owned(),
            size: (400.0, 200.0),
            x_title: "size".to_owned(),
            y: Axis::share("hit ratio", 1.0),
            reference: None,
            groups: vec![group],
        };
        let legend = [(Key::Hatch(0), "A"), (Key::Hatch(1), "B"), (Key::Outline, "the paper")];
        let sheet = Sheet {
            title: "Figure <1>".to_owned(),
            width: 760.0,
            legend: legend.map(|(key, name)| (key, name.to_owned())).to_vec(),
            panels: vec![("W1".to_owned(), Panel::Bars(plot))],
        };
        let svg = sheet.svg();
        let document = roxmltree::Document::parse(&svg).unwrap();
        assert_eq!(document.root_element().attribute("aria-label"), Some("Figure <1>"));
        let count = |text: &str| svg.matches(text).count();
        // The bars of a series are one path, and its hatch is defined once.
        assert_eq!((count("class=\"bar\""), count("<pattern")), (4, 2));
        assert_eq!((count("class=\"published\""), count("<title")), (2, 0));
        assert_eq!(svg, sheet.svg());
    }
}
