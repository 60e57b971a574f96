//! The fence around the core: crate-root attributes and one clippy.toml, word for word.

use super::tree::Tree;
use super::{CORE, Problem};

/// Attributes at the root of every core crate.
const ATTRIBUTES: [&str; 2] = ["#![forbid(unsafe_code)]", "#![deny(clippy::as_conversions)]"];

/// Attributes that only `format` has: stored integers are little-endian.
const FORMAT_LINTS: [&str; 2] = ["clippy::host_endian_bytes", "clippy::big_endian_bytes"];

/// What the fence keeps out. The list stands here too, or one edit could open all seven files alike.
const BANNED: [&str; 11] = [
    "std::thread::spawn",
    "std::thread::sleep",
    "std::env::var",
    "usize::to_le_bytes",
    "std::time::Instant",
    "std::time::SystemTime",
    "std::fs::File",
    "std::net::TcpStream",
    "std::sync::Mutex",
    "std::collections::HashMap",
    "std::collections::HashSet",
];

/// Every core crate forbids `unsafe` and silent conversions at its root.
pub(super) fn check_attributes(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for name in CORE {
        let path = format!("crates/{name}/src/lib.rs");
        let Some(text) = tree.text(&path) else {
            problems.push(Problem::in_file(&path, "a core crate has its root here"));
            continue;
        };
        let inner: Vec<&str> = text.lines().filter(|line| line.starts_with("#![")).collect();
        for attribute in ATTRIBUTES {
            if !inner.contains(&attribute) {
                problems.push(Problem::in_file(&path, format!("must say {attribute}")));
            }
        }
        if name == "format" {
            let denied = attribute_text(text, "#![deny(");
            for lint in FORMAT_LINTS {
                if !denied.contains(lint) {
                    problems.push(Problem::in_file(&path, format!("must say #![deny({lint})]")));
                }
            }
        }
    }
    problems
}

/// The text inside every attribute that starts with `opening`, over several lines if need be.
fn attribute_text(text: &str, opening: &str) -> String {
    text.split(opening).skip(1).filter_map(|rest| rest.split(")]").next()).collect()
}

/// The seven fences are equal, complete, and start with the root file; `sim` may have threads.
pub(super) fn check_clippy(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    let reference_path = format!("crates/{}/clippy.toml", CORE[0]);
    let Some(reference) = tree.text(&reference_path) else {
        return vec![Problem::in_file(&reference_path, "the fence of the core is missing")];
    };
    for banned in BANNED {
        if !reference.lines().any(|line| bans(line, banned)) {
            problems.push(Problem::in_file(&reference_path, format!("must ban {banned}")));
        }
    }
    if !tree.text("clippy.toml").is_some_and(|root| reference.starts_with(root)) {
        problems.push(Problem::in_file(
            "clippy.toml",
            format!("must be the beginning of {reference_path}: the nearest file replaces it"),
        ));
    }
    for name in &CORE[1..] {
        expect_equal(tree, &format!("crates/{name}/clippy.toml"), reference, &mut problems);
    }
    let is_thread = |line: &&str| line.contains("path = \"std::thread::");
    let sim: String = reference.split_inclusive('\n').filter(|line| !is_thread(line)).collect();
    if tree.text("crates/sim/Cargo.toml").is_some() {
        expect_equal(tree, "crates/sim/clippy.toml", &sim, &mut problems);
    }
    problems
}

fn bans(line: &str, path: &str) -> bool {
    let line = line.trim_start();
    !line.starts_with('#') && line.contains(&format!("path = \"{path}\""))
}

fn expect_equal(tree: &Tree, path: &str, expected: &str, problems: &mut Vec<Problem>) {
    let Some(found) = tree.text(path) else {
        problems.push(Problem::in_file(path, "the fence is missing"));
        return;
    };
    if found == expected {
        return;
    }
    let same = found.lines().zip(expected.lines()).take_while(|(a, b)| a == b).count();
    let line = expected.lines().nth(same).unwrap_or("the end of the file");
    problems.push(Problem::on_line(
        path,
        same + 1,
        format!("differs from crates/{}/clippy.toml, expected: {}", CORE[0], line.trim()),
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "allow-unwrap-in-tests = true\n";

    fn fence() -> String {
        let bans = BANNED.map(|path| format!("  {{ path = \"{path}\", reason = \"r\" }},\n"));
        format!("{ROOT}banned = [\n{}]\n", bans.concat())
    }

    /// A tree of right fences in which one file is replaced.
    fn with(path: &str, text: &str) -> Vec<Problem> {
        let core = fence();
        let sim: String =
            core.split_inclusive('\n').filter(|line| !line.contains("std::thread")).collect();
        let mut files: Vec<(String, String)> =
            CORE.map(|name| (format!("crates/{name}/clippy.toml"), core.clone())).into();
        files.push(("crates/sim/clippy.toml".to_owned(), sim));
        files.push(("crates/sim/Cargo.toml".to_owned(), String::new()));
        files.push(("clippy.toml".to_owned(), ROOT.to_owned()));
        for file in files.iter_mut().filter(|file| file.0 == path) {
            file.1 = text.to_owned();
        }
        let borrowed: Vec<(&str, &str)> =
            files.iter().map(|(p, t)| (p.as_str(), t.as_str())).collect();
        check_clippy(&Tree::of(&borrowed))
    }

    #[test]
    fn equal_fences_pass() {
        assert_eq!(with("none", ""), []);
    }

    #[test]
    fn one_opened_fence_is_found_with_its_line() {
        let open = fence().replace("std::time::Instant", "std::time::Never");
        let problems = with("crates/ftl/clippy.toml", &open);
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].line, 7);
    }

    #[test]
    fn a_hole_in_the_reference_is_found() {
        let open = fence().replace("  { path = \"std::fs::File\"", "# { path = \"std::fs::File\"");
        assert!(
            with("crates/units/clippy.toml", &open)
                .iter()
                .any(|p| p.text.contains("std::fs::File"))
        );
    }

    #[test]
    fn sim_differs_by_the_thread_lines_only() {
        assert_eq!(with("crates/sim/clippy.toml", &fence()).len(), 1);
    }

    #[test]
    fn the_root_file_is_the_beginning_of_each() {
        assert_eq!(with("clippy.toml", "other = 1\n").len(), 1);
    }

    fn roots(format: &str, other: &str) -> Vec<Problem> {
        let paths = CORE.map(|name| format!("crates/{name}/src/lib.rs"));
        let files: Vec<(&str, &str)> = paths
            .iter()
            .map(|p| (p.as_str(), if p.contains("/format/") { format } else { other }))
            .collect();
        check_attributes(&Tree::of(&files))
    }

    #[test]
    fn crate_roots_need_their_attributes() {
        let good = "//! Doc.\n#![forbid(unsafe_code)]\n#![deny(clippy::as_conversions)]\n";
        let both = format!(
            "{good}#![deny(\n    clippy::host_endian_bytes,\n    clippy::big_endian_bytes\n)]\n"
        );
        assert_eq!(roots(&both, good), []);
        assert_eq!(roots(good, good).len(), 2);
        let others = CORE.len() - 1;
        assert_eq!(roots(&both, &good.replace("forbid(u", "warn(u")).len(), others);
        let commented = good.replace("#![deny", "// #![deny");
        assert_eq!(roots(&both, &commented).len(), others);
    }

    #[test]
    fn a_missing_root_is_found() {
        assert_eq!(check_attributes(&Tree::of(&[])).len(), CORE.len());
    }
}
