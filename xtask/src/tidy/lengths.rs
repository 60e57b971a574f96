//! Length of files and functions as a ratchet: it may turn down, and up only on request.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::scan::measure;
use super::tree::Tree;
use super::{Problem, Ratchet};

/// The committed maxima.
pub(super) const FILE: &str = "xtask/lengths.txt";

/// Up to here nobody minds (docs: the median of admired projects), so the ratchet rests here and
/// ordinary work on small files does not move it.
const RESTING: Limits = Limits { file: 400, function: 60 };

const HEADER: &str = "\
# Longest file and longest function of each crate, in lines of product code (tests not counted).
# Longer fails `cargo xtask tidy`; `tidy --bless` lowers a line, `tidy --raise` raises it.
# crate file function
";

/// Allowed or found lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limits {
    file: usize,
    function: usize,
}

/// The longest file and function of one crate, and where they are.
struct Longest {
    limits: Limits,
    file: String,
    function: String,
}

/// What the ratchet found and would write.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) problems: Vec<Problem>,
    pub(super) notes: Vec<String>,
    pub(super) rewrite: Option<String>,
}

/// Compares the tree with the committed maxima.
pub(super) fn check(tree: &Tree, ratchet: Ratchet) -> Outcome {
    let mut outcome = Outcome::default();
    let committed = parse(tree.text(FILE).unwrap_or_default(), &mut outcome.problems);
    let mut next = BTreeMap::new();
    for (name, longest) in longest(tree) {
        let allowed = committed.get(&name).copied().unwrap_or(RESTING);
        let mut kept = allowed;
        step(&mut kept.file, longest.limits.file, RESTING.file, ratchet);
        step(&mut kept.function, longest.limits.function, RESTING.function, ratchet);
        let judged = [
            (longest.limits.file, allowed.file, kept.file, &longest.file),
            (longest.limits.function, allowed.function, kept.function, &longest.function),
        ];
        for (found, allowed, kept, place) in judged {
            if found > kept {
                let text = format!(
                    "has {found} lines, {name} allows {allowed}: split it, or say why at the place \
                     and run `cargo xtask tidy --raise`"
                );
                outcome.problems.push(Problem::in_file(place, text));
            } else if kept > allowed {
                outcome.notes.push(format!("raised {name} from {allowed} to {kept}: {place}"));
            } else if kept < allowed {
                outcome.notes.push(format!("lowered {name} from {allowed} to {kept}: {place}"));
            }
        }
        next.insert(name, kept);
    }
    let text = render(&next);
    if ratchet != Ratchet::Check && tree.text(FILE) != Some(text.as_str()) {
        outcome.rewrite = Some(text);
    }
    outcome
}

/// Moves one limit in the direction that was asked for.
fn step(limit: &mut usize, found: usize, resting: usize, ratchet: Ratchet) {
    match ratchet {
        Ratchet::Check => {}
        Ratchet::Bless => *limit = (*limit).min(found.max(resting)),
        Ratchet::Raise => *limit = (*limit).max(found),
    }
}

fn longest(tree: &Tree) -> BTreeMap<String, Longest> {
    let mut crates: BTreeMap<String, Longest> = BTreeMap::new();
    for (path, text) in tree.files() {
        let Some(name) = product_source(path) else { continue };
        let measure = measure(text);
        let entry = crates.entry(name.to_owned()).or_insert_with(|| Longest {
            limits: Limits { file: 0, function: 0 },
            file: String::new(),
            function: String::new(),
        });
        if measure.lines > entry.limits.file {
            entry.limits.file = measure.lines;
            path.clone_into(&mut entry.file);
        }
        for function in measure.functions {
            if function.lines > entry.limits.function {
                entry.limits.function = function.lines;
                entry.function = format!("{path}:{}: fn {}", function.line, function.name);
            }
        }
    }
    crates
}

