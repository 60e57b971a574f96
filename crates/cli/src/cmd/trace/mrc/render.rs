//! A miss-ratio curve as a table, as JSON and as a picture.

use std::fmt::Write as _;

use onefold_buffer::Access;
use onefold_buffer::offline::{MissRatios, Sampling};
use onefold_sim::report::plot::{Axis, Line, LinePlot, line_swatch};
use onefold_sim::report::{Markup, html};
use onefold_sim::result::{bytes, count, significant};
use onefold_units::convert::float;
use serde_json::{Value, json};

use super::Made;

/// Width and height of the picture in pixels.
const SIZE: (f64, f64) = (1040.0, 420.0);

/// A line of the picture: its name, and its ratio at a size.
type Kind = (&'static str, fn(&MissRatios) -> Option<f64>);

/// The lines of the picture and the columns of the table.
const KINDS: [Kind; 3] =
    [("reads", |at| at.reads), ("writes", |at| at.writes), ("all", |at| at.all)];

/// What the curve is of, in words.
fn facts(made: &Made<'_>) -> String {
    let curve = made.curve;
    let how = match made.sampling {
        Sampling::All => "exact".to_owned(),
        Sampling::Rate(_) | Sampling::Pages(_) => format!(
            "estimated from {} pages, a share of {} (seed {})",
            count(curve.sampled_pages()),
            significant(curve.rate(), 3),
            made.seed
        ),
    };
    let about = if made.sampling == Sampling::All { "" } else { "about " };
    format!(
        "LRU, pages of {}, {how}: {} page reads and {} page writes of {about}{} pages ({about}{})",
        bytes(made.page),
        count(curve.accesses(Access::Read)),
        count(curve.accesses(Access::Write)),
        count(curve.distinct_pages()),
        bytes(curve.distinct_pages().saturating_mul(made.page)),
    )
}

fn shown(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{:.2} %", ratio * 100.0))
}

/// One line per size.
pub(super) fn table(made: &Made<'_>) -> String {
    let mut text = format!("{}\n\n{:>12}", facts(made), "buffer");
    for (name, _) in KINDS {
        // Writing to a string cannot fail.
        let _ = write!(text, "{:>14}", format!("{name} miss"));
    }
    text.push('\n');
    for at in &made.points {
        let _ = write!(text, "{:>12}", bytes(at.pages.saturating_mul(made.page)));
        for (_, of) in KINDS {
            let _ = write!(text, "{:>14}", shown(of(at)));
        }
        text.push('\n');
    }
    text
}

/// The same numbers for programs.
pub(super) fn json(made: &Made<'_>) -> String {
    let (curve, meta) = (made.curve, made.meta);
    let sampling = match made.sampling {
        Sampling::All => "all",
        Sampling::Rate(_) => "rate",
        Sampling::Pages(_) => "pages",
    };
    let point = |at: &MissRatios| {
        json!({
            "bytes": at.pages.saturating_mul(made.page),
            "read_miss_ratio": at.reads,
            "write_miss_ratio": at.writes,
            "miss_ratio": at.all,
        })
    };
    let value = json!({
        "schema": "onefold.trace_mrc/1",
        "path": meta.path.display().to_string(),
        "format": meta.spec.format.name(),
        "sha256": meta.sha256,
        "policy": "lru",
        "page_bytes": made.page,
        "sampling": sampling,
        "sample_rate": curve.rate(),
        "sampled_pages": curve.sampled_pages(),
        "seed": made.seed,
        "read_pages": curve.accesses(Access::Read),
        "write_pages": curve.accesses(Access::Write),
        "distinct_pages": curve.distinct_pages(),
        "points": made.points.iter().map(point).collect::<Value>(),
        "warnings": meta.warnings,
    });
    format!("{value:#}\n")
}

/// A page with the curve and its numbers.
pub(super) fn page(made: &Made<'_>) -> String {
    let name = made.meta.path.display().to_string();
    html(&format!("Miss ratios of {name}"), |page| {
        page.within("header", &[], |head| {
            head.element("p", &[("class", &"kicker")], "Onefold miss-ratio curve");
            head.element("h1", &[], &name);
            head.element("p", &[("class", &"note")], &facts(made));
        });
        page.within("section", &[("class", &"figure")], |page| {
            legend(page);
            picture(page, made);
            numbers(page, made);
        });
    })
}

fn legend(page: &mut Markup) {
    page.within("ul", &[("class", &"legend")], |list| {
        for (style, (name, _)) in KINDS.iter().enumerate() {
            list.within("li", &[], |item| {
                line_swatch(item, style);
                item.element("span", &[], name);
            });
        }
    });
}

fn picture(page: &mut Markup, made: &Made<'_>) {
    let size = |at: &MissRatios| at.pages.saturating_mul(made.page);
    let ends = (made.points.first().map_or(1, size), made.points.last().map_or(2, size));
    let line = |(style, (name, of)): (usize, &Kind)| Line {
        label: (*name).to_owned(),
        style,
        points: made.points.iter().map(|at| (float(size(at)), of(at))).collect(),
    };
    let plot = LinePlot {
        title: "Miss ratio by size of an LRU buffer".to_owned(),
        size: SIZE,
        x: Axis::size_log("size of the buffer", ends.0, ends.1),
        y: Axis::share("misses", 1.0),
        lines: KINDS.iter().enumerate().map(line).collect(),
    };
    plot.draw(page, |size, ratio| {
        format!(
            "{} misses at {}",
            shown(Some(ratio)),
            bytes(onefold_units::convert::floor_u64(size))
        )
    });
}

fn numbers(page: &mut Markup, made: &Made<'_>) {
    page.within("table", &[], |table| {
        table.within("tr", &[], |row| {
            row.element("th", &[], "buffer");
            for (name, _) in KINDS {
                row.element("th", &[], &format!("{name} miss"));
            }
        });
        for at in &made.points {
            table.within("tr", &[], |row| {
                row.element("td", &[], &bytes(at.pages.saturating_mul(made.page)));
                for (_, of) in KINDS {
                    row.element("td", &[], &shown(of(at)));
                }
            });
        }
    });
}
