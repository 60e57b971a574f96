//! Why a file takes no writes.

use std::io;

use onefold_units::{IoFailed, Status};

use crate::backing::failure;

/// What keeps writes from the file under a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// The file system of the host has no room, or a quota is used up.
    Full,
    /// The host refuses a write, with this error number (0 if unknown).
    Refused(i32),
    /// A synchronisation failed with this error number: the host may have dropped what was written before, and does not
    /// say so twice. Nothing is written any more until the device is opened again.
    Unsynced(i32),
}

impl Held {
    pub(super) fn new(error: &io::Error) -> Self {
        match failure(error) {
            IoFailed::NoSpace => Self::Full,
            IoFailed::Error => Self::Refused(number(error)),
        }
    }

    pub(super) fn unsynced(error: &io::Error) -> Self {
        Self::Unsynced(number(error))
    }

    /// How a request ends that has to write.
    pub(crate) const fn status(self) -> Status {
        match self {
            Self::Full => Status::NoSpace,
            Self::Refused(_) => Status::MediaError,
            Self::Unsynced(_) => Status::Poisoned,
        }
    }

    /// The same for a layer above in the same process.
    pub(crate) const fn io_failed(self) -> IoFailed {
        match self {
            Self::Full => IoFailed::NoSpace,
            Self::Refused(_) | Self::Unsynced(_) => IoFailed::Error,
        }
    }

    /// Whether the file may take writes again without being opened anew.
    pub(crate) const fn is_over_by_itself(self) -> bool {
        !matches!(self, Self::Unsynced(_))
    }

    /// One word for metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "host_full",
            Self::Refused(_) => "host_refuses",
            Self::Unsynced(_) => "sync_failed",
        }
    }
}

impl std::fmt::Display for Held {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Full => to.write_str("the file system of the host is full"),
            Self::Refused(number) => {
                write!(to, "the host refuses a write ({})", words(*number))
            }
            Self::Unsynced(number) => {
                write!(to, "the host failed to make written data durable ({})", words(*number))
            }
        }
    }
}

fn number(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(0)
}

/// What the operating system says with an error number, in words alone.
fn words(number: i32) -> String {
    if number == 0 {
        return "no reason given".into();
    }
    let text = io::Error::from_raw_os_error(number).to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    text[..end].to_lowercase()
}

#[cfg(test)]
mod tests {
    use std::io::Error;

    use onefold_units::{IoFailed, Status};

    use super::{Held, failure};

    #[test]
    fn a_host_without_room_is_told_from_one_that_fails() {
        for (number, failed, status) in [
            (28, IoFailed::NoSpace, Status::NoSpace),
            (122, IoFailed::NoSpace, Status::NoSpace),
            (5, IoFailed::Error, Status::MediaError),
        ] {
            let error = Error::from_raw_os_error(number);
            assert_eq!(failure(&error), failed);
            assert_eq!(Held::new(&error).status(), status);
        }
        assert_eq!(Held::unsynced(&Error::from_raw_os_error(28)).status(), Status::Poisoned);
        let text = Held::Refused(5).to_string();
        assert_eq!(text, "the host refuses a write (input/output error)");
    }
}
