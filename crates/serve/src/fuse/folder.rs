//! A folder of devices: a file for each, looked up by name, and there while somebody has it open.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, WriteFlags,
};
use onefold_device::{BlockDevice, Due};
use onefold_units::{Status, convert};

use super::disk::{Attributes, BLOCK, NAME_MAX, PUNCH_HOLE, ROOT, ZERO_RANGE, configure, errno};
use super::{Mount, failed};
use crate::error::ServeError;

/// What the kernel was told stays so.
const TTL: Duration = Duration::from_hours(1);
/// Time that an unmounted folder has for the requests under way.
const DRAIN: Duration = Duration::from_secs(5);

thread_local! {
    /// Each thread reads into its own buffer.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The files of a [`Folder`]. All requests are answered at once: a device that says when an answer is due is not waited for.
pub trait Files: Send + Sync + 'static {
    /// Bytes of the file with this name; `None` if there is none.
    fn size(&self, name: &str) -> Option<u64>;

    /// Makes the device that is the content of a file. It lives until nobody has the file open, and the next one who opens it gets
    /// a new one.
    fn open(&self, name: &str) -> Option<Box<dyn BlockDevice>>;

    /// The names that are listed. Others may be found too.
    fn names(&self) -> Vec<String>;
}

/// Devices that live although nobody has their file open, by name.
type Kept = Arc<Mutex<BTreeMap<String, Arc<dyn BlockDevice>>>>;

/// A mounted folder of devices. Dropped, it is unmounted.
///
/// A process that serves a file must not have it open itself, nor wait in the kernel for what lies on it, as for an unmount: killed
/// there, it could not end, as the kernel would wait for its answers. Others may.
pub struct Folder {
    mount: Mount,
    files: Arc<dyn Files>,
    kept: Kept,
}

impl Folder {
    /// Mounts the files in an empty directory.
    ///
    /// # Errors
    /// There is no such directory, or it cannot be mounted on.
    pub fn mount(files: impl Files, directory: &Path) -> Result<Self, ServeError> {
        let owner = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let (files, kept): (Arc<dyn Files>, Kept) = (Arc::new(files), Kept::default());
        let listed = Listed {
            files: Arc::clone(&files),
            kept: Arc::clone(&kept),
            owner,
            born: SystemTime::now(),
            nodes: Mutex::default(),
        };
        let mount = Mount::start(listed, directory, false, None);
        let mount = mount.map_err(|source| failed(directory, source))?;
        Ok(Self { mount, files, kept })
    }

    /// Lets the device of a file live until it is forgotten, if there is such a file.
    pub fn keep(&self, name: &str) {
        if let Some(device) = self.files.open(name) {
            lock(&self.kept).insert(name.to_owned(), device.into());
        }
    }

    /// Drops the device of a file that was kept, and tells the kernel to forget what it knows of the file, which nobody should have
    /// open: its pages, and that it is there.
    pub fn forget(&self, name: &str) {
        lock(&self.kept).remove(name);
        if let Some(notifier) = &self.mount.notifier {
            // The kernel may have forgotten it by itself.
            let _ = notifier.inval_entry(ROOT, OsStr::new(name));
        }
    }

    /// Calls this once somebody else unmounts it.
    pub fn when_unmounted(&self, tell: impl FnOnce() + Send + 'static) {
        self.mount.when_unmounted(Box::new(tell));
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        self.mount.finish(Instant::now() + DRAIN);
    }
}

/// A file that the kernel knows.
struct Node {
    name: String,
    size: u64,
    /// How often the kernel was told of it, less what it has forgotten.
    known: u64,
    opened: u64,
    device: Option<Arc<dyn BlockDevice>>,
}

#[derive(Default)]
struct Nodes {
    by_inode: BTreeMap<u64, Node>,
    by_name: BTreeMap<String, u64>,
    /// Inodes that were ever used, beside the root.
    used: u64,
}

impl Nodes {
    /// The inode of a name, that the kernel is told of now.
    fn tell(&mut self, name: &str, size: u64) -> INodeNo {
        let inode = *self.by_name.entry(name.to_owned()).or_insert_with(|| {
            self.used += 1;
            INodeNo::ROOT.0 + self.used
        });
        let new = || Node { name: name.to_owned(), size, known: 0, opened: 0, device: None };
        self.by_inode.entry(inode).or_insert_with(new).known += 1;
        INodeNo(inode)
    }

    fn forget(&mut self, inode: INodeNo, times: u64) {
        let Some(node) = self.by_inode.get_mut(&inode.0) else { return };
        node.known = node.known.saturating_sub(times);
        if node.known == 0
            && let Some(node) = self.by_inode.remove(&inode.0)
        {
            self.by_name.remove(&node.name);
        }
    }
}

struct Listed {
    files: Arc<dyn Files>,
    kept: Kept,
    owner: (u32, u32),
    born: SystemTime,
    nodes: Mutex<Nodes>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Listed {
    fn nodes(&self) -> MutexGuard<'_, Nodes> {
        lock(&self.nodes)
    }