/// The crate a source file belongs to; `None` for tests, benches and everything else.
fn product_source(path: &str) -> Option<&str> {
    let (name, rest) = match path.strip_prefix("crates/") {
        Some(inner) => inner.split_once('/')?,
        None => path.split_once('/').filter(|(name, _)| *name == "xtask")?,
    };
    let is_test = rest.ends_with("/tests.rs") || rest.contains("/tests/");
    let is_rust = rest.rsplit_once('.').is_some_and(|(_, extension)| extension == "rs");
    (rest.starts_with("src/") && is_rust && !is_test).then_some(name)
}

fn parse(text: &str, problems: &mut Vec<Problem>) -> BTreeMap<String, Limits> {
    let mut limits = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        let fields: Vec<&str> = line.split_whitespace().collect();
        if let [name, file, function] = fields.as_slice()
            && let (Ok(file), Ok(function)) = (file.parse(), function.parse())
        {
            limits.insert((*name).to_owned(), Limits { file, function });
        } else {
            let text = format!("is `{line}`, expected `crate file-lines function-lines`");
            problems.push(Problem::on_line(FILE, number + 1, text));
        }
    }
    limits
}

fn render(limits: &BTreeMap<String, Limits>) -> String {
    let mut text = HEADER.to_owned();
    for (name, limits) in limits {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name} {} {}", limits.file, limits.function);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(committed: &str, lines: usize, ratchet: Ratchet) -> Outcome {
        let source = format!("fn f() {{\n{}}}\n", "    g();\n".repeat(lines - 2));
        check(&Tree::of(&[(FILE, committed), ("crates/ftl/src/lib.rs", &source)]), ratchet)
    }

    #[test]
    fn longer_than_committed_fails_in_file_and_function() {
        let outcome = run("ftl 500 500\n", 501, Ratchet::Check);
        assert_eq!(outcome.problems.len(), 2);
        assert!(outcome.problems[0].text.contains("501 lines, ftl allows 500"));
        assert!(outcome.problems[1].path.contains("fn f"));
        assert!(outcome.rewrite.is_none());
    }

    #[test]
    fn as_long_as_committed_passes_and_short_code_needs_no_entry() {
        assert!(run("ftl 500 500\n", 500, Ratchet::Check).problems.is_empty());
        assert!(run("", 60, Ratchet::Check).problems.is_empty());
        assert_eq!(run("", 61, Ratchet::Check).problems.len(), 1);
    }

    #[test]
    fn bless_lowers_but_never_raises() {
        let lower = run("ftl 900 900\n", 500, Ratchet::Bless);
        assert!(lower.rewrite.is_some_and(|text| text.ends_with("ftl 500 500\n")));
        let longer = run("ftl 450 450\n", 500, Ratchet::Bless);
        assert_eq!(longer.problems.len(), 2);
        assert!(longer.rewrite.is_none_or(|text| text.ends_with("ftl 450 450\n")));
    }

    #[test]
    fn bless_rests_at_the_length_nobody_minds() {
        let outcome = run("ftl 900 900\n", 10, Ratchet::Bless);
        assert!(outcome.rewrite.is_some_and(|text| text.ends_with("ftl 400 60\n")));
    }

    #[test]
    fn raise_raises_and_says_so() {
        let outcome = run("ftl 450 450\n", 500, Ratchet::Raise);
        assert!(outcome.problems.is_empty());
        assert_eq!(outcome.notes.len(), 2);
        assert!(outcome.notes[0].contains("raised ftl from 450 to 500"));
        assert!(outcome.rewrite.is_some_and(|text| text.ends_with("ftl 500 500\n")));
    }

    #[test]
    fn tests_do_not_count_and_a_broken_line_is_found() {
        assert_eq!(product_source("crates/ftl/tests/long.rs"), None);
        assert_eq!(product_source("crates/ftl/src/gc/tests.rs"), None);
        assert_eq!(product_source("crates/ftl/src/gc.rs"), Some("ftl"));
        assert_eq!(product_source("xtask/src/main.rs"), Some("xtask"));
        assert_eq!(check(&Tree::of(&[(FILE, "ftl many\n")]), Ratchet::Check).problems.len(), 1);
    }
}
