//! The control socket of a served device: one JSON object per line (frontends.md, section 10).

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use onefold_device::mailbox::Mailbox;
use onefold_device::{BlockDevice, MailboxBlock, SsdDevice};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};
use serde_json::{Value, json};

use super::render;
use crate::error::{CliError, Exit};

/// Longest path of a Unix socket on Linux (unix(7)), in bytes.
pub(super) const PATH_MAX: usize = 107;
/// Longest line that is read.
const LINE_MAX: u64 = 65_536;
/// Longest wait for a client to say something.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest wait for an answer; a synchronisation may hold the device up, or copies that a remap needs.
const ANSWER: Duration = Duration::from_mins(5);
const BACKLOG: i32 = 16;

/// Where the control socket of an image is if nothing else is said.
pub(super) fn default_path(image: &Path) -> PathBuf {
    let mut path = image.as_os_str().to_owned();
    path.push(".sock");
    path.into()
}

/// A control socket. Its thread ends with the process; dropping this removes the file.
pub(super) struct Control {
    path: PathBuf,
}

impl Control {
    /// Answers at `path` for `device`.
    pub(super) fn start(path: &Path, device: SsdDevice) -> Result<Self, CliError> {
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
                let _ = converse(stream, &device);
            }
        };
        std::thread::Builder::new().name("control".into()).spawn(answer).map_err(failed)?;
        Ok(control)
    }
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

fn converse(stream: UnixStream, device: &SsdDevice) -> io::Result<()> {
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
        writer.write_all(format!("{}\n", answer(&line, device)).as_bytes())?;
    }
}

fn answer(line: &str, device: &SsdDevice) -> Value {
    let request: Value = match serde_json::from_str(line) {
        Ok(request) => request,
        Err(error) => return json!({"id": null, "error": format!("not JSON: {error}")}),
    };
    let id = &request["id"];
    let result = match request["cmd"].as_str() {
        Some("stats") => render::stats(device).ok_or_else(|| "the device is closed".to_owned()),
        Some("flush") => {
            device.flush().map(|_| Value::Null).map_err(|status| format!("flush: {status:?}"))
        }
        Some("mailbox") => match hex::read(request["block"].as_str().unwrap_or_default()) {
            Some(block) => Ok(hex::write(&device.exchange(&block)).into()),
            None => Err("block is not 4096 bytes as hexadecimal digits".to_owned()),
        },
        _ => {
            Err(format!("cmd is {}, expected \"stats\", \"flush\" or \"mailbox\"", request["cmd"]))
        }
    };
    match result {
        Ok(result) => json!({"id": id, "result": result}),
        Err(error) => json!({"id": id, "error": error}),
    }
}

/// The mailbox of the device behind a control socket.
pub(super) struct ControlMailbox(pub(super) PathBuf);

impl Mailbox for ControlMailbox {
    fn exchange(&mut self, block: &MailboxBlock) -> io::Result<MailboxBlock> {
        let request = json!({"id": 1, "cmd": "mailbox", "block": hex::write(block)});
        let line = exchange(&self.0, &request)?;
        let reply: Value = serde_json::from_str(&line).map_err(io::Error::other)?;
        let no_block = || io::Error::other(format!("the server said {line}"));
        reply["result"].as_str().and_then(hex::read).ok_or_else(no_block)
    }
}

/// Blocks of the mailbox as hexadecimal digits.
mod hex {
    use std::fmt::Write;

    use onefold_device::MailboxBlock;

    pub(super) fn write(block: &MailboxBlock) -> String {
        block.iter().fold(String::with_capacity(2 * block.len()), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    pub(super) fn read(text: &str) -> Option<MailboxBlock> {
        let digit = |digit: &u8| char::from(*digit).to_digit(16).and_then(|n| u8::try_from(n).ok());
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        let bytes: Option<Vec<u8>> =
            pairs.iter().map(|[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect();
        bytes.filter(|_| rest.is_empty())?.try_into().ok()
    }

    #[cfg(test)]
    mod tests {
        use super::{read, write};

        #[test]
        fn blocks_there_and_back() {
            let block = std::array::from_fn(|at| u8::try_from(at % 251).unwrap());
            assert_eq!(read(&write(&block)), Some(block));
            for bad in ["", "00", &"0".repeat(8191), &"0".repeat(8194), &"g".repeat(8192)] {
                assert_eq!(read(bad), None);
            }
        }
    }
}

/// Asks the server behind a control socket.
pub(super) fn ask(path: &Path, command: &str) -> Result<Value, CliError> {
    let failed = |text: String| {
        let text = format!("no answer from the control socket {}: {text}", path.display());
        CliError::new(Exit::Busy, "control::no_answer", text)
            .help("if the image is served with --control PATH, give the same option here")
    };
    let request = json!({"id": 1, "cmd": command});
    let line = exchange(path, &request).map_err(|error| failed(error.to_string()))?;
    let mut reply: Value =
        serde_json::from_str(&line).map_err(|error| failed(format!("not JSON: {error}")))?;
    match reply.get("error") {
        Some(error) => Err(failed(error.to_string())),
        None => Ok(reply["result"].take()),
    }
}

fn exchange(path: &Path, request: &Value) -> io::Result<String> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(ANSWER))?;
    stream.write_all(format!("{request}\n").as_bytes())?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    Ok(line)
}
