//! Line by line: ASCII source, no marker without an issue, no path or registry of one machine.

use super::Problem;
use super::tree::Tree;

/// Source is ASCII; documents and pictures may use what they like.
pub(super) fn check_ascii(tree: &Tree) -> Vec<Problem> {
    on_lines(tree, is_source, |line| {
        let letter = line.chars().find(|letter| !letter.is_ascii())?;
        Some(format!("has `{letter}` (U+{:04X}); source is ASCII", u32::from(letter)))
    })
}

/// The modules that may hold `unsafe`; the lint `unsafe_code` of the workspace keeps it out of all others.
const UNSAFE: [&str; 4] = [
    "crates/device/src/volume/kernel.rs",
    "crates/serve/src/memory/mapping.rs",
    "crates/sqlite/src/ffi/mod.rs",
    "crates/sqlite/tests/sqlite/common.rs",
];

/// Nobody else switches that lint off.
pub(super) fn check_unsafe(tree: &Tree) -> Vec<Problem> {
    let applies = |path: &str| is_source(path) && !UNSAFE.contains(&path);
    on_lines(tree, applies, |line| {
        let off = ["allow(unsafe_code", "expect(unsafe_code"];
        let found = off.iter().any(|off| line.contains(off));
        found.then(|| format!("holds unsafe; it belongs to {}", UNSAFE.join(", ")))
    })
}

/// A marker names the issue that will remove it: `TODO(#12)`.
pub(super) fn check_markers(tree: &Tree) -> Vec<Problem> {
    on_lines(tree, is_source, |line| {
        if line.contains("todo!(") || line.contains("unimplemented!(") {
            return Some("is unfinished".to_owned());
        }
        let marker = ["TODO", "FIXME", "XXX"].into_iter().find(|marker| {
            line.match_indices(marker).any(|(at, _)| {
                let after = &line[at + marker.len()..];
                !inside_word(line, at, after) && !names_issue(after)
            })
        })?;
        Some(format!("says {marker} without an issue: write {marker}(#NUMBER) or do it"))
    })
}

fn inside_word(line: &str, at: usize, after: &str) -> bool {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    line[..at].chars().next_back().is_some_and(is_word) || after.chars().next().is_some_and(is_word)
}

fn names_issue(after: &str) -> bool {
    let number = after.strip_prefix("(#").and_then(|rest| rest.split(')').next());
    number.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

/// Folders that exist on somebody's machine only, and settings that pin a package source.
const MACHINE: [&str; 11] = [
    "/work/",
    "/farm/",
    "/home/",
    "/Users/",
    "/root/",
    "C:\\Users",
    "replace-with",
    "index-url",
    "GOPROXY=",
    "CARGO_REGISTRIES_",
    "sparse+http",
];

/// The one package source that may be named, as Cargo.lock does.
const PUBLIC_INDEX: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Nothing tracked names a folder of one machine or another package source than the public one.
pub(super) fn check_machine_paths(tree: &Tree) -> Vec<Problem> {
    on_lines(
        tree,
        |path| !path.starts_with("xtask/src/"),
        |line| {
            if line.replace(PUBLIC_INDEX, "").contains("registry+") {
                return Some("names a package registry".to_owned());
            }
            let found = MACHINE
                .into_iter()
                .find(|part| line.match_indices(part).any(|(at, _)| starts_path(line, at)))?;
            Some(format!("has `{found}`, which holds on one machine only"))
        },
    )
}

/// Whether an absolute path starts here: `/work/` in `/work/a`, not in `crates/work/a`.
fn starts_path(line: &str, at: usize) -> bool {
    if !line[at..].starts_with('/') {
        return true;
    }
    line[..at]
        .chars()
        .next_back()
        .is_none_or(|before| !before.is_alphanumeric() && !"._-})*~".contains(before))
}

fn is_source(path: &str) -> bool {
    let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
    let kind = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    // tidy's own sources name the markers they look for, and are read by people more often.
    let own = path == "xtask/src/tidy/hygiene.rs";
    !own && (matches!(kind, "rs" | "toml" | "sh" | "py" | "yml" | "service")
        || name == "Makefile"
        || path == ".ci/run")
}

fn on_lines(
    tree: &Tree,
    applies: fn(&str) -> bool,
    judge: fn(&str) -> Option<String>,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, text) in tree.files().filter(|(path, _)| applies(path)) {
        for (number, line) in text.lines().enumerate() {
            if let Some(text) = judge(line) {
                problems.push(Problem::on_line(path, number + 1, text));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(path: &str, line: &str, check: fn(&Tree) -> Vec<Problem>) -> usize {
        check(&Tree::of(&[(path, line)])).len()
    }

    #[test]
    fn non_ascii_source_is_found_with_its_line() {
        let problems = check_ascii(&Tree::of(&[("a.rs", "ok\n// 5 \u{b5}s\n")]));
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].line, 2);
        assert!(problems[0].text.contains("U+00B5"));
        assert_eq!(one("docs/a.md", "5 \u{b5}s", check_ascii), 0);
    }

    #[test]
    fn unsafe_has_its_place() {
        let line = "#![expect(unsafe_code, reason = \"rings\")]";
        assert_eq!(one("crates/device/src/lib.rs", line, check_unsafe), 1);
        assert_eq!(one(UNSAFE[0], line, check_unsafe), 0);
    }

    #[test]
    fn markers_need_an_issue_number() {
        for bad in
            ["// TODO: later", "# FIXME", "// TODO(#)", "// TODO(me)", "    todo!()", "// XXX"]
        {
            assert_eq!(one("a.rs", bad, check_markers), 1, "{bad}");
        }
        for good in ["// TODO(#12): later", "let TODOS = 1;", "// mktemp XXXXXX", "// todo list"] {
            assert_eq!(one("a.rs", good, check_markers), 0, "{good}");
        }
    }

    #[test]
    fn paths_of_one_machine_are_found_in_any_text() {
        for bad in ["see /work/a", "\"/home/me/x\"", "path=/root/.cargo", "C:\\Users\\me"] {
            assert_eq!(one("docs/a.md", bad, check_machine_paths), 1, "{bad}");
        }
        for good in ["crates/work/a", "https://a.org/home/x", "~/work/a", "the work/ folder"] {
            assert_eq!(one("docs/a.md", good, check_machine_paths), 0, "{good}");
        }
    }

    #[test]
    fn only_the_public_registry_may_be_named() {
        let public = format!("source = \"{PUBLIC_INDEX}\"");
        assert_eq!(one("Cargo.lock", &public, check_machine_paths), 0);
        for bad in ["registry+https://mirror.example/index", "index = \"sparse+https://m/\""] {
            assert_eq!(one("Cargo.lock", bad, check_machine_paths), 1, "{bad}");
        }
        assert_eq!(one(".cargo/config.toml", "replace-with = \"m\"", check_machine_paths), 1);
    }
}
