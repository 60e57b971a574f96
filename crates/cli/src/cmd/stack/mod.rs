//! `onefold stack`: layers on devices as a configuration has them (`[[stack]]`), served instead of simulated.

mod check;
mod create;
mod device;
mod info;
mod open;
mod serve;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use onefold_config::{Config, Place, Sources};

use crate::cmd::control;
use crate::error::{CliError, Exit};
use crate::output::Global;

/// Subcommands of `onefold stack`.
#[derive(Debug, Subcommand)]
pub(crate) enum Stack {
    /// Make the images that are missing, and an empty volume at each layer
    Create(create::Create),
    /// Serve the top of a stack until SIGTERM or Ctrl-C
    Serve(serve::Serve),
    /// Check all places from the devices upwards: 0 clean, 4 damage, 8 could not run
    Check(check::Check),
    /// Tell what is at each place, or what its running server counts
    Info(info::Info),
}

impl Stack {
    /// Runs the command.
    pub(crate) fn run(self, global: &Global) -> Result<ExitCode, CliError> {
        global.interrupt.leaves(match self {
            Self::Create(_) => "not all may be made; remove the images, and make them anew",
            _ => "what was under way is as after a power cut: nothing that was durable is lost",
        });
        match self {
            Self::Create(create) => create.run(global),
            Self::Serve(serve) => serve.run(global),
            Self::Check(check) => check.run(global),
            Self::Info(info) => info.run(global),
        }
    }
}

/// Which stack, and where its devices are.
#[derive(Debug, Args)]
struct Which {
    /// The configuration with `[[stack]]`, the same that `sim run` takes
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Override one key, such as stack.data.volume.op=0.3 (may be given often)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Where the images of its devices are: NAME.img each [default: where FILE is]
    #[arg(long, value_name = "DIRECTORY")]
    dir: Option<PathBuf>,
    /// The device NAME is here: an image elsewhere, or a file or block device in its place (may be given often)
    #[arg(long = "at", value_name = "NAME=PATH", value_parser = parse_at)]
    at: Vec<(String, PathBuf)>,
}

fn parse_at(text: &str) -> Result<(String, PathBuf), String> {
    let parts = text.split_once('=').filter(|(name, path)| !name.is_empty() && !path.is_empty());
    let (name, path) = parts.ok_or_else(|| format!("found {text:?}, expected NAME=PATH"))?;
    Ok((name.to_owned(), path.into()))
}

/// A stack, and where its devices are.
struct Chosen {
    config: Config,
    places: Vec<Place>,
    directory: PathBuf,
    at: BTreeMap<String, PathBuf>,
}

impl Which {
    fn load(&self, global: &Global) -> Result<Chosen, CliError> {
        let file = Some(self.file.clone());
        let config = Config::load(&Sources { file, sets: &self.sets, ..Sources::default() })?;
        let Some(stack) = config.stack(global.seed)? else {
            let text = format!("{} has no [[stack]]", self.file.display());
            return Err(CliError::new(Exit::Usage, "stack::none", text)
                .help("`onefold ssd` and `onefold volume` serve a device, and a volume on one"));
        };
        let beside = || self.file.parent().map(Path::to_owned).unwrap_or_default();
        let directory = self.dir.clone().unwrap_or_else(beside);
        let at: BTreeMap<_, _> = self.at.iter().cloned().collect();
        let devices: Vec<&str> = stack
            .places
            .iter()
            .filter(|place| place.kind.is_device())
            .map(|place| place.name.as_str())
            .collect();
        if let Some(name) = at.keys().find(|name| !devices.contains(&name.as_str())) {
            let text = format!(
                "--at names {name:?}, expected a device of the stack: {}",
                devices.join(", ")
            );
            return Err(CliError::new(Exit::Usage, "stack::device", text));
        }
        Ok(Chosen { config, places: stack.places, directory, at })
    }
}

impl Chosen {
    /// Where a device is.
    fn path(&self, device: &Place) -> PathBuf {
        let image = || self.directory.join(format!("{}.img", device.name));
        self.at.get(&device.name).cloned().unwrap_or_else(image)
    }

    /// The one that is served, by the name of which its server is known.
    fn top(&self) -> PathBuf {
        let name = self.places.last().map_or("", |place| place.name.as_str());
        self.directory.join(name)
    }

    /// The control socket of whoever serves the stack, if one answers.
    fn server(&self, asked: Option<&Path>) -> Option<PathBuf> {
        let socket = asked.map_or_else(|| control::default_path(&self.top()), Path::to_owned);
        control::answers(&socket).then_some(socket)
    }

    /// The names of the places that one lies on.
    fn on<'a>(&'a self, place: &'a Place) -> impl Iterator<Item = &'a str> {
        place.on.iter().map(|below| self.places[*below].name.as_str())
    }
}
