//! What stands beside the figures of the page: averages and checks.

use onefold_sim::report::Markup;

use super::value::size_name;
use super::{CheckData, HeadlineData};

/// What became of the checks that a figure names.
pub(super) fn verdicts(page: &mut Markup, checks: &[CheckData], ids: &[String]) {
    let named = || checks.iter().filter(|data| ids.contains(&data.check.id));
    if named().next().is_none() {
        return;
    }
    page.within("ul", &[("class", &"verdicts")], |list| {
        for data in named() {
            list.within("li", &[("class", &class(data))], |item| {
                item.element("strong", &[], &format!("{} {}", data.check.id, data.summary()));
                item.element("span", &[], &format!(" {} {}", data.check.text, data.check.reason));
            });
        }
    });
}

fn class(data: &CheckData) -> &'static str {
    if data.is_as_expected() { "expected" } else { "warning" }
}

/// One line per baseline, sizes across.
pub(super) fn headline(page: &mut Markup, data: &HeadlineData) {
    page.within("section", &[], |page| {
        page.element("h2", &[], &data.title());
        if !data.headline.published.is_empty() {
            let text = format!("Published: {}", data.headline.published);
            page.element("p", &[("class", &"note")], &text);
        }
        let sizes = data.sizes.iter().map(|size| size_name(*size));
        let ends = ["all", "ratio of means", "range"].map(str::to_owned);
        let head: Vec<String> =
            std::iter::once("against".to_owned()).chain(sizes).chain(ends).collect();
        let row = |versus: &super::Versus| {
            let numbers = versus.by_size.iter().chain([&versus.all]).map(super::Ratios::text);
            let first = std::iter::once(versus.baseline.clone());
            let ends = [versus.all.of_means_text(), versus.all.range_text()];
            first.chain(numbers).chain(ends).collect()
        };
        let rows: Vec<Vec<String>> = data.versus.iter().map(row).collect();
        table(page, &head, &rows);
    });
}

/// Every check with its numbers.
pub(super) fn checks(page: &mut Markup, checks: &[CheckData]) {
    page.within("section", &[], |page| {
        page.element("h2", &[], "Checks");
        for data in checks {
            page.element("h3", &[], &format!("{} {}", data.check.id, data.check.text));
            page.element("p", &[("class", &class(data))], &data.summary());
            page.element("p", &[("class", &"note")], &data.check.reason);
            let head = ["workload", "size", "", &data.title()].map(str::to_owned);
            let row = |case: &super::Case| {
                let verdict = case.verdict.name().to_owned();
                vec![
                    case.workload.clone(),
                    size_name(case.size_bytes),
                    verdict,
                    case.numbers.clone(),
                ]
            };
            let rows: Vec<Vec<String>> = data.cases.iter().map(row).collect();
            table(page, &head, &rows);
        }
    });
}

fn table(page: &mut Markup, head: &[String], rows: &[Vec<String>]) {
    page.within("div", &[("class", &"scroll")], |page| {
        page.within("table", &[("class", &"many")], |table| {
            table.within("thead", &[], |part| {
                part.within("tr", &[], |line| {
                    for name in head {
                        line.element("th", &[("scope", &"col")], name);
                    }
                });
            });
            table.within("tbody", &[], |part| {
                for row in rows {
                    part.within("tr", &[], |line| {
                        for cell in row {
                            line.element("td", &[], cell);
                        }
                    });
                }
            });
        });
    });
}
