//! The frame of the report: head, style sheet, shared patterns, footer.

use super::markup::Markup;
use super::plot;
use crate::result::RunResult;

pub(super) const STYLE: &str = include_str!("style.css");

/// What the head of each page says, so that an older report can be told from other pages.
pub const GENERATOR: &str = "<meta name=\"generator\" content=\"Onefold\"";

/// Title of a report on `runs`.
pub(super) fn title(runs: &[RunResult]) -> String {
    match runs {
        [] => "Onefold report".to_owned(),
        [run] => format!("{} on {}", run.source_name(), run.device_name()),
        _ => format!("Onefold: {} runs compared", runs.len()),
    }
}

/// A complete page around `content`, with the style sheet and the hatches of the plots.
pub fn html(title: &str, content: impl FnOnce(&mut Markup)) -> String {
    let mut page = Markup::new();
    page.trusted("<!DOCTYPE html>\n");
    page.open("html", &[("lang", &"en")]);
    page.within("head", &[], |head| {
        head.leaf("meta", &[("charset", &"utf-8")]);
        head.leaf("meta", &[("name", &"generator"), ("content", &"Onefold")]);
        let viewport = "width=device-width, initial-scale=1";
        head.leaf("meta", &[("name", &"viewport"), ("content", &viewport)]);
        head.leaf("meta", &[("name", &"color-scheme"), ("content", &"light dark")]);
        head.element("title", &[], title);
        head.within("style", &[], |style| style.trusted(STYLE));
    });
    page.open("body", &[]);
    plot::hatches(&mut page);
    page.within("main", &[], content);
    page.finish()
}
