//! One run of a program on a disk that is taped.

mod disk;
mod marks;
mod program;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use onefold_device::WriteLog;
use onefold_device::observed::{Frontend, Observed, Recorded};
use onefold_serve::Server;

use crate::TryError;
use crate::room::{FileSystem, MARKS_VARIABLE, Mounted, Place, SYNC};
use crate::tape::{self, About, FileSystemOf, Kept, Printed, ProgramRun, STDERR, STDOUT, Tape};
use disk::FileDisk;
use program::{Listener, Running};

pub use marks::mark;

/// How often is looked at a file system that changes.
const LOOK: Duration = Duration::from_secs(1);
/// Share of the time of the program that looks may take: one in so many.
const LOOK_SHARE: u32 = 20;

/// What to run, and on what.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The file system on the disk.
    pub file_system: FileSystem,
    /// Options of its mkfs, apart by white space.
    pub mkfs: String,
    /// Options of mount.
    pub mount: String,
    /// Bytes of the disk.
    pub bytes: u64,
    /// What a shell does there before the tape begins.
    pub prepare: Option<String>,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The folder of the tape, which is made.
    pub tape: PathBuf,
    /// Seed of everything random, for the tape.
    pub seed: u64,
    /// How long the program may run.
    pub timeout: Option<Duration>,
    /// Whether the user sees what it prints.
    pub is_shown: bool,
}

/// How it went.
#[derive(Debug)]
pub struct Ran {
    /// Everything that happened.
    pub tape: Tape,
    /// What was not as it should be.
    pub end: End,
}

/// How a program ended, beside its exit code.
#[derive(Debug)]
pub struct End {
    /// Whether it ran for longer than it might, and was killed.
    pub is_late: bool,
    /// Processes that it left, which were ended.
    pub left: usize,
    /// Whether the file system was full at some moment.
    pub is_full: bool,
    /// Whether the last writes reached the disk.
    pub unmounted: Result<(), TryError>,
}

/// Looks at the file system while the program runs: its folder, and the last entry of the log.
pub type Look<'a> = dyn FnMut(&Path, u64) + 'a;

/// Runs a program on a new disk, with its mounts and sockets in `place`. `look` is called at the end, and at most once a second if something was written since.
///
/// # Errors
/// The disk cannot be made, mounted or served, or the program cannot be started. What the program does is no error.
pub fn run(
    plan: &Plan,
    place: &Place,
    stop: &AtomicBool,
    look: &mut Look<'_>,
) -> Result<Ran, TryError> {
    plan.file_system.expect_usable(true)?;
    // What a program leaves behind becomes a child of this process, which waits for it then.
    if let Err(error) = rustix::process::set_child_subreaper(Some(rustix::process::getpid())) {
        tracing::warn!(%error, "what processes write that outlive the program is not counted");
    }
    let image = place.path("disk.img");
    let file = File::create_new(&image).map_err(TryError::io("create", &image))?;
    file.set_len(plan.bytes).map_err(TryError::io("create", &image))?;
    plan.file_system.make(&image, &plan.mkfs)?;
    let stage = Stage { plan, place };
    if let Some(prepare) = &plan.prepare {
        stage.prepare(prepare, &image)?;
    }
    let disk = FileDisk::open(&image)?;
    let recorded = Recorded {
        device_bytes: plan.bytes,
        device_uuid: [0; 16],
        lba_bytes: 512,
        behind_loop: plan.file_system != FileSystem::None,
    };
    let (mut kept, observed) = tape::keep(&plan.tape, disk, &recorded, stage.about())?;
    let server = Server::start(observed, &stage.front_ends()?)?;
    let ran = stage.run_on(&server, &mut kept, stop, look);
    let stopped = server.stop();
    // What kept it from running matters more than what that led to.
    let end = match ran {
        Ok(end) => end,
        Err(error) => {
            if kept.about.program.is_none() {
                kept.discard();
            }
            return Err(error);
        }
    };
    stopped?;
    // The tape has all that it held.
    std::fs::remove_file(&image).map_err(TryError::io("remove", &image))?;
    Ok(Ran { tape: kept.end()?, end })
}

/// Where a program runs.
struct Stage<'a> {
    plan: &'a Plan,
    place: &'a Place,
}

