//! Dependency arrows between the crates, and a reason for every dependency from outside.
//!
//! The table below is docs/design.md, section "Crates and arrows", in a form that a machine reads.

use toml::{Table, Value};

use super::tree::Tree;
use super::{CORE, Problem};

/// Crate and the Onefold crates it may depend on. `testkit` may depend on any, and any crate may
/// have `testkit` as a dev-dependency.
const ARROWS: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("format", &["units"]),
    ("nand", &["units"]),
    ("buffer", &["units"]),
    ("ftl", &["units", "format", "nand"]),
    ("ssd", &["units", "format", "nand", "buffer", "ftl"]),
    ("volume", &["units", "format", "journal"]),
    ("modes", &["units", "format", "volume"]),
    ("journal", &["units"]),
    ("zoned", &["units", "format"]),
    ("trace", &["units"]),
    ("tracefile", &["units", "trace"]),
    ("config", &["units", "nand", "buffer", "ftl", "ssd", "volume", "modes", "zoned"]),
    (
        "sim",
        &[
            "units",
            "format",
            "nand",
            "buffer",
            "ftl",
            "ssd",
            "volume",
            "modes",
            "zoned",
            "journal",
            "trace",
            "tracefile",
            "config",
        ],
    ),
    ("study", &["units", "nand", "buffer", "trace", "tracefile", "config", "sim"]),
    (
        "device",
        &[
            "units", "format", "nand", "buffer", "ftl", "ssd", "volume", "modes", "zoned",
            "journal", "trace",
        ],
    ),
    ("serve", &["units", "device"]),
    ("crash", &["units", "format", "device"]),
    ("sqlite", &["units", "format"]),
    (
        "try",
        &["units", "journal", "trace", "tracefile", "config", "sim", "device", "serve", "crash"],
    ),
    (
        "cli",
        &[
            "units",
            "format",
            "buffer",
            "volume",
            "modes",
            "zoned",
            "journal",
            "trace",
            "tracefile",
            "config",
            "sim",
            "study",
            "device",
            "serve",
            "crash",
            "try",
        ],
    ),
];

/// The document that gives each dependency from outside its reason.
const DESIGN: &str = "docs/design.md";

/// Every dependency between Onefold crates follows an arrow of the table.
pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for name in tree.crates() {
        let path = format!("crates/{name}/Cargo.toml");
        for dependency in dependencies(tree, &path, &mut problems) {
            let Some(target) = dependency.name.strip_prefix("onefold-") else { continue };
            if let Some(text) = judge(name, target, dependency.dev) {
                problems.push(Problem::in_file(&path, text));
            }
        }
        if name != "testkit" && allowed(name).is_none() {
            problems.push(Problem::in_file(
                &path,
                "the crate is not in the table of arrows: add it to xtask/src/tidy/arrows.rs and \
                 docs/design.md",
            ));
        }
    }
    for dependency in dependencies(tree, "xtask/Cargo.toml", &mut problems) {
        if dependency.name.starts_with("onefold") {
            problems.push(Problem::in_file(
                "xtask/Cargo.toml",
                format!(
                    "xtask depends on {}: it must build when Onefold does not",
                    dependency.name
                ),
            ));
        }
    }
    problems
}

/// Every dependency from outside has a row in the table of docs/design.md; `thiserror` is the one
/// that core crates have without being asked.
pub(super) fn check_reasons(tree: &Tree) -> Vec<Problem> {
    let design = tree.text(DESIGN).unwrap_or_default();
    let mut problems = Vec::new();
    let mut manifests: Vec<String> =
        tree.crates().map(|name| format!("crates/{name}/Cargo.toml")).collect();
    manifests.push("xtask/Cargo.toml".to_owned());
    for path in manifests {
        let core = CORE.iter().any(|name| path == format!("crates/{name}/Cargo.toml"));
        // A syntax error is reported by `check`.
        for dependency in dependencies(tree, &path, &mut Vec::new()) {
            if dependency.name.starts_with("onefold") {
                continue;
            }
            if core && !dependency.dev && dependency.name == "thiserror" {
                continue;
            }
            let row = format!("| `{}` |", dependency.name);
            if !design.lines().any(|line| line.starts_with(&row)) {
                problems.push(Problem::in_file(
                    &path,
                    format!(
                        "depends on {}, which has no reason in {DESIGN}: add a row `{row}`",
                        dependency.name
                    ),
                ));
            }
        }
    }
    problems
}

/// One entry of a dependency table.
struct Dependency {
    name: String,
    dev: bool,
}

