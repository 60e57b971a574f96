//! Programs of the system.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use crate::TryError;

/// Where programs for root are, whatever `PATH` says.
const MORE_FOLDERS: [&str; 2] = ["/usr/sbin", "/sbin"];
/// Bytes at the end of a program's output that are told.
const TOLD_BYTES: usize = 400;

/// A program and the Debian package that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) package: &'static str,
}

/// Mounts through loop devices.
pub(super) const MOUNT: Tool = Tool { name: "mount", package: "mount" };
/// Unmounts from a process of its own. A thread that serves the disk itself, and is killed while it waits in the kernel for the last
/// writes, could never end: the kernel would wait for answers of the same process.
pub(super) const UMOUNT: Tool = Tool { name: "umount", package: "mount" };

/// Writes everything out, from a process of its own for the same reason.
pub(crate) const SYNC: Tool = Tool { name: "sync", package: "coreutils" };

impl Tool {
    /// Where it is.
    pub(crate) fn find(self) -> Result<PathBuf, TryError> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::env::split_paths(&path).chain(MORE_FOLDERS.map(PathBuf::from));
        let mut files = folders.map(|folder| folder.join(self.name));
        let found = files.find(|file| file.is_file());
        found.ok_or(TryError::NoTool { tool: self.name, package: self.package })
    }

    /// A command that runs it, with nothing to read.
    pub(crate) fn command(self) -> Result<Command, TryError> {
        let mut command = Command::new(self.find()?);
        command.stdin(Stdio::null()).env("LC_ALL", "C");
        Ok(command)
    }

    /// Runs a command of it that has to succeed.
    pub(crate) fn run(self, command: &mut Command) -> Result<(), TryError> {
        let output = output(command)?;
        if output.status.success() {
            return Ok(());
        }
        let arguments: Vec<_> =
            command.get_args().map(|argument| argument.to_string_lossy()).collect();
        let action = format!("`{} {}`", self.name, arguments.join(" "));
        Err(TryError::Tool { action, code: output.status.code(), output: said(&output) })
    }
}

/// Runs a command and keeps what it says.
pub(crate) fn output(command: &mut Command) -> Result<Output, TryError> {
    let program = command.get_program().to_owned();
    command.output().map_err(|source| TryError::io("run", program.as_ref())(source))
}

/// The end of what a program said, on one line.
pub(crate) fn said(output: &Output) -> String {
    let text = [&output.stderr[..], &output.stdout[..]].concat();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let line = lines.join("; ");
    let from = line.len().saturating_sub(TOLD_BYTES);
    let from = (from..=line.len()).find(|at| line.is_char_boundary(*at)).unwrap_or(0);
    if line.is_empty() { "it said nothing".to_owned() } else { line[from..].to_owned() }
}
