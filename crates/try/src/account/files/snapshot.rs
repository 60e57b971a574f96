//! A look at a mounted file system: which bytes of its disk belong to which file.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use fiemap::{Fiemap, FiemapExtentFlags};
use onefold_units::convert::{index, narrow, u64_from};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use serde::{Deserialize, Serialize};

/// Files of one look at most: more take longer than the time between looks.
const FILES_MAX: usize = 200_000;

/// `f_type` of file systems whose FIEMAP gives addresses of their own and not of the disk.
const BTRFS: u32 = 0x9123_683E;

/// Extents that say nothing about bytes of the disk, or that several files share.
const UNPLACED: FiemapExtentFlags = FiemapExtentFlags::UNKNOWN
    .union(FiemapExtentFlags::DELALLOC)
    .union(FiemapExtentFlags::DATA_INLINE)
    .union(FiemapExtentFlags::DATA_TAIL)
    .union(FiemapExtentFlags::SHARED);

/// A file or folder of a look.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Seen {
    /// Its path below the folder of the look.
    pub(super) path: String,
    /// Its inode.
    pub(super) inode: u64,
    /// It is a folder.
    pub(super) is_folder: bool,
}

/// Which bytes of a disk belong to which file at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    files: Vec<Seen>,
    /// First byte, first byte behind, file: in order and apart from each other.
    extents: Vec<(u64, u64, u32)>,
    /// Why the look does not know all files; empty if it does.
    pub remarks: Vec<String>,
}

/// A look under way.
struct Walk<'a> {
    dir: &'a Path,
    /// The file system of the look.
    device: u64,
    look: Snapshot,
    /// Files have one path, however many names.
    inodes: BTreeSet<u64>,
    folders: VecDeque<PathBuf>,
}

impl Snapshot {
    /// Looks at all files below a folder on the same file system. Nothing is written: data that has
    /// no place yet has none in the look, so a look at the end comes after `syncfs`. Files that go
    /// away meanwhile are left out.
    ///
    /// # Errors
    /// The folder cannot be opened.
    pub fn take(dir: &Path) -> io::Result<Self> {
        let root = open(CWD, dir, OFlags::DIRECTORY)?;
        let stat = rustix::fs::fstat(&root)?;
        if u32::try_from(rustix::fs::fstatfs(&root)?.f_type) == Ok(BTRFS) {
            let remark = "btrfs does not tell where files lie on the disk".to_owned();
            return Ok(Self { remarks: vec![remark], ..Self::default() });
        }
        let mut walk = Walk {
            dir,
            device: stat.st_dev,
            look: Self::default(),
            inodes: BTreeSet::new(),
            folders: VecDeque::new(),
        };
        walk.folder(&root, Path::new(""));
        while let Some(folder) = walk.folders.pop_front() {
            if let Ok(opened) = open(CWD, &dir.join(&folder), OFlags::DIRECTORY) {
                walk.folder(&opened, &folder);
            }
        }
        Ok(walk.finish())
    }

    /// The file that a byte of the disk belongs to, if one does, and up to where all bytes are
    /// alike.
    pub(super) fn at(&self, byte: u64) -> (Option<&Seen>, u64) {
        let next = self.extents.partition_point(|(_, end, _)| *end <= byte);
        match self.extents.get(next) {
            Some((start, end, file)) if *start <= byte => (self.files.get(index(*file)), *end),
            Some((start, ..)) => (None, *start),
            None => (None, u64::MAX),
        }
    }
}

impl Walk<'_> {
    /// Looks at a folder and the files in it. Those below are looked at later.
    fn folder(&mut self, opened: &OwnedFd, path: &Path) {
        self.add(opened, if path.as_os_str().is_empty() { Path::new(".") } else { path });
        let Ok(entries) = Dir::read_from(opened) else { return };
        for entry in entries.flatten() {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let Ok(stat) = rustix::fs::statat(opened, name, AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            if stat.st_dev != self.device {
                continue;
            }
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => self.folders.push_back(path.join(name)),
                FileType::RegularFile => {
                    if let Ok(file) = open(opened, Path::new(name), OFlags::empty()) {
                        self.add(&file, &path.join(name));
                    }
                }
                _ => {}
            }
        }
    }

    fn add(&mut self, opened: &OwnedFd, path: &Path) {
        let Ok(stat) = rustix::fs::fstat(opened) else { return };
        if self.look.files.len() >= FILES_MAX || !self.inodes.insert(stat.st_ino) {
            return;
        }
        let file = narrow(u64_from(self.look.files.len()));
        self.look.files.push(Seen {
            path: path.display().to_string(),
            inode: stat.st_ino,
            is_folder: FileType::from_raw_mode(stat.st_mode) == FileType::Directory,
        });
        // A file system without FIEMAP leaves the bytes of its files unknown.
        let placed = Fiemap::new(opened).map_while(Result::ok);
        let placed = placed.filter(|extent| !extent.fe_flags.intersects(UNPLACED));
        self.look.extents.extend(placed.map(|extent| {
            let first = extent.fe_physical;
            (first, first.saturating_add(extent.fe_length), file)
        }));
    }

    fn finish(mut self) -> Snapshot {
        if self.look.files.len() >= FILES_MAX {
            self.look.remarks.push(format!(
                "only {FILES_MAX} files below {} were looked at",
                self.dir.display()
            ));
        }
        self.look.extents.sort_unstable();
        // A file that was moved while others were looked at is there twice: nobody knows whose it is.
        let mut end = 0;
        self.look.extents.retain(|(start, other, _)| {
            let is_apart = *start >= end;
            end = end.max(*other);
            is_apart
        });
        self.look
    }
}

/// Opens a file of a look without leaving a trace of it.
fn open(at: impl AsFd, path: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let flags = flags | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    // Times of access are kept by the owner and by root.
    match rustix::fs::openat(&at, path, flags | OFlags::NOATIME, Mode::empty()) {
        Err(rustix::io::Errno::PERM) => rustix::fs::openat(&at, path, flags, Mode::empty()),
        opened => opened,
    }
}

#[cfg(test)]
impl Snapshot {
    /// A look that found files in one extent each.
    pub(super) fn with(files: &[(&str, u64, std::ops::Range<u64>)]) -> Self {
        let mut look = Self::default();
        for (path, inode, extent) in files {
            let file = narrow(u64_from(look.files.len()));
            let (path, is_folder) = ((*path).to_owned(), path.ends_with('/'));
            look.files.push(Seen { path, inode: *inode, is_folder });
            look.extents.push((extent.start, extent.end, file));
        }
        look.extents.sort_unstable();
        look
    }
}
