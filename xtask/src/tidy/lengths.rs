//! Length of files and functions of product code.

use super::Problem;
use super::scan::measure;
use super::tree::Tree;

/// Lines of a file, which holds one idea, whole.
const FILE_MAX: usize = 800;

/// Lines of a function.
const FUNCTION_MAX: usize = 70;

/// What is longer than it may be.
pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, text) in tree.files().filter(|(path, _)| is_product(path)) {
        let measure = measure(text);
        if measure.lines > FILE_MAX {
            let text =
                format!("has {} lines, at most {FILE_MAX}: split it by ideas", measure.lines);
            problems.push(Problem::in_file(path, text));
        }
        for function in measure.functions.iter().filter(|function| function.lines > FUNCTION_MAX) {
            let text = format!(
                "fn {} has {} lines, at most {FUNCTION_MAX}",
                function.name, function.lines
            );
            problems.push(Problem::on_line(path, function.line, text));
        }
    }
    problems
}

/// Not tests, benches and everything else.
fn is_product(path: &str) -> bool {
    let rest = match path.strip_prefix("crates/") {
        Some(inner) => inner.split_once('/').map(|(_, rest)| rest),
        None => path.strip_prefix("xtask/"),
    };
    rest.is_some_and(|rest| {
        let is_test = rest.ends_with("/tests.rs") || rest.contains("/tests/");
        rest.starts_with("src/")
            && rest.rsplit_once('.').is_some_and(|(_, end)| end == "rs")
            && !is_test
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(path: &str, lines: usize) -> Vec<Problem> {
        let source = format!("fn f() {{\n{}}}\n", "    g();\n".repeat(lines - 2));
        check(&Tree::of(&[(path, &source)]))
    }

    #[test]
    fn what_is_too_long_is_found() {
        assert!(run("crates/ftl/src/lib.rs", FUNCTION_MAX).is_empty());
        let long = run("crates/ftl/src/lib.rs", FUNCTION_MAX + 1);
        assert!(long.len() == 1 && long[0].text.contains("fn f has 71 lines"), "{long:?}");
        assert_eq!(run("crates/ftl/src/lib.rs", FILE_MAX + 1).len(), 2);
    }

    #[test]
    fn tests_do_not_count() {
        for path in ["crates/ftl/tests/long.rs", "crates/ftl/src/gc/tests.rs", "scripts/long.rs"] {
            assert!(run(path, FILE_MAX + 1).is_empty(), "{path}");
        }
        assert_eq!(run("xtask/src/main.rs", FILE_MAX + 1).len(), 2);
    }
}