fn allowed(name: &str) -> Option<&'static [&'static str]> {
    ARROWS.iter().find(|(from, _)| *from == name).map(|(_, to)| *to)
}

/// What is wrong with the arrow, if anything.
fn judge(from: &str, to: &str, dev: bool) -> Option<String> {
    if from == "testkit" || (dev && (to == "testkit" || to == from)) {
        return None;
    }
    let targets = allowed(from)?;
    if targets.contains(&to) {
        return None;
    }
    let kind = if dev { "dev-dependency" } else { "dependency" };
    let list = if targets.is_empty() { "nothing".to_owned() } else { targets.join(", ") };
    Some(format!("{kind} {from} -> {to} is against the arrows: {from} may depend on {list}"))
}

fn dependencies(tree: &Tree, path: &str, problems: &mut Vec<Problem>) -> Vec<Dependency> {
    let Some(text) = tree.text(path) else { return Vec::new() };
    let manifest = match text.parse::<Table>() {
        Ok(manifest) => manifest,
        Err(error) => {
            problems.push(Problem::in_file(path, format!("is not TOML: {}", error.message())));
            return Vec::new();
        }
    };
    let mut found = Vec::new();
    collect(&manifest, &mut found);
    for target in
        manifest.get("target").and_then(Value::as_table).into_iter().flat_map(Table::values)
    {
        if let Some(table) = target.as_table() {
            collect(table, &mut found);
        }
    }
    found
}

fn collect(manifest: &Table, found: &mut Vec<Dependency>) {
    let sections =
        [("dependencies", false), ("build-dependencies", false), ("dev-dependencies", true)];
    for (section, dev) in sections {
        for (key, value) in manifest.get(section).and_then(Value::as_table).into_iter().flatten() {
            // `package = ".."` renames: the arrow is to the package, not to its local name.
            let package = value.get("package").and_then(Value::as_str).unwrap_or(key);
            found.push(Dependency { name: package.to_owned(), dev });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(name: &str, text: &str) -> Vec<Problem> {
        check(&Tree::of(&[(&format!("crates/{name}/Cargo.toml"), text)]))
    }

    #[test]
    fn an_allowed_arrow_passes() {
        assert_eq!(manifest("ftl", "[dependencies]\nonefold-nand.workspace = true\n"), []);
    }

    #[test]
    fn a_core_crate_must_not_name_a_driver() {
        let problems = manifest("ftl", "[dependencies]\nonefold-sim.workspace = true\n");
        assert_eq!(problems.len(), 1);
        assert!(problems[0].text.contains("ftl -> sim"), "{}", problems[0]);
    }

    #[test]
    fn arrows_do_not_go_back_and_renaming_does_not_hide_them() {
        let text = "[dependencies]\nx = { package = \"onefold-ftl\", path = \"../ftl\" }\n";
        assert_eq!(manifest("nand", text).len(), 1);
        let text = "[target.'cfg(unix)'.build-dependencies]\nonefold-ftl = \"0\"\n";
        assert_eq!(manifest("nand", text).len(), 1);
    }

    #[test]
    fn testkit_is_for_tests_only() {
        let dev = "[dev-dependencies]\nonefold-testkit.workspace = true\n";
        assert_eq!(manifest("ftl", dev), []);
        let product = "[dependencies]\nonefold-testkit.workspace = true\n";
        assert_eq!(manifest("ftl", product).len(), 1);
    }

    #[test]
    fn a_crate_without_a_row_and_a_broken_manifest_are_found() {
        assert_eq!(manifest("surprise", "[dependencies]\n").len(), 1);
        assert_eq!(manifest("ftl", "[dependencies\n").len(), 1);
    }

    #[test]
    fn xtask_stays_independent() {
        let text = "[dependencies]\nonefold-units.workspace = true\n";
        assert_eq!(check(&Tree::of(&[("xtask/Cargo.toml", text)])).len(), 1);
    }

    #[test]
    fn a_dependency_needs_a_reason() {
        let cargo =
            ("crates/format/Cargo.toml", "[dependencies]\ncrc32c = \"0.6\"\nthiserror = \"2\"\n");
        let silent = check_reasons(&Tree::of(&[cargo, (DESIGN, "no table\n")]));
        assert_eq!(silent.len(), 1);
        assert!(silent[0].text.contains("crc32c"));
        let row = "| `crc32c` | format | checksums |\n";
        assert_eq!(check_reasons(&Tree::of(&[cargo, (DESIGN, row)])), []);
    }
}
