//! Name of a volume or of a snapshot, 32 B: UTF-8, filled with zeroes.

use super::BlockError;
use super::fields::Fields;

/// Bytes of a name at most.
pub const VOLUME_NAME_MAX: usize = 32;

/// Name of a volume, a snapshot or a clone. May be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct VolumeName(String);

/// Why a text is no name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// Too long.
    #[error("the name has {found} bytes, expected at most {VOLUME_NAME_MAX}: shorten it")]
    Long {
        /// Bytes of it.
        found: usize,
    },
    /// It would confuse terminals and end early on media.
    #[error("the name has a control character, expected printable text")]
    Control,
}

impl VolumeName {
    /// Takes up to 32 bytes of UTF-8 without control characters.
    ///
    /// # Errors
    /// Says which rule is broken.
    pub fn new(text: &str) -> Result<Self, NameError> {
        if text.len() > VOLUME_NAME_MAX {
            return Err(NameError::Long { found: text.len() });
        }
        if text.chars().any(char::is_control) {
            return Err(NameError::Control);
        }
        Ok(Self(text.to_owned()))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn to_bytes(&self) -> [u8; VOLUME_NAME_MAX] {
        let mut bytes = [0; VOLUME_NAME_MAX];
        bytes[..self.0.len()].copy_from_slice(self.0.as_bytes());
        bytes
    }

    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Self, BlockError> {
        let bytes = fields.bytes(VOLUME_NAME_MAX)?;
        let len = VOLUME_NAME_MAX - bytes.iter().rev().take_while(|byte| **byte == 0).count();
        let text = std::str::from_utf8(&bytes[..len]).ok();
        let name = text.and_then(|text| Self::new(text).ok());
        name.ok_or(BlockError::Malformed("a name is not UTF-8 or has control characters"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::fields::Fields;
    use super::{NameError, VolumeName};

    #[test]
    fn names_follow_the_rules() {
        let longest = "Gr\u{fc}\u{df}e, 32 bytes of a name ....";
        assert_eq!(longest.len(), 32);
        for text in ["", "a", longest] {
            let name = VolumeName::new(text).unwrap();
            assert_eq!(VolumeName::read(&mut Fields::new(&name.to_bytes())), Ok(name));
        }
        let long = format!("{longest}x");
        assert_eq!(VolumeName::new(&long), Err(NameError::Long { found: 33 }));
        assert_eq!(VolumeName::new("a\nb"), Err(NameError::Control));
        assert_eq!(VolumeName::new("a\0"), Err(NameError::Control));
    }

    #[test]
    fn what_is_no_name_on_media_is_refused() {
        let read = |bytes: &[u8]| VolumeName::read(&mut Fields::new(bytes));
        let start = |text: &[u8]| [text, &[0; 32][text.len()..]].concat();
        assert_eq!(read(&start(b"ab")).unwrap().as_str(), "ab");
        // A gap, a byte that is no UTF-8, an escape that a terminal obeys, and too few bytes.
        for bytes in [start(b"a\0b"), start(b"\xFF"), start(b"\x1B[2J"), vec![b'a'; 31]] {
            assert!(read(&bytes).is_err(), "{bytes:?}");
        }
    }
}
