//! The run of a load on a block namespace.

use onefold_config::Precondition;
use onefold_nand::NullMedia;
use onefold_ssd::{Command, Completion, HostStats, Payload, Ssd, SsdError};
use onefold_units::{Nanos, Op};

use super::outcome::{self, Counters, Finished};
use crate::SimError;
use crate::at_once::{self, AtOnce};
use crate::contents::Contents;
use crate::control::Control;
use crate::gathered::Gathered;
use crate::precondition::{Bare, Preconditioned, precondition};
use crate::result::RunResult;
use crate::series::Windowed;
use crate::setup::Setup;
use crate::source::Source;

/// Runs a setup on a drive without a volume.
pub(crate) fn simulate(
    setup: &Setup,
    mut ssd: Ssd<NullMedia>,
    wanted: Option<&Precondition>,
    control: &Control<'_>,
) -> Result<RunResult, SimError> {
    let mut gathered = Gathered { tells_contents: ssd.deduplicates(), ..Gathered::default() };
    let tenants = gathered.tenants(setup, ssd.capacity(), control)?;
    // A wrong content model is an error even where nobody looks at contents.
    let contents = Contents::new(setup, ssd.capacity())?;
    let mut contents = Some(contents).filter(|_| ssd.deduplicates());
    let mut bare = Bare { ssd: &mut ssd, contents: contents.as_mut() };
    let preconditioned = match wanted {
        Some(wanted) => precondition(&mut bare, wanted, setup.seed, control)?,
        None => Preconditioned::default(),
    };
    let run = setup.config.run();
    ssd.set_timed(run.timed);
    let (drive, ran) = at_once::run(Drive { ssd, contents }, tenants, &run, control)?;
    let finished = Finished { ssd: drive.ssd, ran, preconditioned, gathered, volume: None };
    outcome::result(setup, finished)
}

/// A drive without a volume.
struct Drive {
    ssd: Ssd<NullMedia>,
    /// Contents of writes, if the device looks at them.
    contents: Option<Contents>,
}

impl AtOnce for Drive {
    type Counters = Counters;
    type Error = SsdError;

    fn device(&self) -> &impl Windowed {
        &self.ssd
    }

    fn host(&self) -> &HostStats {
        self.ssd.host_stats()
    }

    fn counters(&self) -> Counters {
        Counters::of(&self.ssd)
    }

    #[inline]
    fn touch(&self, offsets: impl Iterator<Item = u64>) -> u64 {
        self.ssd.touch(offsets)
    }

    #[inline]
    fn submit(
        &mut self,
        now: Nanos,
        command: &Command,
        source: &mut Source,
    ) -> Result<Completion, SsdError> {
        let payload = match &mut self.contents {
            Some(contents) if command.op == Op::Write => {
                Payload::Contents(contents.of_write(command, source.contents()))
            }
            Some(contents) => {
                contents.note(command);
                Payload::None
            }
            None => Payload::None,
        };
        self.ssd.submit(now, command, payload)
    }

    fn fails_alone(error: &SsdError) -> bool {
        error.is_unreadable() || error.is_read_only()
    }

    fn error(source: SsdError, request: u64, command: &Command) -> SimError {
        let Command { op, len, offset, .. } = command;
        let what = format!("{} of {len} B at byte {offset}", op.name());
        SimError::Device { request, what, source }
    }
}
