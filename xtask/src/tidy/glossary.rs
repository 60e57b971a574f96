//! One word per thing: the column "never say" of docs/glossary.md.
//!
//! A phrase is compared word by word after names are taken apart, so that `super block` is found in
//! prose, in `super_block` and in `SuperBlock`, and is not found in `superblock`.

use super::Problem;
use super::tree::Tree;

const GLOSSARY: &str = "docs/glossary.md";

/// A line that quotes a word of somebody else's format or program says this in a comment.
const QUOTED: &str = "tidy: foreign word";

/// A synonym and the word to use.
struct Synonym {
    words: Vec<String>,
    phrase: String,
    instead: String,
}

/// No source or document uses a synonym that the glossary rules out.
pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let Some(glossary) = tree.text(GLOSSARY) else {
        return vec![Problem::in_file(GLOSSARY, "the glossary is missing")];
    };
    let synonyms = synonyms(glossary);
    if synonyms.is_empty() {
        return vec![Problem::in_file(GLOSSARY, "no table has a column `Never say`")];
    }
    let mut problems = Vec::new();
    for (path, text) in tree.files().filter(|(path, _)| speaks(path)) {
        for (number, line) in text.lines().enumerate() {
            if line.contains(QUOTED) {
                continue;
            }
            let words = words(line);
            for synonym in &synonyms {
                if words.windows(synonym.words.len()).any(|window| window == synonym.words) {
                    problems.push(Problem::on_line(
                        path,
                        number + 1,
                        format!("says `{}`, the glossary says {}", synonym.phrase, synonym.instead),
                    ));
                }
            }
        }
    }
    problems
}

/// Files whose words are ours. The glossary names what it rules out, and tidy's tests do too.
fn speaks(path: &str) -> bool {
    let kind = path.rsplit_once('.').is_some_and(|(_, ext)| matches!(ext, "rs" | "md" | "toml"));
    kind && path != GLOSSARY && !path.starts_with("xtask/") && path != "Cargo.lock"
}

fn synonyms(glossary: &str) -> Vec<Synonym> {
    let mut found = Vec::new();
    let mut column = None;
    for line in glossary.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if cells.len() < 3 {
            column = None;
        } else if let Some(at) =
            cells.iter().position(|cell| cell.eq_ignore_ascii_case("never say"))
        {
            column = Some(at);
        } else if let Some(cell) = column.and_then(|at| cells.get(at)) {
            // Phrases stand in backticks: every second piece.
            for phrase in cell.split('`').skip(1).step_by(2) {
                let instead = cells.get(1).copied().unwrap_or_default().to_owned();
                found.push(Synonym { words: words(phrase), phrase: phrase.to_owned(), instead });
            }
        }
    }
    found
}

/// The words of a line in lower case; `snake_case` and `CamelCase` are taken apart. Punctuation
/// becomes an empty word, so that no phrase reaches over a comma.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut after_lower = false;
    for letter in line.chars() {
        let starts = letter.is_uppercase() && after_lower;
        if (starts || !letter.is_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if letter.is_alphanumeric() {
            word.extend(letter.to_lowercase());
        } else if !matches!(letter, ' ' | '_' | '-') {
            words.push(String::new());
        }
        after_lower = letter.is_lowercase();
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "# Words\n| Word | Meaning | Never say |\n|---|---|---|\n\
                         | superblock | a stripe | `super block`, `eraseblock` |\n| WAF | ratio | |\n";

    fn found(path: &str, text: &str) -> usize {
        check(&Tree::of(&[(GLOSSARY, TABLE), (path, text)])).len()
    }

    #[test]
    fn a_synonym_is_found_in_prose_and_in_names() {
        assert_eq!(found("docs/a.md", "each super block is erased"), 1);
        assert_eq!(found("crates/ftl/src/a.rs", "struct SuperBlock;\nlet super_block = 1;"), 2);
        assert_eq!(found("README.md", "An eraseblock."), 1);
    }

    #[test]
    fn the_right_word_and_parts_of_words_pass() {
        assert_eq!(found("docs/a.md", "a superblock; super, block; an eraseblock"), 1);
        assert_eq!(found("docs/a.md", "a superblock; superb lock"), 0);
    }

    #[test]
    fn quotes_and_other_files_are_left_alone() {
        assert_eq!(found("crates/a/src/a.rs", "\"super block\" // tidy: foreign word"), 0);
        assert_eq!(found("docs/picture.svg", "super block"), 0);
    }

    #[test]
    fn a_glossary_without_the_column_is_no_glossary() {
        assert_eq!(check(&Tree::of(&[(GLOSSARY, "| Word |\n|---|\n| a |\n")])).len(), 1);
        assert_eq!(check(&Tree::of(&[])).len(), 1);
    }
}
