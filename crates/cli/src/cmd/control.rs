//! The control socket of a served device or volume: one JSON object per line (frontends.md, section 10).
//!
//! What is answered is a table of each noun: a new command is a line there.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};
use serde_json::{Value, json};

use crate::error::{CliError, Exit};
use crate::output::Global;

/// Longest path of a Unix socket on Linux (unix(7)), in bytes.
const PATH_MAX: usize = 107;
/// Longest line that is read.
const LINE_MAX: u64 = 65_536;
/// Longest wait for a client to say something.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest wait for an answer; a synchronisation may hold the device up, or copies that a remap needs.
const ANSWER: Duration = Duration::from_mins(5);
const BACKLOG: i32 = 16;

/// Where the control socket of an image is if nothing else is said.
pub(crate) fn default_path(image: &Path) -> PathBuf {
    let mut path = image.as_os_str().to_owned();
    path.push(".sock");
    path.into()
}

/// A command of a control socket: its name, and what it does with the device and the request. An error is told as it is.
pub(crate) type Command<D> = (&'static str, fn(&D, &Value) -> Result<Value, String>);

/// A control socket. Its thread ends with the process; dropping this removes the file.
pub(crate) struct Control {
    path: PathBuf,
}

impl Control {
    /// Answers at `path` for `device`.
    pub(crate) fn start<D: Send + 'static>(
        path: &Path,
        device: D,
        commands: &'static [Command<D>],
    ) -> Result<Self, CliError> {
        remove_stale(path)?;
        let failed = |error: io::Error| {
            let text = format!("cannot open the control socket {}: {error}", path.display());
            CliError::new(Exit::Failed, "control::listen", text)
        };
        let listener = listen(path).map_err(failed)?;
        let control = Self { path: path.to_owned() };
        let answer = move || {
            for stream in listener.incoming().flatten() {
                // A client that left needs no answer.
                let _ = converse(stream, &device, commands);
            }
        };
        std::thread::Builder::new().name("control".into()).spawn(answer).map_err(failed)?;
        Ok(control)
    }
}

/// Opens the control socket of what is served from `served`. A path that no socket can have is an error only if it was
/// asked for.
pub(crate) fn open<D: Send + 'static>(
    global: &Global,
    asked: Option<&Path>,
    served: &Path,
    device: D,
    commands: &'static [Command<D>],
) -> Result<Option<Control>, CliError> {
    let default = default_path(served);
    let path = asked.unwrap_or(&default);
    if asked.is_none() && path.as_os_str().len() > PATH_MAX {
        global.say(format_args!(
            "no control socket: {} is too long for one; choose another with --control",
            path.display()
        ));
        return Ok(None);
    }
    Control::start(path, device, commands).map(Some)
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Removes the socket that a killed server left. The caller holds the lock of the image, but the path
/// may belong to another one.
fn remove_stale(path: &Path) -> Result<(), CliError> {
    let Ok(metadata) = std::fs::symlink_metadata(path) else { return Ok(()) };
    let shown = path.display();
    if !metadata.file_type().is_socket() {
        let text = format!("{shown} is not a socket, expected none or one of a server");
        return Err(CliError::new(Exit::Usage, "control::path", text)
            .help("choose another path with --control"));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(|error| {
                let text = format!("cannot remove the stale control socket {shown}: {error}");
                CliError::new(Exit::Failed, "control::stale", text)
            })
        }
        _ => Err(CliError::new(
            Exit::Busy,
            "control::in_use",
            format!("another server answers on the control socket {shown}"),
        )
        .help("choose another path with --control")),
    }
}

fn listen(path: &Path) -> io::Result<UnixListener> {
    let address = SocketAddrUnix::new(path)?;
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // The file gets the mode that the socket has when it is bound.
    rustix::fs::fchmod(&socket, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)?;
    rustix::net::bind(&socket, &address)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

fn is_ours(stream: &UnixStream) -> bool {
    let me = rustix::process::geteuid();
    sockopt::socket_peercred(stream).is_ok_and(|peer| peer.uid == me || peer.uid.is_root())
}

fn converse<D>(stream: UnixStream, device: &D, commands: &[Command<D>]) -> io::Result<()> {
    if !is_ours(&stream) {
        return Ok(());
    }
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if reader.by_ref().take(LINE_MAX).read_line(&mut line)? == 0 {
            return Ok(());
        }
        writer.write_all(format!("{}\n", answer(&line, device, commands)).as_bytes())?;
    }
}

fn answer<D>(line: &str, device: &D, commands: &[Command<D>]) -> Value {
    let request: Value = match serde_json::from_str(line) {
        Ok(request) => request,
        Err(error) => return json!({"id": null, "error": format!("not JSON: {error}")}),
    };
    let id = &request["id"];
    let known = commands.iter().find(|(name, _)| request["cmd"] == *name);
    let result = known.map_or_else(
        || {
            let names: Vec<_> = commands.iter().map(|(name, _)| format!("{name:?}")).collect();
            Err(format!("cmd is {}, expected one of {}", request["cmd"], names.join(", ")))
        },
        |(_, command)| command(device, &request),
    );
    match result {
        Ok(result) => json!({"id": id, "result": result}),
        Err(error) => json!({"id": id, "error": error}),
    }
}

/// Gives a command without arguments to the server behind a control socket.
pub(crate) fn ask(path: &Path, command: &str) -> Result<Value, CliError> {
    request(path, json!({"cmd": command}))
}

/// Gives a command to the server behind a control socket.
pub(crate) fn request(path: &Path, mut request: Value) -> Result<Value, CliError> {
    let failed = |text: String| {
        let text = format!("no answer from the control socket {}: {text}", path.display());
        CliError::new(Exit::Busy, "control::no_answer", text)
    };
    request["id"] = 1.into();
    let line = exchange(path, &request).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::BrokenPipe => {
            let text = "the server went away, and whether it did what it was asked is not known";
            failed(text.to_owned()).help(
                "look with `info`, and give the command again: without a server it is done at once",
            )
        }
        _ => failed(error.to_string())
            .help("if the image is served with --control PATH, give the same option here"),
    })?;
    let mut reply: Value =
        serde_json::from_str(&line).map_err(|error| failed(format!("not JSON: {error}")))?;
    match reply.get("error") {
        Some(error) => {
            let text = error.as_str().map_or_else(|| error.to_string(), str::to_owned);
            Err(CliError::new(Exit::Usage, "control::refused", text))
        }
        None => Ok(reply["result"].take()),
    }
}

/// Sends a request and waits for the line of its answer.
pub(crate) fn exchange(path: &Path, request: &Value) -> io::Result<String> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(ANSWER))?;
    stream.write_all(format!("{request}\n").as_bytes())?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    if line.ends_with('\n') { Ok(line) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Whether somebody answers at a control socket. A server that was killed leaves its socket, and may hold its locks for a moment.
pub(crate) fn answers(path: &Path) -> bool {
    UnixStream::connect(path).is_ok()
}
