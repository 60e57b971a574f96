//! Which format comes closest to a file that none fits.

use onefold_units::convert::u64_from;

use crate::cursor::trim_end;
use crate::formats::line_format;
use crate::{BadColumn, Closest, Format, FormatSpec, ReadError, ReadOptions, Reader};

/// Data lines looked at.
const LINES: usize = 200;

/// What one format makes of the lines.
struct Try {
    closest: Closest,
    /// Fields before what is wrong with the first bad line.
    fields: usize,
}

/// The format of lines that comes closest to the text of `head`, if one reads more than a field of it.
/// `complete` tells that this is all of the file; else its last line may be cut.
pub(crate) fn closest(head: &[u8], complete: bool) -> Option<Closest> {
    let end = head.iter().rposition(|byte| *byte == b'\n').filter(|_| !complete);
    let whole = head.get(..end.unwrap_or(head.len())).unwrap_or_default();
    let numbered = (1..).zip(whole.split(|byte| *byte == b'\n').map(trim_end));
    let lines: Vec<(u64, &[u8])> =
        numbered.filter(|(_, line)| !line.is_empty()).take(LINES).collect();
    let text = Format::ALL.into_iter().filter(|format| line_format(*format).is_some());
    let tries = text.filter_map(|format| attempt(format, &lines));
    // The first of equals, as detection has them.
    let best = tries.reduce(|best, next| {
        let score = |one: &Try| (one.closest.lines, one.fields);
        if score(&next) > score(&best) { next } else { best }
    })?;
    (best.closest.lines > 0 || best.fields > 1).then_some(best.closest)
}

/// `None` if the format takes the lines for anything but requests.
fn attempt(format: Format, lines: &[(u64, &[u8])]) -> Option<Try> {
    let reader = || Reader::new(FormatSpec::new(format), ReadOptions::default()).ok();
    let mut current = reader()?;
    let (mut records, mut count, mut fails, mut fields) = (Vec::new(), 0_u64, None, 0);
    for (number, line) in lines {
        records.clear();
        match current.push(&[*line, b"\n"].concat(), &mut records) {
            Ok(()) => count += u64::from(!records.is_empty()),
            Err(ReadError::Line { column, found, expected, .. }) => {
                if fails.is_none() {
                    fields = fields_before(line, column);
                    fails = Some((*number, BadColumn { column, found, expected }));
                }
                // Nothing may be pushed after an error.
                current = reader()?;
            }
            Err(_) => return None,
        }
    }
    let closest = Closest { format, lines: count, of: u64_from(lines.len()), fails };
    (count > 0 || closest.fails.is_some()).then_some(Try { closest, fields })
}

/// Whole fields with a digit before a column, counted from 1: words alone are prose.
fn fields_before(line: &[u8], column: u64) -> usize {
    let before = (1..).zip(line).take_while(|(at, _)| *at < column).map(|(_, byte)| *byte);
    let (mut has_digit, mut fields) = (false, 0);
    for byte in before {
        if matches!(byte, b',' | b' ' | b'\t') {
            fields += usize::from(has_digit);
            has_digit = false;
        } else {
            has_digit |= byte.is_ascii_digit();
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::closest;
    use crate::Format;

    #[test]
    fn the_column_that_keeps_a_format_from_fitting_is_named() {
        let lines = b"128166372003061629,usr,0,write,8192,4096,1331\n\
                      128166372016382155,usr,0,Write,8192,8192,251\n"
            .repeat(2);
        let found = closest(&lines, true).unwrap();
        assert_eq!((found.format, found.lines, found.of), (Format::Msr, 2, 4));
        assert_eq!(
            found.to_string(),
            "closest is msr, which reads 2 of 4 lines; line 1, column 26: found \
             `write,8192,4096,1331`, expected Read or Write"
        );
    }

    #[test]
    fn nothing_comes_close_to_prose() {
        assert_eq!(closest(b"not a trace\n", true), None);
        assert_eq!(closest(b"\0\x01\x02\n\xff", true), None);
    }
}
