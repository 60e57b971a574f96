//! The file that names a device: what SQLite takes for the database. It holds the locks of SQLite, and beside it lie shared
//! memory and rollback journals, as for any database.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::error::DeviceError;

/// The first line. No database of SQLite begins so, and SQLite without the extension says `file is not a database`.
const FIRST: &str = "onefold-sqlite device 1";

/// Where a database is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pointer {
    /// Number of the database, which its label has too.
    pub(crate) id: u128,
    /// The disk.
    pub(crate) disk: PathBuf,
    /// Its control export.
    pub(crate) control: PathBuf,
}

impl Pointer {
    /// A pointer to a database on that disk. Paths have to be text of one line.
    pub(crate) fn new(id: u128, disk: &Path, control: &Path) -> Result<Self, DeviceError> {
        for path in [disk, control] {
            if path.to_str().is_none_or(|text| text.contains(['\n', '\r'])) {
                return Err(DeviceError::Path { path: path.to_owned() });
            }
        }
        Ok(Self { id, disk: disk.to_owned(), control: control.to_owned() })
    }

    /// Reads the start of a database file: `None` if it is no pointer.
    pub(crate) fn parse(start: &[u8]) -> Option<Result<Self, DeviceError>> {
        let rest = start.strip_prefix(FIRST.as_bytes())?.strip_prefix(b"\n")?;
        Some(Self::fields(str::from_utf8(rest).unwrap_or_default()))
    }

    fn fields(text: &str) -> Result<Self, DeviceError> {
        let value = |name: &'static str| {
            let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
            found.filter(|value| !value.is_empty()).ok_or(DeviceError::Pointer { name })
        };
        let id = u128::from_str_radix(value("id")?, 16);
        Ok(Self {
            id: id.map_err(|_| DeviceError::Pointer { name: "id" })?,
            disk: value("disk")?.into(),
            control: value("control")?.into(),
        })
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (disk, control) = (self.disk.display(), self.control.display());
        writeln!(f, "{FIRST}\nid={:032x}\ndisk={disk}\ncontrol={control}", self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let pointer = Pointer::new(9 << 99, Path::new("/a b/disk"), Path::new("/a=b.ctl")).unwrap();
        let text = pointer.to_string();
        assert_eq!(Pointer::parse(text.as_bytes()).unwrap().unwrap(), pointer);
        // Zeroes behind the end, as the start of a file is read.
        assert_eq!(Pointer::parse(&[text.as_bytes(), b"\n"].concat()).unwrap().unwrap(), pointer);
    }

    #[test]
    fn a_line_that_is_missing_or_wrong_is_named() {
        let whole = "onefold-sqlite device 1\nid=5\ndisk=/d\ncontrol=/c\n";
        assert!(Pointer::parse(whole.as_bytes()).unwrap().is_ok());
        let cases =
            [("id=5", "id"), ("=5", "id"), ("5\n", "id"), ("disk=/d", "disk"), ("/c", "control")];
        for (gone, expected) in cases {
            let text = whole.replace(gone, if gone == "5\n" { "x\n" } else { "" });
            let error = Pointer::parse(text.as_bytes()).unwrap().unwrap_err();
            assert!(matches!(error, DeviceError::Pointer { name } if name == expected), "{text}");
        }
        for other in [&b"SQLite format 3\0"[..], b"", b"onefold-sqlite device 2\nid=5\n"] {
            assert!(Pointer::parse(other).is_none());
        }
    }

    #[test]
    fn a_path_of_two_lines_is_refused() {
        let error = Pointer::new(1, Path::new("/a\ncontrol=/b"), Path::new("/c")).unwrap_err();
        assert!(error.to_string().contains("one line"), "{error}");
    }
}
