//! The checks, one module each. A check is a function from the tree to problems, so that its tests
//! feed it a bad tree of three lines.

mod arrows;
mod circles;
mod fences;
mod glossary;
mod hygiene;
mod lengths;
mod links;
mod modules;
mod scan;
mod tree;

use std::fmt::{self, Write as _};
use std::io;
use std::path::Path;

use self::tree::Tree;

/// The sans-I/O core: the crates that clocks, files, threads and hash order must not enter.
const CORE: [&str; 11] = [
    "units", "format", "nand", "buffer", "ftl", "ssd", "volume", "modes", "zoned", "journal",
    "trace",
];

/// What to print, and whether it is good news.
#[derive(Debug)]
pub(crate) struct Report {
    /// Problems, then a summary.
    pub(crate) text: String,
    /// True if there was no problem.
    pub(crate) clean: bool,
}

/// One finding: where, what is wrong, what to do.
#[derive(Debug, PartialEq, Eq)]
struct Problem {
    path: String,
    line: usize,
    text: String,
}

impl Problem {
    /// A finding about a whole file.
    fn in_file(path: &str, text: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line: 0, text: text.into() }
    }

    /// A finding on one line, counted from 1.
    fn on_line(path: &str, line: usize, text: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, text: text.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            write!(f, "{}: {}", self.path, self.text)
        } else {
            write!(f, "{}:{}: {}", self.path, self.line, self.text)
        }
    }
}

/// A check of the whole tree.
type Check = fn(&Tree) -> Vec<Problem>;

/// Checks the tree at `root`.
pub(crate) fn run(root: &Path) -> io::Result<Report> {
    let tree = Tree::load(root)?;
    let checks: [(&str, Check); 12] = [
        ("arrows", arrows::check),
        ("circles", circles::check),
        ("crate-root attributes", fences::check_attributes),
        ("fences", fences::check_clippy),
        ("glossary", glossary::check),
        ("ASCII", hygiene::check_ascii),
        ("markers", hygiene::check_markers),
        ("unsafe", hygiene::check_unsafe),
        ("machine paths", hygiene::check_machine_paths),
        ("lengths", lengths::check),
        ("links", links::check),
        ("dependency reasons", arrows::check_reasons),
    ];
    let mut text = String::new();
    let mut problems = 0;
    for (name, check) in checks {
        for problem in check(&tree) {
            problems += 1;
            append(&mut text, format_args!("{name}: {problem}"));
        }
    }
    if problems == 0 {
        append(&mut text, format_args!("tidy: {} files, no problem", tree.len()));
    } else {
        append(&mut text, format_args!("tidy: {} files, {problems} problems", tree.len()));
    }
    Ok(Report { text, clean: problems == 0 })
}

fn append(text: &mut String, line: fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_names_file_and_line() {
        assert_eq!(Problem::on_line("a.rs", 7, "bad").to_string(), "a.rs:7: bad");
        assert_eq!(Problem::in_file("a.rs", "bad").to_string(), "a.rs: bad");
    }

    #[test]
    fn this_repository_can_be_loaded_and_is_not_empty() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let tree = Tree::load(root).unwrap();
        assert!(tree.text("Cargo.toml").is_some());
        assert!(tree.files().all(|(path, _)| !path.starts_with("target/")));
    }
}
