//! A reading of Rust source that is just deep enough to find functions and test modules: comments
//! and literals are blanked, braces are counted.

/// A function and its length.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Function {
    /// Its name.
    pub(super) name: String,
    /// Line of `fn`, from 1.
    pub(super) line: usize,
    /// Lines from `fn` to the closing brace.
    pub(super) lines: usize,
}

/// What a file of product code weighs; its `#[cfg(test)]` items do not count.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Measure {
    /// Lines outside test items.
    pub(super) lines: usize,
    /// Functions outside test items.
    pub(super) functions: Vec<Function>,
}

/// Measures one source file.
pub(super) fn measure(source: &str) -> Measure {
    let code = blank(source);
    let tests = test_items(&code);
    let test_lines: usize = tests.iter().map(|&(from, to)| lines_between(&code, from, to)).sum();
    let mut functions = Vec::new();
    for at in words(&code, "fn") {
        if tests.iter().any(|&(from, to)| (from..to).contains(&at)) {
            continue;
        }
        if let Some(function) = function_at(&code, at) {
            functions.push(function);
        }
    }
    Measure { lines: source.lines().count().saturating_sub(test_lines), functions }
}

/// The source with every comment, string and character replaced by spaces; lines stay lines.
pub(super) fn blank(source: &str) -> String {
    let chars: Vec<char> = source.chars().collect();
    let mut out = String::with_capacity(source.len());
    let mut at = 0;
    while at < chars.len() {
        let end = token_end(&chars, at);
        if end > at {
            out.extend(chars[at..end].iter().map(|&c| if c == '\n' { '\n' } else { ' ' }));
            at = end;
        } else {
            // Byte offsets must match between searches, so that other letters become one byte.
            out.push(if chars[at].is_ascii() { chars[at] } else { 'x' });
            at += 1;
        }
    }
    out
}

/// Where the comment or literal that starts at `at` ends; `at` if none starts here.
fn token_end(chars: &[char], at: usize) -> usize {
    let next = chars.get(at + 1).copied();
    match (chars[at], next) {
        ('/', Some('/')) => {
            chars[at..].iter().position(|&c| c == '\n').map_or(chars.len(), |n| at + n)
        }
        ('/', Some('*')) => block_comment_end(chars, at),
        ('"', _) => string_end(chars, at + 1),
        ('r', Some('"' | '#')) if !continues_word(chars, at) => raw_string_end(chars, at),
        ('\'', Some('\\')) => quote_end(chars, at + 3),
        ('\'', Some(_)) if chars.get(at + 2) == Some(&'\'') => at + 3,
        _ => at,
    }
}

/// Whether the letter at `at` is the middle of a name; `b` and `c` before `r"` are prefixes.
fn continues_word(chars: &[char], at: usize) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    match at.checked_sub(1).map(|i| chars[i]) {
        Some('b' | 'c') => at.checked_sub(2).is_some_and(|i| is_word(chars[i])),
        Some(before) => is_word(before),
        None => false,
    }
}

fn block_comment_end(chars: &[char], mut at: usize) -> usize {
    let mut depth = 0_usize;
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => (depth, at) = (depth + 1, at + 2),
            ('*', Some('/')) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    chars.len()
}

fn string_end(chars: &[char], mut at: usize) -> usize {
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

fn raw_string_end(chars: &[char], at: usize) -> usize {
    let hashes = chars[at + 1..].iter().take_while(|&&c| c == '#').count();
    let open = at + 1 + hashes;
    if chars.get(open) != Some(&'"') {
        return at; // A raw identifier, such as r#type.
    }
    let mut close = open + 1;
    while close < chars.len() {
        let after = &chars[close + 1..];
        if chars[close] == '"' && after.iter().take(hashes).filter(|&&c| c == '#').count() == hashes
        {
            return close + 1 + hashes;
        }
        close += 1;
    }
    chars.len()
}

fn quote_end(chars: &[char], from: usize) -> usize {
    let rest = chars.get(from..).unwrap_or_default();
    rest.iter().position(|&c| c == '\'').map_or(chars.len(), |n| from + n + 1)
}

/// Byte offsets at which `word` stands alone.
fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_word = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    let bytes = code.as_bytes();
    code.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        !is_word(at.checked_sub(1).and_then(|i| bytes.get(i)))
            && !is_word(bytes.get(at + word.len()))
    })
}

/// Byte ranges of the items behind `#[cfg(test)]`.
fn test_items(code: &str) -> Vec<(usize, usize)> {
    let mut items: Vec<(usize, usize)> = Vec::new();
    for (at, attribute) in code.match_indices("#[cfg(test)]") {
        if items.last().is_some_and(|&(_, end)| at < end) {
            continue;
        }
        let end = body(code, at + attribute.len()).map_or(code.len(), |(_, end)| end);
        items.push((at, end));
    }
    items
}

/// The next braced body from `from` on, or the next `;` if that comes first.
fn body(code: &str, from: usize) -> Option<(Option<usize>, usize)> {
    let mut nested = 0_i32;
    let mut open = None;
    for (at, byte) in code.bytes().enumerate().skip(from) {
        match byte {
            b'{' if nested == 0 && open.is_none() => (open, nested) = (Some(at), 1),
            b'{' | b'(' | b'[' => nested += 1,
            b'}' | b')' | b']' => {
                nested -= 1;
                if nested == 0 && open.is_some() {
                    return Some((open, at + 1));
                }
            }
            b';' if nested == 0 && open.is_none() => return Some((None, at + 1)),
            _ => {}
        }
    }
    None
}

fn function_at(code: &str, at: usize) -> Option<Function> {
    let rest = code[at + 2..].trim_start();
    let name: String =
        rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    if name.is_empty() {
        return None; // A function pointer type.
    }
    let (open, end) = body(code, at)?;
    open?; // A declaration in a trait has no body.
    let line = lines_between(code, 0, at);
    Some(Function { name, line, lines: lines_between(code, at, end) })
}

/// Lines that the range touches.
fn lines_between(code: &str, from: usize, to: usize) -> usize {
    1 + code[from..to].bytes().filter(|&byte| byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked() {
        let source =
            "a /* { /* */ } */ b \"}\\\"{\" c '{' '\\'' d r#\"\"{\"# e // {\nf<'a> br\"{\" g";
        let code = blank(source);
        assert_eq!(code.matches('{').count(), 0, "{code}");
        assert!(code.contains("f<'a>") && code.ends_with(" g"));
        assert_eq!(code.lines().count(), 2);
    }

    #[test]
    fn functions_are_measured_to_their_closing_brace() {
        let source = "trait T {\n    fn no_body(&self);\n}\n\npub fn long(x: [u8; 2]) -> u8 {\n    \
                      let s = \"}\";\n    if x[0] > 0 {\n        1\n    } else {\n        2\n    }\n}\n\
                      type P = fn(u8) -> u8;\n";
        let found = measure(source);
        assert_eq!(found.lines, 13);
        assert_eq!(found.functions, [Function { name: "long".to_owned(), line: 5, lines: 8 }]);
    }

    #[test]
    fn test_modules_do_not_count() {
        let source = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {\n    }\n}\n";
        let found = measure(source);
        assert_eq!(found.lines, 1);
        assert_eq!(found.functions.len(), 1);
    }

    #[test]
    fn unbalanced_source_does_not_panic() {
        for source in ["fn a() {", "'", "\"", "r#\"", "/*", "fn", "'\\", "}", "#[cfg(test)]"] {
            measure(source);
        }
    }
}
