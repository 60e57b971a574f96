//! FUSE file: one directory with the file `disk`, to be mounted through a loop device, and `disk.ctl`
//! (frontends.md, section 3).
//!
//! The crate `fuser` changes its interface with every release, so only this module knows it.

mod disk;
mod folder;
mod timer;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fuser::{Config, Filesystem, MountOption, Notifier, Session, SessionUnmounter};
use onefold_device::BlockDevice;
use onefold_device::observed::{Frontend, Observed};
use rustix::mount::UnmountFlags;

use crate::error::ServeError;
use disk::{Disk, FILE};
pub use folder::{Files, Folder};
use timer::ReplyTimer;

/// Threads that handle requests. With a loop device two reach twice the rate of one.
const THREADS: usize = 2;

/// Who is told when the file system is unmounted by somebody else.
#[derive(Default)]
struct Unmounted(Mutex<Listener>);

#[derive(Default)]
enum Listener {
    #[default]
    None,
    Waits(Box<dyn FnOnce() + Send>),
    /// Too late to wait for it.
    Over,
}

impl Unmounted {
    fn swap(&self, listener: Listener) -> Listener {
        std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), listener)
    }

    /// The session is over.
    fn tell(&self) {
        if let Listener::Waits(tell) = self.swap(Listener::Over) {
            tell();
        }
    }
}

/// A mounted FUSE file system.
pub(crate) struct Mount {
    mountpoint: PathBuf,
    unmounter: SessionUnmounter,
    session: Option<JoinHandle<io::Result<()>>>,
    listener: Arc<Unmounted>,
    /// Sends replies that are due later, where there are such.
    timer: Option<Arc<ReplyTimer>>,
    /// Keeps the connection open, so it goes when the session ends.
    notifier: Option<Arc<Notifier>>,
}

impl Mount {
    /// Mounts the device as the file `disk` in the directory `mountpoint`.
    pub(crate) fn new<D: BlockDevice + 'static>(
        observed: &Observed<D>,
        mountpoint: &Path,
        read_only: bool,
    ) -> io::Result<Self> {
        let timer = ReplyTimer::start()?;
        let disk = Disk::new(observed.client(Frontend::Fuse), read_only, Arc::clone(&timer));
        let mount = Self::start(disk, mountpoint, read_only, Some(timer))?;
        if let Some(notifier) = &mount.notifier {
            tell_size(observed, notifier);
        }
        Ok(mount)
    }

    /// Mounts a file system in the directory `mountpoint`.
    fn start(
        files: impl Filesystem + 'static,
        mountpoint: &Path,
        read_only: bool,
        timer: Option<Arc<ReplyTimer>>,
    ) -> io::Result<Self> {
        // Also tells a missing directory before anything is mounted.
        let mountpoint = mountpoint.canonicalize()?;
        expect_empty(&mountpoint)?;
        let mut session = Session::new(files, &mountpoint, &config(read_only))?;
        let unmounter = session.unmount_callable();
        let notifier = Arc::new(session.notifier());
        let listener = Arc::new(Unmounted::default());
        let told = Arc::clone(&listener);
        let run = move || {
            let result = session.run();
            told.tell();
            result
        };
        let thread = std::thread::Builder::new().name("fuse".into()).spawn(run)?;
        let (session, notifier) = (Some(thread), Some(notifier));
        Ok(Self { mountpoint, unmounter, session, listener, timer, notifier })
    }

    /// Calls this once somebody else unmounts it, or at once if that has happened.
    pub(crate) fn when_unmounted(&self, tell: Box<dyn FnOnce() + Send>) {
        if let Listener::Over = self.listener.swap(Listener::Waits(tell)) {
            self.listener.tell();
        }
    }

    /// Unmounts and waits for the requests that are executed, at the latest until `deadline`. A
    /// file system that is busy is detached, so that it disappears with its last user.
    pub(crate) fn finish(&mut self, deadline: Instant) {
        let Some(session) = self.session.take() else { return };
        self.listener.swap(Listener::Over);
        self.notifier = None;
        if !session.is_finished() {
            self.unmount();
        }
        while !session.is_finished() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        if session.is_finished() {
            if let Ok(Err(error)) = session.join() {
                tracing::warn!(%error, "the FUSE session ended with an error");
            }
        } else {
            tracing::warn!(
                mountpoint = %self.mountpoint.display(),
                "the FUSE file is still in use; its users will see I/O errors"
            );
        }
        if let Some(timer) = &self.timer {
            timer.stop();
        }
    }

    fn unmount(&mut self) {
        match rustix::mount::unmount(&self.mountpoint, UnmountFlags::empty()) {
            Ok(()) => return,
            Err(rustix::io::Errno::BUSY) => {
                tracing::warn!(
                    mountpoint = %self.mountpoint.display(),
                    "the FUSE file is in use (a loop device?): detaching it"
                );
                let _ = rustix::mount::unmount(&self.mountpoint, UnmountFlags::DETACH);
                return;
            }
            // Without privileges the mount helper has to do it.
            Err(_) => {}
        }
        if let Err(error) = self.unmounter.unmount() {
            tracing::warn!(%error, mountpoint = %self.mountpoint.display(), "cannot unmount");
        }
    }
}

/// What it means that a mount failed.
pub(crate) fn failed(mountpoint: &Path, source: io::Error) -> ServeError {
    let mountpoint = mountpoint.to_owned();
    match rustix::io::Errno::from_io_error(&source) {
        Some(rustix::io::Errno::NOTCONN) => ServeError::DeadMount { mountpoint },
        _ => ServeError::Mount { mountpoint, source },
    }
}

/// Refuses what a mount would hide: a file, or the files in a directory.
fn expect_empty(mountpoint: &Path) -> io::Result<()> {
    // What a server left that was killed is no directory any more, and the system says so.
    if !mountpoint.metadata()?.is_dir() {
        return Err(io::Error::new(io::ErrorKind::NotADirectory, "it is no directory"));
    }
    let Some(entry) = mountpoint.read_dir()?.next() else { return Ok(()) };
    let name = entry?.file_name();
    let text = format!("it holds \"{}\", which would be hidden", name.display());
    Err(io::Error::new(io::ErrorKind::DirectoryNotEmpty, text))
}

/// Tells the kernel when the size changed. It asks for the new one when it is needed next, and forgets what it knows of the
/// file from the new end on.
fn tell_size<D: BlockDevice + 'static>(observed: &Observed<D>, notifier: &Arc<Notifier>) {
    let notifier = Arc::downgrade(notifier);
    observed.watch_size(Box::new(move |size| {
        let Some(notifier) = notifier.upgrade() else { return };
        let end = i64::try_from(size).unwrap_or(i64::MAX);
        if let Err(error) = notifier.inval_inode(FILE, end, 0) {
            tracing::warn!(%error, "the kernel does not take the new size of the FUSE file");
        }
    }));
}

fn config(read_only: bool) -> Config {
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName("onefold".into()),
        MountOption::Subtype("onefold".into()),
        MountOption::NoExec,
        MountOption::NoSuid,
        MountOption::NoDev,
        MountOption::DefaultPermissions,
        if read_only { MountOption::RO } else { MountOption::RW },
    ];
    config.n_threads = Some(THREADS);
    config.clone_fd = true;
    config
}