    fn attributes(&self, inode: INodeNo) -> Option<FileAttr> {
        let (kind, perm, size, nlink) = if inode == ROOT {
            (FileType::Directory, 0o500, 0, 2)
        } else {
            (FileType::RegularFile, 0o600, self.nodes().by_inode.get(&inode.0)?.size, 1)
        };
        let file = Attributes { kind, perm, size, nlink, block: BLOCK };
        Some(file.of(inode, self.owner, self.born))
    }

    /// The device of an open file, and the part of a range that lies in it.
    fn device(&self, inode: INodeNo, offset: u64, len: u64) -> Option<(Arc<dyn BlockDevice>, u64)> {
        let nodes = self.nodes();
        let node = nodes.by_inode.get(&inode.0)?;
        Some((Arc::clone(node.device.as_ref()?), len.min(node.size.saturating_sub(offset))))
    }
}

fn finish(done: Result<Due, Status>, reply: ReplyEmpty) {
    match done {
        Ok(_) => reply.ok(),
        Err(status) => reply.error(errno(status)),
    }
}

impl Filesystem for Listed {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        configure(config);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let name = name.to_str().filter(|_| parent == ROOT);
        let found = name.and_then(|name| Some((name, self.files.size(name)?)));
        let inode = found.map(|(name, size)| self.nodes().tell(name, size));
        match inode.and_then(|inode| self.attributes(inode)) {
            Some(attributes) => reply.entry(&TTL, &attributes, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn forget(&self, _: &Request, inode: INodeNo, times: u64) {
        self.nodes().forget(inode, times);
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(inode) {
            Some(attributes) => reply.attr(&TTL, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    /// A loop device discards in units of this block size.
    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        reply.statfs(0, 0, 0, 0, 0, BLOCK, NAME_MAX, BLOCK);
    }

    fn open(&self, _: &Request, inode: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let mut nodes = self.nodes();
        let Some(node) = nodes.by_inode.get_mut(&inode.0) else {
            return reply.error(Errno::EISDIR);
        };
        let mut flags = FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        let kept = lock(&self.kept).get(&node.name).cloned();
        if node.device.is_some() || kept.is_some() {
            // What the kernel has read of it is still so.
            flags |= FopenFlags::FOPEN_KEEP_CACHE;
        }
        if node.device.is_none() {
            node.device = kept.or_else(|| self.files.open(&node.name).map(Arc::from));
        }
        if node.device.is_none() {
            return reply.error(Errno::ENOENT);
        }
        node.opened += 1;
        reply.opened(FileHandle(0), flags);
    }

    fn release(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        if let Some(node) = self.nodes().by_inode.get_mut(&inode.0) {
            node.opened = node.opened.saturating_sub(1);
            if node.opened == 0 {
                node.device = None;
            }
        }
        reply.ok();
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
        let Some((device, len)) = self.device(inode, offset, size.into()) else {
            return reply.error(Errno::EIO);
        };
        BUFFER.with_borrow_mut(|buffer| {
            buffer.resize(convert::index64(len), 0);
            match device.read(offset, buffer) {
                Ok(_) => reply.data(buffer),
                Err(status) => reply.error(errno(status)),
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
        let Ok(len) = u32::try_from(data.len()) else { return reply.error(Errno::EINVAL) };
        match self.device(inode, offset, len.into()) {
            Some((device, fits)) if fits == u64::from(len) => {
                match device.write(offset, data, false) {
                    Ok(_) => reply.written(len),
                    Err(status) => reply.error(errno(status)),
                }
            }
            Some(_) => reply.error(Errno::ENOSPC),
            None => reply.error(Errno::EIO),
        }
    }

    /// Sent at every close; it promises nothing.
    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, inode: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        match self.device(inode, 0, 0) {
            Some((device, _)) => finish(device.flush(), reply),
            None => reply.error(Errno::EIO),
        }
    }

    /// The loop device sends discards and write-zeroes as punched holes, which have to read as zeroes.
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
        if ![PUNCH_HOLE, ZERO_RANGE].contains(&mode) {
            return reply.error(Errno::EOPNOTSUPP);
        }
        match self.device(inode, offset, length) {
            // What lies behind the end of the file does not exist and stays so.
            Some((_, 0)) => reply.ok(),
            Some((device, len)) => {
                finish(device.write_zeroes(offset, len, mode == PUNCH_HOLE, false), reply);
            }
            None => reply.error(Errno::EIO),
        }
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
        let dots = [".", ".."].map(|name| (FileType::Directory, name.to_owned()));
        let files = self.files.names().into_iter().map(|name| (FileType::RegularFile, name));
        let entries = dots.into_iter().chain(files);
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        for (next, (kind, name)) in (1..).zip(entries).skip(from) {
            // Who looks a name up gets its inode.
            if reply.add(INodeNo(u64::MAX), next, kind, name) {
                break;
            }
        }
        reply.ok();
    }
}
