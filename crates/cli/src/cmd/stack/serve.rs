//! `onefold stack serve`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use onefold_device::BlockDevice;
use onefold_device::observed::DeviceStats;
use onefold_serve::Server;
use serde_json::Value;

use super::device::Device;
use super::open::{self, OpenStack};
use super::{Chosen, Which, info};
use crate::cmd::control::{self, Command};
use crate::cmd::frontends::Frontends;
use crate::cmd::ssd::serve::Latency;
use crate::error::{CliError, Exit};
use crate::output::Global;

/// Options of `onefold stack serve`.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    frontends: Frontends,
    /// When the emulated SSDs without zones answer
    #[arg(long, value_enum, default_value = "none", value_name = "HOW")]
    latency: Latency,
    /// Unix socket for `onefold stack info` [default: DIRECTORY/NAME.sock, NAME being the top]
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
}

/// What the control socket answers.
const COMMANDS: &[Command<OpenStack>] = &[("stats", stats), ("flush", flush)];

#[expect(clippy::unnecessary_wraps, reason = "the form of a command")]
fn stats(stack: &OpenStack, _: &Value) -> Result<Value, String> {
    Ok(stack.report())
}

fn flush(stack: &OpenStack, _: &Value) -> Result<Value, String> {
    let flushed = match stack.places.last().map(|top| &top.device) {
        Some(Device::Volume(volume)) => volume.flush(),
        Some(Device::Dmz(volume)) => volume.flush(),
        _ => Ok(None),
    };
    flushed.map(|_| Value::Null).map_err(|status| format!("the flush failed, as {status}"))
}

impl Serve {
    pub(super) fn run(&self, global: &Global) -> Result<ExitCode, CliError> {
        let chosen = self.which.load(global)?;
        let stack = open::open(&chosen, self.latency.into(), global)?;
        let served = self.serve(&chosen, &stack, global);
        global.say(info::rows(&stack.report()).trim_end());
        let closed = stack.close();
        // What ended the serving matters more than what its end led to.
        served?;
        closed?;
        Ok(ExitCode::SUCCESS)
    }

    fn serve(&self, chosen: &Chosen, stack: &OpenStack, global: &Global) -> Result<(), CliError> {
        let (asked, top) = (self.control.as_deref(), chosen.top());
        let _control = control::open(global, asked, &top, stack.clone(), COMMANDS)?;
        match stack.places.last().map(|place| place.device.clone()) {
            Some(Device::Volume(volume)) => {
                let uuid = volume.details().uuid;
                self.run_top(volume, uuid, chosen, global)
            }
            Some(Device::Dmz(volume)) => {
                let uuid = volume.details().uuid;
                self.run_top(volume, uuid, chosen, global)
            }
            // A stack ends with a layer.
            _ => Err(CliError::new(Exit::Infeasible, "stack::top", "the top is no layer")),
        }
    }

    fn run_top<D: BlockDevice + DeviceStats + 'static>(
        &self,
        device: D,
        uuid: [u8; 16],
        chosen: &Chosen,
        global: &Global,
    ) -> Result<(), CliError> {
        let top = chosen.top();
        let ready = |server: &Server<D>| {
            self.frontends.announce(global, &top, server);
            Frontends::end_unmounted(global, server);
        };
        let options = self.frontends.options(&top);
        self.frontends.run(global, device, uuid, &options, ready)
    }
}
