//! The file system: a directory with the file `disk`, as large as the device, and `disk.ctl` if it has a
//! control export. That one is never cached: a write of 4 KiB executes a command.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use onefold_device::observed::Observed;
use onefold_device::{BlockDevice, Due};
use onefold_units::{Op, PAGE_BYTES, Status, convert};

use super::timer::ReplyTimer;

/// Name of the file.
const NAME: &str = "disk";
pub(super) const ROOT: INodeNo = INodeNo::ROOT;
pub(super) const FILE: INodeNo = INodeNo(2);
/// The control export.
const CONTROL_NAME: &str = "disk.ctl";
const CONTROL: INodeNo = INodeNo(3);
/// Nothing about the file changes but its size, and the kernel is told of that.
const TTL: Duration = Duration::from_hours(1);
/// A page of the device.
pub(super) const BLOCK: u32 = 4096;
pub(super) const NAME_MAX: u32 = 255;
const MAX_WRITE: u32 = 1 << 20;
const MAX_BACKGROUND: u16 = 128;
/// Read buffers up to this size are kept by each thread.
const KEEP_BYTES: usize = 2 << 20;

/// `FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE`: a discard, or write-zeroes that may unmap.
pub(super) const PUNCH_HOLE: i32 = 0x03;
/// `FALLOC_FL_KEEP_SIZE | FALLOC_FL_ZERO_RANGE`: write-zeroes that keeps the space.
pub(super) const ZERO_RANGE: i32 = 0x11;

/// What differs between the files and the folder of a mount.
pub(super) struct Attributes {
    pub(super) kind: FileType,
    pub(super) perm: u16,
    pub(super) size: u64,
    pub(super) nlink: u32,
    /// What a program should write at once.
    pub(super) block: u32,
}

impl Attributes {
    /// As the kernel has them: nothing changes after the mount was born.
    pub(super) fn of(&self, ino: INodeNo, (uid, gid): (u32, u32), born: SystemTime) -> FileAttr {
        let Self { kind, perm, size, nlink, block } = *self;
        FileAttr {
            ino,
            size,
            blocks: size.div_ceil(512),
            atime: born,
            mtime: born,
            ctime: born,
            crtime: UNIX_EPOCH,
            kind,
            perm,
            nlink,
            uid,
            gid,
            rdev: 0,
            blksize: block,
            flags: 0,
        }
    }
}

thread_local! {
    /// Each thread reads into its own buffer.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

pub(super) struct Disk<D: BlockDevice> {
    observed: Arc<Observed<D>>,
    control: Option<Box<dyn BlockDevice>>,
    read_only: bool,
    timer: Arc<ReplyTimer>,
    owner: (u32, u32),
    born: SystemTime,
}

impl<D: BlockDevice + 'static> Disk<D> {
    pub(super) fn new(observed: Observed<D>, read_only: bool, timer: Arc<ReplyTimer>) -> Self {
        Self {
            control: observed.control(),
            observed: Arc::new(observed),
            read_only,
            timer,
            owner: (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw()),
            born: SystemTime::now(),
        }
    }

    fn attributes(&self, inode: INodeNo) -> Option<FileAttr> {
        let (kind, perm, size, nlink) = match inode {
            ROOT => (FileType::Directory, 0o500, 0, 2),
            _ if self.read_only => (FileType::RegularFile, 0o400, self.size_of(inode)?, 1),
            _ => (FileType::RegularFile, 0o600, self.size_of(inode)?, 1),
        };
        let file = Attributes { kind, perm, size, nlink, block: self.block_of(inode) };
        Some(file.of(inode, self.owner, self.born))
    }

    fn size_of(&self, inode: INodeNo) -> Option<u64> {
        match inode {
            FILE => Some(self.observed.size()),
            CONTROL => self.control.as_ref().map(|control| control.size()),
            _ => None,
        }
    }

    /// What a program should write at once: whoever makes a volume on the file takes it for the unit of the drive.
    fn block_of(&self, inode: INodeNo) -> u32 {
        let unit = if inode == FILE { self.observed.unit_bytes() } else { PAGE_BYTES };
        u32::try_from(unit).unwrap_or(BLOCK)
    }

    /// The files, in the order of listing.
    fn files(&self) -> impl Iterator<Item = (INodeNo, &'static str)> {
        let control = self.control.as_ref().map(|_| (CONTROL, CONTROL_NAME));
        [(FILE, NAME)].into_iter().chain(control)
    }

    fn control_of(&self, inode: INodeNo) -> Option<&dyn BlockDevice> {
        self.control.as_deref().filter(|_| inode == CONTROL)
    }

    /// Replies now, or when the answer is due.
    fn reply(&self, op: Op, due: Due, send: impl FnOnce() + Send + 'static) {
        let Some(due) = due else { return send() };
        let observed = Arc::clone(&self.observed);
        observed.delayed(op);
        let later = move || {
            send();
            observed.replied(op);
        };
        self.timer.at(due, Box::new(later));
    }

    fn finish(&self, op: Op, result: Result<Due, Status>, reply: ReplyEmpty) {
        match result {
            Ok(due) => self.reply(op, due, move || reply.ok()),
            Err(status) => reply.error(errno(status)),
        }
    }

    /// The part of `offset..offset + len` that lies in the file.
    fn clamp(&self, inode: INodeNo, offset: u64, len: u64) -> u64 {
        len.min(self.size_of(inode).unwrap_or(0).saturating_sub(offset))
    }
}

