//! `onefold completions` and `onefold man`: what a package of this program has beside it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use clap_complete::{generate, shells};

use crate::error::{CliError, Exit};
use crate::output::Global;

/// A shell that completes commands.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ShellName {
    Bash,
    Zsh,
    Fish,
}

/// Arguments of `onefold completions`.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    shell: ShellName,
}

impl Completions {
    /// Prints what the shell reads to complete `command`.
    pub(crate) fn run(
        &self,
        mut command: clap::Command,
        global: &Global,
    ) -> Result<ExitCode, CliError> {
        let name = command.get_name().to_owned();
        let mut text = Vec::new();
        match self.shell {
            ShellName::Bash => generate(shells::Bash, &mut command, name, &mut text),
            ShellName::Zsh => generate(shells::Zsh, &mut command, name, &mut text),
            ShellName::Fish => generate(shells::Fish, &mut command, name, &mut text),
        }
        global.write(&String::from_utf8_lossy(&text))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Arguments of `onefold man`.
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Folder of section 1, such as /usr/local/share/man/man1; made if it is not there. Pages of this program are replaced
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

impl Man {
    /// Writes a page for `command` and for each of its subcommands.
    pub(crate) fn run(
        &self,
        mut command: clap::Command,
        global: &Global,
    ) -> Result<ExitCode, CliError> {
        fs::create_dir_all(&self.folder).map_err(|error| unwritten(&self.folder, &error))?;
        command.build();
        let pages = self.write(&command, global)?;
        global.say(format_args!("{pages} pages in {}", self.folder.display()));
        Ok(ExitCode::SUCCESS)
    }

    /// Writes the pages of a command and of what is below it, and counts them.
    fn write(&self, command: &clap::Command, global: &Global) -> Result<usize, CliError> {
        let man = clap_mangen::Man::new(command.clone());
        let path = self.folder.join(man.get_filename());
        let mut page = Vec::new();
        man.render(&mut page).map_err(|error| unwritten(&path, &error))?;
        if !global.force && !may_go(&path, command) {
            let text = format!("{} is there, and no page of this program", path.display());
            return Err(CliError::new(Exit::Usage, "output::foreign", text)
                .help("name another folder, or lose it with --force"));
        }
        fs::write(&path, &page).map_err(|error| unwritten(&path, &error))?;
        let below = command.get_subcommands().filter(|below| below.get_name() != "help");
        let mut pages = 1;
        for below in below {
            pages += self.write(below, global)?;
        }
        Ok(pages)
    }
}

/// Whether what is at `path` is nothing, or an older page of the same command.
fn may_go(path: &Path, command: &clap::Command) -> bool {
    let Ok(old) = fs::read(path) else { return !path.exists() };
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let title = format!(".TH {name} ");
    old.is_empty() || old.windows(title.len()).any(|part| part == title.as_bytes())
}

fn unwritten(path: &Path, error: &std::io::Error) -> CliError {
    let text = format!("cannot write {}: {error}", path.display());
    CliError::new(Exit::Failed, "output::write", text)
}
