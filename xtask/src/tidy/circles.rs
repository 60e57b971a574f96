//! Files of a crate that import each other. Data flows one way through the layers, and so do imports.
//!
//! An arrow runs from a file to the file that defines a name which it takes by a path or a `use`. Re-exports are looked through, and are
//! no arrows themselves; neither is what a module takes from those within it. Tests do not count.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};

use super::Problem;
use super::modules::{Modules, is_test};
use super::tree::Tree;

/// The names that a file takes from another one, by both.
type Arrows = BTreeMap<(String, String), BTreeSet<String>>;

/// Every circle of files.
pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for root in tree.files().map(|(path, _)| path).filter(|path| is_root(path)) {
        match Modules::of(tree, root) {
            Ok(modules) => {
                problems.extend(circles(&arrows(&modules)).iter().map(Circle::problem));
            }
            Err((path, error)) => problems.push(Problem::in_file(&path, error)),
        }
    }
    problems
}

fn is_root(path: &str) -> bool {
    let inner = path.strip_prefix("crates/").and_then(|path| path.split_once('/'));
    let rest = inner.map(|(_, rest)| rest).or_else(|| path.strip_prefix("xtask/"));
    rest.is_some_and(|rest| matches!(rest, "src/lib.rs" | "src/main.rs"))
}

fn arrows(modules: &Modules) -> Arrows {
    let mut arrows = Arrows::new();
    for module in modules.indices() {
        let mut paths = Paths { found: Vec::new() };
        modules.items(module).iter().for_each(|item| paths.visit_item(item));
        for path in paths.found.iter().chain(modules.imports(module)) {
            let Some(target) = modules.file_of(module, path) else { continue };
            let (from, to) = (modules.file(module), modules.file(target));
            if from != to
                && !modules.is_within(target, module)
                && let Some(name) = path.last()
            {
                let key = (from.to_owned(), to.to_owned());
                arrows.entry(key).or_default().insert(name.clone());
            }
        }
    }
    arrows
}

/// Paths in the items of one module; modules within it have their own.
struct Paths {
    found: Vec<Vec<String>>,
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !is_test(item) && !matches!(item, syn::Item::Mod(_) | syn::Item::Use(_)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1 && path.leading_colon.is_none() {
            self.found.push(path.segments.iter().map(|part| part.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }
}

/// Files that reach each other, and what ties them.
struct Circle {
    files: BTreeSet<String>,
    ties: Vec<String>,
}

impl Circle {
    fn problem(&self) -> Problem {
        let first = self.files.first().map_or("", String::as_str);
        let text =
            format!("is in a circle of {} files: {}", self.files.len(), self.ties.join("; "));
        Problem::in_file(first, text)
    }
}

/// The largest sets of files that reach each other.
fn circles(arrows: &Arrows) -> Vec<Circle> {
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        arrows.keys().map(|(from, _)| (from.as_str(), reached(arrows, from))).collect();
    let mut told = BTreeSet::new();
    let mut circles = Vec::new();
    for (file, seen) in reach.iter().filter(|(file, seen)| seen.contains(*file)) {
        if told.contains(file) {
            continue;
        }
        let comes_back = |to: &&&str| reach.get(**to).is_some_and(|back| back.contains(file));
        let files: BTreeSet<String> =
            seen.iter().filter(comes_back).map(|file| (*file).to_owned()).collect();
        let inside =
            |arrow: &&(String, String)| files.contains(&arrow.0) && files.contains(&arrow.1);
        let ties =
            arrows.keys().filter(inside).map(|arrow| describe(arrow, &arrows[arrow])).collect();
        told.extend(seen.iter().filter(comes_back).copied());
        circles.push(Circle { files, ties });
    }
    circles
}

/// The files that one leads to.
fn reached<'a>(arrows: &'a Arrows, from: &'a str) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut pending = vec![from];
    while let Some(at) = pending.pop() {
        let next = arrows.keys().filter(|(from, _)| from == at).map(|(_, to)| to.as_str());
        pending.extend(next.filter(|to| seen.insert(*to)));
    }
    seen
}

fn describe((from, to): &(String, String), names: &BTreeSet<String>) -> String {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    format!("{from} takes {} from {to}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(files: &[(&str, &str)]) -> Vec<Problem> {
        check(&Tree::of(files))
    }

    const ROOT: &str = "crates/trace/src/lib.rs";

    #[test]
    fn two_files_that_import_each_other_are_found() {
        let found = run(&[
            (ROOT, "mod a; mod b;"),
            ("crates/trace/src/a.rs", "use crate::b::B; pub struct A;"),
            ("crates/trace/src/b.rs", "pub struct B; impl B { fn f() -> super::a::A { loop {} } }"),
        ]);
        assert!(found.len() == 1 && found[0].text.contains("circle of 2 files"), "{found:?}");
        assert!(found[0].text.contains("a.rs takes B from crates/trace/src/b.rs"), "{found:?}");
    }

    #[test]
    fn a_re_export_is_no_arrow_and_hides_none() {
        let one_way = [
            (ROOT, "mod a; mod b; pub use a::A; pub use b::*;"),
            ("crates/trace/src/a.rs", "pub struct A;"),
            ("crates/trace/src/b.rs", "use crate::A; pub struct B(A);"),
        ];
        assert_eq!(run(&one_way), []);
        let mut both = one_way;
        both[1].1 = "use crate::B; pub struct A;";
        assert_eq!(run(&both).len(), 1);
    }

    #[test]
    fn a_module_takes_what_it_likes_from_those_within_it() {
        let found = run(&[
            (ROOT, "mod a;"),
            ("crates/trace/src/a/mod.rs", "mod b; pub struct A; fn f() { b::g() }"),
            ("crates/trace/src/a/b.rs", "use super::A; pub fn g() {}"),
        ]);
        assert_eq!(found, []);
    }

    #[test]
    fn tests_and_what_does_not_parse() {
        let tests = "use crate::b::B; #[cfg(test)] mod tests { use crate::b::B; } pub struct A;";
        let found = run(&[
            (ROOT, "mod a; mod b;"),
            ("crates/trace/src/a.rs", &tests.replace("use crate::b::B; #", "#")),
            ("crates/trace/src/b.rs", "use crate::a::A; pub struct B;"),
        ]);
        assert_eq!(found, []);
        assert!(run(&[(ROOT, "fn {")])[0].text.contains("cannot be parsed"));
    }
}