/// Asks the kernel for large requests, and many at once.
pub(super) fn configure(config: &mut KernelConfig) {
    // Each call fails with the nearest value the kernel takes.
    if let Err(nearest) = config.set_max_write(MAX_WRITE) {
        let _ = config.set_max_write(nearest);
    }
    if let Err(nearest) = config.set_max_background(MAX_BACKGROUND) {
        let _ = config.set_max_background(nearest);
    }
}

pub(super) fn errno(status: Status) -> Errno {
    match status {
        Status::InvalidField => Errno::EINVAL,
        Status::NoSpace => Errno::ENOSPC,
        Status::Ok | Status::MediaError | Status::Poisoned => Errno::EIO,
    }
}

impl<D: BlockDevice + 'static> Filesystem for Disk<D> {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        configure(config);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = self.files().find(|(_, file)| parent == ROOT && name == *file);
        match found.and_then(|(inode, _)| self.attributes(inode)) {
            Some(attributes) => reply.entry(&TTL, &attributes, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(inode) {
            Some(attributes) => reply.attr(&TTL, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    /// A loop device discards in units of this block size. With the 512 bytes of a file system that does not say,
    /// parts of pages would be discarded, and each is read and written again.
    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let files = self.files().count();
        let blocks = self.observed.size() / PAGE_BYTES;
        reply.statfs(blocks, 0, 0, convert::u64_from(files), 0, BLOCK, NAME_MAX, BLOCK);
    }

    /// Times may be set to no effect; a size or an owner may not.
    fn setattr(
        &self,
        _: &Request,
        inode: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let resized = size.is_some_and(|size| Some(size) != self.size_of(inode));
        match self.attributes(inode) {
            None => reply.error(Errno::ENOENT),
            Some(_) if resized || mode.is_some() || uid.is_some() || gid.is_some() => {
                reply.error(Errno::EPERM);
            }
            Some(attributes) => reply.attr(&TTL, &attributes),
        }
    }

    fn open(&self, _: &Request, inode: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        if self.control_of(inode).is_some() {
            reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
        } else if inode == FILE {
            // Not DIRECT_IO: users that map the file or read ahead keep the page cache.
            reply.opened(FileHandle(0), FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES);
        } else {
            reply.error(Errno::EISDIR);
        }
    }

    fn read(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let len = self.clamp(inode, offset, u64::from(size));
        if len == 0 {
            return reply.data(&[]);
        }
        BUFFER.with_borrow_mut(|buffer| {
            buffer.resize(convert::index64(len), 0);
            let read = match self.control_of(inode) {
                Some(control) => control.read(offset, buffer),
                None => self.observed.read(offset, buffer),
            };
            match read {
                Ok(None) => reply.data(buffer),
                Ok(due) => {
                    let data = std::mem::take(buffer);
                    self.reply(Op::Read, due, move || reply.data(&data));
                }
                Err(status) => reply.error(errno(status)),
            }
            if buffer.capacity() > KEEP_BYTES {
                *buffer = Vec::new();
            }
        });
    }

    fn write(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        if self.read_only {
            return reply.error(Errno::EROFS);
        }
        let Ok(len) = u32::try_from(data.len()) else { return reply.error(Errno::EINVAL) };
        if self.clamp(inode, offset, u64::from(len)) != u64::from(len) {
            return reply.error(Errno::ENOSPC);
        }
        let written = match self.control_of(inode) {
            Some(control) => control.write(offset, data, false),
            None => self.observed.write(offset, data, false),
        };
        match written {
            Ok(due) => self.reply(Op::Write, due, move || reply.written(len)),
            Err(status) => reply.error(errno(status)),
        }
    }

    /// Sent at every close; it promises nothing.
    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.finish(Op::Flush, self.observed.flush(), reply);
    }

    /// The loop device sends discards and write-zeroes as punched holes, so a punched hole has to read as
    /// zeroes after a power cut too: it counts as a trim, but is never a plain one.
    fn fallocate(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let op = match mode {
            PUNCH_HOLE => Op::Trim,
            ZERO_RANGE => Op::WriteZeroes,
            _ => return reply.error(Errno::EOPNOTSUPP),
        };
        if self.control_of(inode).is_some() {
            return reply.error(Errno::EOPNOTSUPP);
        }
        if inode != FILE {
            return reply.error(Errno::EISDIR);
        }
        if self.read_only {
            return reply.error(Errno::EROFS);
        }
        // What lies behind the end of the file does not exist and stays so.
        let len = self.clamp(FILE, offset, length);
        if len == 0 {
            return reply.ok();
        }
        let done = match op {
            Op::Trim => self.observed.punch(offset, len),
            _ => self.observed.write_zeroes(offset, len, false, false),
        };
        self.finish(op, done, reply);
    }

    fn readdir(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        if inode != ROOT {
            return reply.error(Errno::ENOTDIR);
        }
        let directories = [(ROOT, FileType::Directory, "."), (ROOT, FileType::Directory, "..")];
        let files = self.files().map(|(inode, name)| (inode, FileType::RegularFile, name));
        let entries = directories.into_iter().chain(files);
        for (next, (inode, kind, name)) in (1..).zip(entries) {
            if next > offset && reply.add(inode, next, kind, name) {
                break;
            }
        }
        reply.ok();
    }
}