impl Stage<'_> {
    fn about(&self) -> About {
        let plan = self.plan;
        let mut about = About::new(plan.bytes, plan.seed);
        about.file_system = Some(FileSystemOf {
            name: plan.file_system.name().to_owned(),
            mkfs: plan.mkfs.split_whitespace().map(str::to_owned).collect(),
            mount: (!plan.mount.is_empty()).then(|| plan.mount.clone()),
        });
        about
    }

    fn front_ends(&self) -> Result<onefold_serve::Options, TryError> {
        let mut options = onefold_serve::Options::new("disk");
        options.fuse = Some(self.place.folder("fuse")?);
        if self.plan.file_system == FileSystem::None {
            options.nbd.push(onefold_serve::nbd::Endpoint::Unix(self.nbd()));
        }
        Ok(options)
    }

    /// The socket at which the disk is served where there is no file system.
    fn nbd(&self) -> PathBuf {
        self.place.path("nbd")
    }

    /// The file that is the disk.
    fn device(&self) -> PathBuf {
        self.place.path("fuse").join("disk")
    }

    /// A command that finds its disk.
    fn command(&self, program: &str, device: &Path, directory: &Path) -> Command {
        let mut command = Command::new(program);
        command.env(MARKS_VARIABLE, self.place.marks()).env("ONEFOLD_DEVICE", device);
        if self.plan.file_system == FileSystem::None {
            command.env("ONEFOLD_NBD", format!("nbd+unix:///disk?socket={}", self.nbd().display()));
        } else {
            command.env("ONEFOLD_DIR", directory).current_dir(directory);
        }
        command
    }

    fn mount(&self, image: &Path) -> Result<Option<Mounted>, TryError> {
        if self.plan.file_system == FileSystem::None {
            return Ok(None);
        }
        let directory = self.place.path("mnt");
        if !directory.is_dir() {
            self.place.folder("mnt")?;
        }
        Mounted::new(image, &directory, self.plan.file_system, &self.plan.mount).map(Some)
    }

    /// Runs a command of the shell before anything is kept.
    fn prepare(&self, text: &str, image: &Path) -> Result<(), TryError> {
        let mounted = self.mount(image)?;
        let directory = mounted.as_ref().map_or_else(|| Path::new("."), Mounted::directory);
        let mut command = self.command("sh", image, directory);
        command.args(["-c", text]).stdout(std::io::stderr());
        let status = command.status().map_err(TryError::io("run", Path::new("sh")))?;
        let _ = self.place.end_processes(true);
        mounted.map_or(Ok(()), Mounted::unmount)?;
        if !status.success() {
            return Err(TryError::Prepare { command: text.to_owned(), code: status.code() });
        }
        Ok(())
    }

    fn run_on(
        &self,
        server: &Server<FileDisk>,
        kept: &mut Kept,
        stop: &AtomicBool,
        look: &mut Look<'_>,
    ) -> Result<End, TryError> {
        let observed = Arc::new(server.observed().client(Frontend::Local));
        marks::listen(&self.place.marks(), Arc::clone(&observed))?;
        let mounted = self.mount(&self.device())?;
        let directory = mounted.as_ref().map(|mounted| mounted.directory().to_owned());
        let mut watch = Watch::new(directory.clone(), Arc::clone(&observed), look);
        let mut run = ProgramRun::new(self.plan.command.clone());
        run.began_entry = watch.entries();
        kept.about.program = Some(run.clone());
        kept.write()?;
        let running = self.start(&directory.unwrap_or_default(), kept, &observed);
        if running.is_err() {
            kept.about.program = None;
        }
        let mut running = running?;
        let (status, is_late) = running.wait(self.plan.timeout, stop, || watch.now_and_then())?;
        run.seconds = Some(running.elapsed().as_secs_f64());
        (run.exit_code, run.signal) = program::ended(status);
        let has_time = !is_late && !stop.load(Relaxed);
        let left = self.place.end_processes(has_time);
        run.ended_entry = Some(watch.entries());
        run.dirtied_bytes = running.finish();
        kept.about.program = Some(run);
        watch.last();
        let is_full = watch.is_full;
        let unmounted = mounted.map_or(Ok(()), Mounted::unmount);
        Ok(End { is_late, left, is_full, unmounted })
    }

    fn start(
        &self,
        directory: &Path,
        kept: &Kept,
        observed: &Arc<Observed<FileDisk>>,
    ) -> Result<Running, TryError> {
        let (program, arguments) = self.plan.command.split_first().ok_or(TryError::NothingToRun)?;
        let mut command = self.command(program, &self.device(), directory);
        command.args(arguments);
        let listener = |name: &str| {
            let printed = Printed::create(&kept.file(name))?;
            let observed = Arc::clone(observed);
            Ok::<_, TryError>(Listener { observed, printed, is_shown: self.plan.is_shown })
        };
        Running::start(&mut command, [listener(STDOUT)?, listener(STDERR)?])
    }
}

/// Looks at the file system while the program runs.
struct Watch<'a, 'b> {
    directory: Option<PathBuf>,
    observed: Arc<Observed<FileDisk>>,
    look: &'a mut Look<'b>,
    looked: Instant,
    /// Not before this time has passed is looked again.
    pause: Duration,
    /// The last entry of the log when it was looked.
    seen: u64,
    is_full: bool,
}

impl<'a, 'b> Watch<'a, 'b> {
    fn new(
        directory: Option<PathBuf>,
        observed: Arc<Observed<FileDisk>>,
        look: &'a mut Look<'b>,
    ) -> Self {
        Self {
            directory,
            observed,
            look,
            looked: Instant::now(),
            pause: LOOK,
            seen: 0,
            is_full: false,
        }
    }

    fn entries(&self) -> u64 {
        self.observed.log().map_or(0, WriteLog::entries)
    }

    fn now_and_then(&mut self) {
        if self.looked.elapsed() < self.pause {
            return;
        }
        let begun = Instant::now();
        if self.entries() > self.seen {
            self.look();
        }
        self.pause = LOOK.max(begun.elapsed() * LOOK_SHARE);
        self.looked = Instant::now();
    }

    fn look(&mut self) {
        let Some(directory) = &self.directory else { return };
        self.seen = self.entries();
        (self.look)(directory, self.seen);
        let room = rustix::fs::statvfs(directory);
        self.is_full |= room.is_ok_and(|room| room.f_bavail * 200 < room.f_blocks);
    }

    /// Everything that the program made dirty goes to the disk, and is looked at.
    fn last(&mut self) {
        if let Some(directory) = &self.directory {
            let synced = SYNC
                .command()
                .and_then(|mut command| SYNC.run(command.arg("--file-system").arg(directory)));
            if let Err(error) = synced {
                tracing::warn!(%error, "not everything that the program wrote reached the disk");
            }
        }
        self.look();
    }
}
