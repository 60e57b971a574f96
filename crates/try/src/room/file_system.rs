//! The file systems that a program can run on, and their tools.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::str::FromStr;

use super::tool::{MOUNT, Tool, output, said};
use crate::TryError;

/// Extended options of `mkfs.ext4` on a file without data: inode tables are zeroes already.
const PREZEROED: &str = "assume_storage_prezeroed=1";
/// The same where there are data, or where the option is unknown: they are written now.
const NOT_LAZY: &str = "lazy_itable_init=0,lazy_journal_init=0";

/// What a program runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileSystem {
    /// ext4.
    Ext4,
    /// XFS.
    Xfs,
    /// btrfs on one device.
    Btrfs,
    /// F2FS.
    F2fs,
    /// The disk itself, without a file system. Needs no root.
    None,
}

impl FileSystem {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Ext4, Self::Xfs, Self::Btrfs, Self::F2fs, Self::None];

    /// Its name, as `mount` and the command line know it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
            Self::F2fs => "f2fs",
            Self::None => "none",
        }
    }

    /// The file system on a disk, by its magic number. `read` fills a buffer from a byte on, and says whether it could.
    pub fn detect(mut read: impl FnMut(u64, &mut [u8]) -> bool) -> Self {
        let mut has = |offset: u64, magic: &[u8]| {
            let mut found = [0; 8];
            let found = &mut found[..magic.len()];
            read(offset, found) && found == magic
        };
        if has(1080, &[0x53, 0xEF]) {
            Self::Ext4
        } else if has(0, b"XFSB") {
            Self::Xfs
        } else if has(65_600, b"_BHRfS_M") {
            Self::Btrfs
        } else if has(1024, &[0x10, 0x20, 0xF5, 0xF2]) {
            Self::F2fs
        } else {
            Self::None
        }
    }

    const fn package(self) -> &'static str {
        match self {
            Self::Ext4 => "e2fsprogs",
            Self::Xfs => "xfsprogs",
            Self::Btrfs => "btrfs-progs",
            Self::F2fs => "f2fs-tools",
            Self::None => "",
        }
    }

    fn tool(self, name: &'static str) -> Tool {
        Tool { name, package: self.package() }
    }

    const fn mkfs(self) -> Option<&'static str> {
        match self {
            Self::Ext4 => Some("mkfs.ext4"),
            Self::Xfs => Some("mkfs.xfs"),
            Self::Btrfs => Some("mkfs.btrfs"),
            Self::F2fs => Some("mkfs.f2fs"),
            Self::None => None,
        }
    }

    /// The offline check that changes nothing, with its arguments.
    const fn fsck(self) -> Option<(&'static str, &'static [&'static str])> {
        match self {
            Self::Ext4 => Some(("e2fsck", &["-f", "-n"])),
            Self::Xfs => Some(("xfs_repair", &["-n"])),
            Self::Btrfs => Some(("btrfs", &["check", "--readonly"])),
            Self::F2fs => Some(("fsck.f2fs", &["--dry-run"])),
            Self::None => None,
        }
    }

    /// The command of the offline check, for people: `e2fsck -f -n`.
    #[must_use]
    pub fn check_command(self) -> String {
        let Some((name, arguments)) = self.fsck() else { return "no check".to_owned() };
        format!("{name} {}", arguments.join(" "))
    }

    /// Options with which it is always mounted: nothing is initialised in the background, copies of one file system may be
    /// mounted at once, and an error ends in no panic.
    pub(super) const fn mount_options(self) -> &'static str {
        match self {
            Self::Ext4 => "noinit_itable,errors=remount-ro",
            Self::Xfs => "nouuid",
            Self::Btrfs | Self::F2fs | Self::None => "rw",
        }
    }

    /// Refuses to begin what would fail at the end: a user who is not root, tools that are missing.
    ///
    /// # Errors
    /// [`TryError::NotRoot`] or [`TryError::NoTool`].
    pub fn expect_usable(self, makes: bool) -> Result<(), TryError> {
        if self == Self::None {
            return Ok(());
        }
        if !rustix::process::geteuid().is_root() {
            return Err(TryError::NotRoot { fs: self.name() });
        }
        MOUNT.find()?;
        let made = self.mkfs().filter(|_| makes);
        for name in made.into_iter().chain(self.fsck().map(|(name, _)| name)) {
            self.tool(name).find()?;
        }
        Ok(())
    }

    /// Makes a file system in an image. `options` are those of its mkfs, apart by white space. Nothing that
    /// could be written in the background later is left out.
    ///
    /// # Errors
    /// The tool is missing, or refuses.
    pub fn make(self, image: &Path, options: &str) -> Result<(), TryError> {
        let Some(name) = self.mkfs() else { return Ok(()) };
        let tool = self.tool(name);
        let run = |more: &[&str]| {
            let mut command = tool.command()?;
            command.args(["-q", if self == Self::Ext4 { "-F" } else { "-f" }]);
            tool.run(command.args(with_extended(options, more)).arg(image))
        };
        if self != Self::Ext4 {
            return run(&[]);
        }
        let metadata = image.metadata().map_err(TryError::io("look at", image))?;
        let zeroed = if metadata.blocks() == 0 { run(&[PREZEROED]) } else { run(&[NOT_LAZY]) };
        match zeroed {
            // Versions before 1.47 do not know it.
            Err(TryError::Tool { output, .. }) if output.contains("assume_storage") => {
                run(&[NOT_LAZY])
            }
            other => other,
        }
    }

    /// Looks offline whether the file system in an image is whole. Nothing is repaired. `None`: it is; else what the tool said.
    ///
    /// # Errors
    /// The tool is missing or cannot be started.
    pub fn check(self, image: &Path) -> Result<Option<String>, TryError> {
        let Some((name, arguments)) = self.fsck() else { return Ok(None) };
        let tool = self.tool(name);
        let output = output(tool.command()?.args(arguments).arg(image))?;
        Ok((!output.status.success()).then(|| {
            let code =
                output.status.code().map_or_else(|| "a signal".to_owned(), |code| code.to_string());
            format!("{name} ended with {code}: {}", said(&output))
        }))
    }
}

