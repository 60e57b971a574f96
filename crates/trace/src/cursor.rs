//! Field by field through one line, without copying.

use onefold_units::convert::{index, index64};

/// What a parser wanted at a place of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Expected {
    /// Byte of the line, from 0.
    pub(crate) at: usize,
    /// What should have been there.
    pub(crate) what: &'static str,
}

/// A position in a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    line: &'a [u8],
    at: usize,
}

const POWERS: [u64; 10] =
    [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000];

/// 19 digits always fit a `u64`.
const SAFE_DIGITS: usize = 19;

impl<'a> Cursor<'a> {
    pub(crate) const fn new(line: &'a [u8]) -> Self {
        Self { line, at: 0 }
    }

    pub(crate) const fn line(&self) -> &'a [u8] {
        self.line
    }

    /// The failure to find `what` here.
    pub(crate) const fn expected(&self, what: &'static str) -> Expected {
        Expected { at: self.at, what }
    }

    /// The failure to find `what` at the start of the field that ends here.
    const fn expected_at(at: usize, what: &'static str) -> Expected {
        Expected { at, what }
    }

    #[inline]
    pub(crate) fn peek(&self) -> Option<u8> {
        self.line.get(self.at).copied()
    }

    /// What is left of the line.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.line.get(self.at..).unwrap_or_default()
    }

    pub(crate) const fn skip(&mut self, count: usize) {
        self.at += count;
    }

    #[inline]
    pub(crate) fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
    }

    /// A comma, with blanks around it.
    #[inline]
    pub(crate) fn comma(&mut self) -> Result<(), Expected> {
        self.blanks();
        if self.peek() != Some(b',') {
            return Err(self.expected("a comma"));
        }
        self.at += 1;
        self.blanks();
        Ok(())
    }

    /// At least one blank between fields.
    #[inline]
    pub(crate) fn gap(&mut self) -> Result<(), Expected> {
        if !matches!(self.peek(), Some(b' ' | b'\t')) {
            return Err(self.expected("a blank"));
        }
        self.blanks();
        Ok(())
    }

    pub(crate) fn byte(&mut self, byte: u8, what: &'static str) -> Result<(), Expected> {
        if self.peek() != Some(byte) {
            return Err(self.expected(what));
        }
        self.at += 1;
        Ok(())
    }

    /// Consumes `text` if it is next.
    pub(crate) fn take(&mut self, text: &[u8]) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    /// The end of the line.
    pub(crate) fn end(&mut self) -> Result<(), Expected> {
        self.blanks();
        if self.at < self.line.len() { Err(self.expected("the end of the line")) } else { Ok(()) }
    }

    /// A field up to the next comma or the end.
    #[inline]
    pub(crate) fn until_comma(&mut self) -> &'a [u8] {
        self.until(|byte| byte == b',')
    }

    /// A field up to the next blank or the end.
    #[inline]
    pub(crate) fn word(&mut self) -> &'a [u8] {
        self.until(|byte| byte == b' ' || byte == b'\t')
    }

    #[inline]
    fn until(&mut self, stop: impl Fn(u8) -> bool) -> &'a [u8] {
        let rest = self.rest();
        let len = rest.iter().position(|byte| stop(*byte)).unwrap_or(rest.len());
        self.at += len;
        rest.get(..len).unwrap_or_default()
    }

    /// An unsigned decimal integer.
    #[inline]
    pub(crate) fn integer(&mut self, what: &'static str) -> Result<u64, Expected> {
        let start = self.at;
        let rest = self.rest();
        let mut value = 0_u64;
        let mut digits = 0;
        for byte in rest {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            value = if digits < SAFE_DIGITS {
                value.wrapping_mul(10).wrapping_add(u64::from(digit))
            } else {
                value
                    .checked_mul(10)
                    .and_then(|value| value.checked_add(u64::from(digit)))
                    .ok_or(Expected { at: start, what })?
            };
            digits += 1;
        }
        if digits == 0 {
            return Err(Self::expected_at(start, what));
        }
        self.at += digits;
        Ok(value)
    }

    /// A decimal number, parsed digit by digit, in units of 10^-`digits`. Further digits are cut.
    #[inline]
    pub(crate) fn decimal(&mut self, digits: u32, what: &'static str) -> Result<u64, Expected> {
        let start = self.at;
        let whole = self.integer(what)?;
        let mut fraction = 0;
        let mut left = digits;
        if self.peek() == Some(b'.') {
            self.at += 1;
            while let Some(digit) = self.peek().map(|byte| byte.wrapping_sub(b'0')) {
                if digit > 9 {
                    break;
                }
                if left > 0 {
                    fraction = fraction * 10 + u64::from(digit);
                    left -= 1;
                }
                self.at += 1;
            }
        }
        let power = |exponent: u32| POWERS.get(index(exponent)).copied().unwrap_or(1);
        whole
            .checked_mul(power(digits))
            .and_then(|whole| whole.checked_add(fraction * power(left)))
            .ok_or(Expected { at: start, what })
    }

    /// `0x` and hexadecimal digits.
    pub(crate) fn hex(&mut self, what: &'static str) -> Result<u64, Expected> {
        let start = self.at;
        if !self.take(b"0x") && !self.take(b"0X") {
            return Err(self.expected(what));
        }
        self.bare_hex(what).map_err(|_| Self::expected_at(start, what))
    }

    /// Hexadecimal digits.
    pub(crate) fn bare_hex(&mut self, what: &'static str) -> Result<u64, Expected> {
        let start = self.at;
        let mut value = 0_u64;
        while let Some(digit) = self.peek().and_then(hex_digit) {
            if value >> 60 != 0 {
                return Err(Self::expected_at(start, what));
            }
            value = value << 4 | u64::from(digit);
            self.at += 1;
        }
        if self.at == start { Err(self.expected(what)) } else { Ok(value) }
    }
}

