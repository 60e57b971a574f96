//! Flash traffic by cause: a stacked bar per run and a table of the numbers.

use onefold_units::convert::float;

use super::figures::{FULL, greatest, nothing, section};
use super::markup::Markup;
use super::plot::{Axis, Segment, StackedBar, StackedPlot, hatch_swatch};
use super::sections::table_class;
use crate::result::{RunResult, count, percent, share, si, significant};

/// Pages programmed by cause: a stacked bar per run and a table.
pub(super) fn flash(page: &mut Markup, runs: &[RunResult], labels: &[String]) {
    let causes = crate::result::causes(runs);
    // Per page written, runs of different length can be compared; without writes only pages can.
    let relative = runs.iter().all(|run| run.host.write_pages > 0);
    let note = if relative {
        "Flash pages programmed per page the host wrote, by cause. The length of a bar is the \
         write amplification (WAF); every programmed page has exactly one cause."
    } else {
        "Flash pages programmed, by cause. Every programmed page has exactly one cause."
    };
    section(page, "Flash traffic by cause", note, |page| {
        if causes.is_empty() {
            nothing(page, "No page was programmed.");
            return;
        }
        cause_legend(page, &causes);
        let bars: Vec<StackedBar> = runs
            .iter()
            .zip(labels)
            .map(|(run, label)| stacked_bar(run, label, &causes, relative))
            .collect();
        let length = |bar: &StackedBar| bar.segments.iter().map(|s| s.length).sum::<f64>();
        let title = if relative { "pages programmed / page written" } else { "pages programmed" };
        let plot = StackedPlot {
            title: "Flash pages programmed by cause".to_owned(),
            width: FULL,
            x: Axis::number(title, greatest(bars.iter().map(length))),
            bars,
        };
        plot.draw(page);
        cause_table(page, runs, labels, &causes);
    });
}

fn cause_legend(page: &mut Markup, causes: &[String]) {
    page.within("ul", &[("class", &"legend")], |list| {
        for cause in causes {
            list.within("li", &[], |item| {
                hatch_swatch(item, hatch_of(cause));
                item.element("span", &[], cause);
            });
        }
    });
}

/// The hatch of a cause: the same in every report, whatever causes occur.
#[must_use]
pub fn hatch_of(cause: &str) -> usize {
    let known = onefold_units::Cause::ALL;
    known.iter().position(|known| known.name() == cause).unwrap_or(known.len() - 1)
}

fn stacked_bar(run: &RunResult, label: &str, causes: &[String], relative: bool) -> StackedBar {
    let programmed = &run.flash.program_pages;
    let all = float(programmed.total());
    let unit = if relative { float(run.host.write_pages) } else { 1.0 };
    let segment = |cause: &String| {
        let pages = programmed.of(cause);
        Segment {
            label: cause.clone(),
            hatch: hatch_of(cause),
            length: share(float(pages), unit),
            tip: format!("{cause}: {} pages ({})", count(pages), percent(share(float(pages), all))),
        }
    };
    let waf = if run.host.write_pages > 0 {
        format!("WAF {}, ", significant(run.waf, 4))
    } else {
        String::new()
    };
    StackedBar {
        label: label.to_owned(),
        note: format!("{waf}{} pages", si(all)),
        segments: causes.iter().map(segment).collect(),
    }
}

fn cause_table(page: &mut Markup, runs: &[RunResult], labels: &[String], causes: &[String]) {
    let class = "scroll";
    page.open("div", &[("class", &class)]);
    page.open("table", &[("class", &table_class(runs.len()))]);
    page.within("thead", &[], |head| {
        head.within("tr", &[], |row| {
            row.element("th", &[("scope", &"col")], "pages programmed");
            for label in labels {
                row.element("th", &[("scope", &"col"), ("class", &"number")], label);
            }
        });
    });
    page.within("tbody", &[], |body| {
        for cause in causes {
            let cell = |run: &RunResult| {
                let pages = run.flash.program_pages.of(cause);
                let of_all = share(float(pages), float(run.flash.program_pages.total()));
                (count(pages), one_decimal(of_all))
            };
            cause_row(body, cause, runs.iter().map(cell));
        }
        let sum = |run: &RunResult| (count(run.flash.program_pages.total()), String::new());
        cause_row(body, "total", runs.iter().map(sum));
    });
    page.close();
    page.close();
}

/// A share in a column of shares: all with the same digits.
fn one_decimal(share: f64) -> String {
    if share > 0.0 && share < 0.0005 {
        return "< 0.1 %".to_owned();
    }
    format!("{:.1} %", share * 100.0)
}

fn cause_row(body: &mut Markup, name: &str, cells: impl Iterator<Item = (String, String)>) {
    let class = if name == "total" { "total" } else { "cause" };
    body.within("tr", &[("class", &class)], |row| {
        row.element("th", &[("scope", &"row")], name);
        for (pages, share) in cells {
            row.within("td", &[("class", &"number")], |cell| {
                cell.text(&pages);
                cell.element("span", &[("class", &"share")], &share);
            });
        }
    });
}
