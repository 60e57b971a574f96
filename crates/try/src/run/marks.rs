//! Marks of a program: a socket at which it says what it has promised.

use std::fs::{Permissions, set_permissions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use onefold_device::BlockDevice;
use onefold_device::observed::Observed;

use crate::TryError;
use crate::room::MARKS_VARIABLE;

/// Bytes of a text that is looked at.
const TEXT_MAX: u64 = 4096;
/// How long a client may say nothing.
const PATIENCE: Duration = Duration::from_secs(5);

/// Takes marks at a socket until the process ends.
pub(super) fn listen<D: BlockDevice + 'static>(
    path: &Path,
    observed: Arc<Observed<D>>,
) -> Result<(), TryError> {
    let listener = UnixListener::bind(path).map_err(TryError::io("listen at", path))?;
    // The program may have given up root.
    let everyone = Permissions::from_mode(0o666);
    set_permissions(path, everyone).map_err(TryError::io("listen at", path))?;
    let serve = move || {
        for client in listener.incoming().flatten() {
            if let Err(error) = answer(&client, &observed) {
                tracing::warn!(%error, "a mark got lost");
            }
        }
    };
    let thread = std::thread::Builder::new().name("marks".into());
    thread.spawn(serve).map_err(TryError::io("start a thread for", path))?;
    Ok(())
}

/// Marks each line of a client, and tells it when that is done.
fn answer<D: BlockDevice>(client: &UnixStream, observed: &Observed<D>) -> io::Result<()> {
    client.set_read_timeout(Some(PATIENCE))?;
    let mut reader = BufReader::new(client);
    let mut line = String::new();
    while io::Read::take(&mut reader, TEXT_MAX).read_line(&mut line)? > 0 {
        let marked = observed.log().map_or(Ok(()), |log| log.mark(line.trim_end_matches('\n')));
        let reply = marked.map_or_else(|error| format!("{error}\n"), |()| "ok\n".to_owned());
        (&mut &*client).write_all(reply.as_bytes())?;
        line.clear();
    }
    Ok(())
}

/// Marks this moment in the tape of the program that runs this, with a text.
///
/// # Errors
/// No tape is kept of it, or it refuses the text.
pub fn mark(text: &str) -> Result<(), TryError> {
    let path = std::env::var_os(MARKS_VARIABLE).ok_or(TryError::NotTried)?;
    let path = Path::new(&path);
    let refused = |problem: String| TryError::Mark { problem };
    if text.contains('\n') {
        return Err(refused("a mark is one line".to_owned()));
    }
    let failed = TryError::io("mark at", path);
    let mut server = UnixStream::connect(path).map_err(&failed)?;
    server.write_all(format!("{text}\n").as_bytes()).map_err(&failed)?;
    let mut reply = String::new();
    BufReader::new(server).read_line(&mut reply).map_err(&failed)?;
    match reply.trim_end() {
        "ok" => Ok(()),
        problem => Err(refused(problem.to_owned())),
    }
}