/// The value of a hexadecimal digit.
#[inline]
pub(crate) const fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

/// Where the first line of `bytes` ends: the position of its newline.
#[inline]
pub(crate) fn newline(bytes: &[u8]) -> Option<usize> {
    // Eight bytes at a time: a byte of `word ^ pattern` is zero exactly at a newline.
    const PATTERN: u64 = 0x0A0A_0A0A_0A0A_0A0A;
    const LOW: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let (words, tail) = bytes.as_chunks::<8>();
    let mut at = 0;
    for word in words {
        let word = u64::from_le_bytes(*word) ^ PATTERN;
        let zeroes = word.wrapping_sub(LOW) & !word & HIGH;
        if zeroes != 0 {
            return Some(at + index64(u64::from(zeroes.trailing_zeros()) / 8));
        }
        at += 8;
    }
    tail.iter().position(|byte| *byte == b'\n').map(|found| at + found)
}

/// The line without blanks and carriage returns at its end.
#[inline]
pub(crate) fn trim_end(mut line: &[u8]) -> &[u8] {
    while let [head @ .., b' ' | b'\t' | b'\r'] = line {
        line = head;
    }
    line
}

/// A short printable copy of the text at `at`, for error messages.
pub(crate) fn excerpt(line: &[u8], at: usize) -> String {
    const LONGEST: usize = 24;
    let rest = line.get(at..).unwrap_or_default();
    let shown = rest.get(..rest.len().min(LONGEST)).unwrap_or_default();
    let mut text = shown.escape_ascii().to_string();
    if rest.len() > LONGEST {
        text.push_str("..");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Cursor, newline};

    #[test]
    fn decimals_are_exact() {
        let parse = |text: &str, digits| Cursor::new(text.as_bytes()).decimal(digits, "a number");
        assert_eq!(parse("1266874889.708668759", 9), Ok(1_266_874_889_708_668_759));
        assert_eq!(parse("7.5", 9), Ok(7_500_000_000));
        assert_eq!(parse("0.1234567891", 9), Ok(123_456_789));
        assert_eq!(parse("12", 6), Ok(12_000_000));
        assert!(parse("99999999999999", 9).is_err());
        assert!(parse(".5", 9).is_err());
        assert_eq!(Cursor::new(b"18446744073709551615").integer("n"), Ok(u64::MAX));
        assert!(Cursor::new(b"18446744073709551616").integer("n").is_err());
    }

    #[test]
    fn newlines_are_found_at_every_position() {
        for len in 0..40 {
            for at in 0..len {
                let mut text = vec![b'\x0B'; len];
                text[at] = b'\n';
                assert_eq!(newline(&text), Some(at));
            }
            assert_eq!(newline(&vec![0x8A; len]), None);
        }
    }
}