impl fmt::Display for FileSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for FileSystem {
    type Err = TryError;

    fn from_str(name: &str) -> Result<Self, TryError> {
        let found = Self::ALL.into_iter().find(|fs| fs.name() == name);
        found.ok_or_else(|| TryError::UnknownFileSystem { found: name.to_owned() })
    }
}

/// The words of options, with more values of `-E`: of two of them the tool takes the last.
fn with_extended(options: &str, more: &[&str]) -> Vec<String> {
    let mut words: Vec<String> = options.split_whitespace().map(str::to_owned).collect();
    if more.is_empty() {
        return words;
    }
    let more = more.join(",");
    match words.iter().rposition(|word| word == "-E") {
        Some(at) if at + 1 < words.len() => words[at + 1] = format!("{more},{}", words[at + 1]),
        _ => words.extend(["-E".to_owned(), more]),
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for fs in FileSystem::ALL {
            assert_eq!(fs.name().parse::<FileSystem>().unwrap(), fs);
        }
        let error = "ntfs".parse::<FileSystem>().unwrap_err().to_string();
        assert_eq!(error, "no file system `ntfs`, expected ext4, xfs, btrfs, f2fs or none");
    }

    #[test]
    fn extended_options_of_the_user_stay() {
        let words = |options| with_extended(options, &["a=1"]).join(" ");
        assert_eq!(words(""), "-E a=1");
        assert_eq!(words("-O ^has_journal"), "-O ^has_journal -E a=1");
        assert_eq!(words("-E stride=4 -b 1024"), "-E a=1,stride=4 -b 1024");
        assert_eq!(with_extended(" -b  1024 ", &[]), ["-b", "1024"]);
    }

    #[test]
    fn a_file_system_is_known_by_its_magic_number() {
        let detect = |at: usize, magic: &[u8]| {
            let mut disk = vec![0; 128 << 10];
            disk[at..at + magic.len()].copy_from_slice(magic);
            FileSystem::detect(|offset, bytes| {
                let from = usize::try_from(offset).unwrap();
                bytes.copy_from_slice(&disk[from..from + bytes.len()]);
                true
            })
        };
        assert_eq!(detect(1080, &[0x53, 0xEF]), FileSystem::Ext4);
        assert_eq!(detect(0, b"XFSB"), FileSystem::Xfs);
        assert_eq!(detect(65_600, b"_BHRfS_M"), FileSystem::Btrfs);
        assert_eq!(detect(1024, &0xF2F5_2010_u32.to_le_bytes()), FileSystem::F2fs);
        assert_eq!(detect(0, b"something else"), FileSystem::None);
        assert_eq!(FileSystem::detect(|_, _| false), FileSystem::None);
    }
}
