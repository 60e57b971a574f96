//! Errors of a recovery, and of a database on a device.

use std::io;
use std::path::PathBuf;

/// Why a database on a device cannot be made, opened or copied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// A file cannot be used.
    #[error("cannot {what} {path}: {source}")]
    File {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// The database file does not name a device.
    #[error(
        "{path} names no device, expected a file that `onefold-sqlite create` or `attach` made"
    )]
    NoPointer {
        /// The file.
        path: PathBuf,
    },
    /// A line of the database file is missing or wrong.
    #[error(
        "the file that names the device has no valid line `{name}=..`; make a new one: onefold-sqlite attach"
    )]
    Pointer {
        /// What the line begins with.
        name: &'static str,
    },
    /// A path cannot be kept in the database file.
    #[error("the path {path:?} is no UTF-8 text of one line")]
    Path {
        /// The path.
        path: PathBuf,
    },
    /// The disk has no label.
    #[error("{disk} holds no database of onefold-sqlite; to make one: onefold-sqlite create")]
    NoLabel {
        /// The disk.
        disk: PathBuf,
    },
    /// The disk has a label that is damaged, or of a version that is not known.
    #[error(
        "the label of {disk} is damaged or of another version, expected version 1 with a right checksum"
    )]
    Label {
        /// The disk.
        disk: PathBuf,
    },
    /// The disk has the database of another file.
    #[error("{disk} holds database {found:032x}, expected {expected:032x}: is it another device?")]
    OtherDisk {
        /// The disk.
        disk: PathBuf,
        /// Number of the database on it.
        found: u128,
        /// Number that the file names.
        expected: u128,
    },
    /// The disk has a database already.
    #[error(
        "{disk} holds database {found:032x}; to use it: onefold-sqlite attach; to lose it: --force"
    )]
    Occupied {
        /// The disk.
        disk: PathBuf,
        /// Number of the database on it.
        found: u128,
    },
    /// The disk is too small.
    #[error(
        "{disk} has {bytes} bytes, expected at least {expected}: a WAL of {wal_bytes} and as much again"
    )]
    TooSmall {
        /// The disk.
        disk: PathBuf,
        /// Its size.
        bytes: u64,
        /// Bytes that are needed.
        expected: u64,
        /// Bytes of the WAL.
        wal_bytes: u64,
    },
    /// The control export does not answer as one.
    #[error(
        "{control} does not answer as the control export of {disk}; expected `disk.ctl` beside `disk`, or NAME.ctl over NBD"
    )]
    NoControl {
        /// The disk.
        disk: PathBuf,
        /// What was taken for its control export.
        control: PathBuf,
    },
    /// The device remaps in larger units than pages of SQLite.
    #[error(
        "{control} remaps in units of {found} bytes, expected 4096: create the device with ftl.indirection=4KiB"
    )]
    Unit {
        /// The control export.
        control: PathBuf,
        /// Bytes of a unit.
        found: u32,
    },
    /// The file cannot be locked or read.
    #[error(transparent)]
    Recover(#[from] RecoverError),
}

/// Why a WAL could not be made standard. It is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecoverError {
    /// Somebody uses the database.
    #[error("{database} is in use: close the programs that have it open, and try again")]
    InUse {
        /// The database.
        database: PathBuf,
    },
    /// A file cannot be used.
    #[error("cannot {what} {path}: {source}")]
    File {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// The database is on a device, and so is its WAL.
    #[error(
        "{database} is on a device; open it with the extension, or copy it: onefold-sqlite export"
    )]
    OnDevice {
        /// The database.
        database: PathBuf,
    },
}
