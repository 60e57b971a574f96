//! Links between documents: a relative link leads to a file of the repository.

use super::Problem;
use super::tree::Tree;

/// Every relative link in a Markdown file has a target.
pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, text) in tree.files().filter(|(path, _)| is_document(path)) {
        let mut fenced = false;
        for (number, line) in text.lines().enumerate() {
            fenced ^= line.trim_start().starts_with("```");
            if fenced {
                continue;
            }
            for target in targets(line) {
                if !resolve(path, target).is_some_and(|file| tree.has(&file)) {
                    let text = format!("links to {target}, which is not in the repository");
                    problems.push(Problem::on_line(path, number + 1, text));
                }
            }
        }
    }
    problems
}

fn is_document(path: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(_, extension)| extension == "md")
}

/// Relative link targets of a line, without their anchors.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| {
        let target = rest.split([')', '#', ' ']).next()?;
        let is_remote = target.contains("://") || target.starts_with("mailto:");
        (!target.is_empty() && !is_remote).then_some(target)
    })
}

/// The path from the root, or `None` if the link leaves the repository.
fn resolve(from: &str, target: &str) -> Option<String> {
    let mut folders: Vec<&str> = from.split('/').collect();
    folders.pop();
    for part in target.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                folders.pop()?;
            }
            name => folders.push(name),
        }
    }
    Some(folders.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> usize {
        check(&Tree::of(&[("docs/a.md", text), ("docs/b.md", ""), ("README.md", "")])).len()
    }

    #[test]
    fn links_that_lead_somewhere_pass() {
        assert_eq!(found("[b](b.md), [b](./b.md#part) and [r](../README.md)"), 0);
        assert_eq!(found("[a folder](../docs/), [out](https://example.org/x.md), [here](#a)"), 0);
        assert_eq!(found("```\nf[0](x)\n```\n"), 0);
    }

    #[test]
    fn dead_links_are_found_with_their_line() {
        let problems = check(&Tree::of(&[("docs/a.md", "ok\n[b](b.md)\n")]));
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].line, 2);
        assert_eq!(found("[x](c.md) [y](../../outside.md)"), 2);
    }
}
