//! The run of a load on a block namespace.

use onefold_config::{Precondition, RemapFull};
use onefold_ftl::{FtlError, RemapError, RemapOptions, RemapRange, RemapScheme};
use onefold_nand::{Delay, NullMedia};
use onefold_ssd::{Command, Completion, HostStats, Payload, Ssd, SsdError};
use onefold_trace::workload::RemapFrom;
use onefold_units::convert::narrow;
use onefold_units::{Keep, Keeper, Lpn, Nanos, Op, keep};

use super::outcome::{self, Counters, Finished};
use crate::SimError;
use crate::at_once::{self, AtOnce};
use crate::checkpoint::Kept;
use crate::contents::Contents;
use crate::control::Control;
use crate::gathered::Gathered;
use crate::precondition::{Bare, Preconditioned, precondition};
use crate::remaps::Changes;
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
    let mut gathered = Gathered {
        tells_contents: ssd.asks_contents(),
        remap_unit: Some(ssd.remap_caps().granularity),
        ..Gathered::default()
    };
    let tenants = gathered.tenants(setup, ssd.capacity(), control)?;
    let mut contents = Contents::new(setup, ssd.capacity(), ssd.asks_contents())?;
    let mut bare = Bare { ssd: &mut ssd, contents: contents.as_mut() };
    let traces: Vec<&str> = tenants.iter().filter_map(|tenant| tenant.source.sha256()).collect();
    let checkpoint = control.checkpoint.map(|checkpoint| checkpoint.of(setup, &traces));
    let checkpoint = checkpoint.transpose()?;
    let goes_on = checkpoint.as_ref().is_some_and(Kept::is_found);
    let preconditioned = match wanted {
        Some(wanted) if !goes_on => precondition(&mut bare, wanted, setup.seed, control)?,
        _ => Preconditioned::default(),
    };
    let run = setup.config.run();
    ssd.set_timed(run.timed);
    let remaps = gathered.has_remaps.then(|| Remaps::new(&ssd, run.remap_full));
    let drive = Drive { ssd, contents, remaps, preconditioned };
    let (drive, ran) = at_once::run(drive, tenants, &run, checkpoint, control)?;
    let Drive { ssd, preconditioned, .. } = drive;
    let finished = Finished { ssd, ran, preconditioned, gathered, volume: None };
    outcome::result(setup, finished)
}

/// A drive without a volume.
struct Drive {
    ssd: Ssd<NullMedia>,
    /// Contents of writes, if the device looks at them.
    contents: Option<Contents>,
    /// If the load has remaps.
    remaps: Option<Remaps>,
    preconditioned: Preconditioned,
}

/// How remaps of the load are carried out.
struct Remaps {
    /// Bytes of a mapping unit.
    unit: u32,
    full: RemapFull,
    /// The host writes what it could copy by a remap, as the drive has none.
    writes: bool,
    changes: Changes,
}

keep!(Remaps { changes } but { unit, full, writes });
keep!(Drive { ssd, preconditioned } each { contents, remaps });

impl Remaps {
    fn new(ssd: &Ssd<NullMedia>, full: RemapFull) -> Self {
        let has_none = ssd.config().ftl.remap.scheme == RemapScheme::None;
        let writes = has_none && full == RemapFull::Write;
        Self { unit: ssd.remap_caps().granularity, full, writes, changes: Changes::new() }
    }

    /// The command in mapping units.
    fn range(&self, command: &Command, from: RemapFrom) -> Result<RemapRange, Refused> {
        let Command { offset, len, .. } = *command;
        let unit = u64::from(self.unit);
        if !(offset | len | from.offset).is_multiple_of(unit) {
            return Err(Refused::Alignment { unit: self.unit, source: from.offset });
        }
        let lpn = |byte: u64| Lpn::new(narrow(byte / unit));
        Ok(RemapRange { dst: lpn(offset), src: lpn(from.offset), len: narrow(len / unit) })
    }
}

/// Why a request was not carried out.
enum Refused {
    /// A remap is not in whole mapping units.
    Alignment {
        unit: u32,
        source: u64,
    },
    Ssd(SsdError),
}

impl From<SsdError> for Refused {
    fn from(error: SsdError) -> Self {
        Self::Ssd(error)
    }
}

impl AtOnce for Drive {
    type Counters = Counters;
    type Error = Refused;

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
    fn prefetch(&self, offset: u64) {
        self.ssd.prefetch(offset);
    }

    #[inline]
    fn submit(
        &mut self,
        now: Nanos,
        command: &Command,
        source: &mut Source,
    ) -> Result<Completion, Refused> {
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
        let done = self.ssd.submit(now, command, payload)?;
        if let Some(remaps) = &mut self.remaps
            && !matches!(command.op, Op::Read | Op::Flush)
        {
            remaps.changes.note(now, (command.offset, command.len), done.at);
        }
        Ok(done)
    }

    fn remap(
        &mut self,
        now: Nanos,
        command: &Command,
        from: RemapFrom,
    ) -> Result<Completion, Refused> {
        let Some(remaps) = &mut self.remaps else {
            unreachable!("a load without remaps made one: {command:?} from {from:?}")
        };
        let range = remaps.range(command, from)?;
        let Command { offset, len, .. } = *command;
        let begin = remaps.changes.over(now, [offset, from.offset], len);
        let no_fallback = remaps.full == RemapFull::Refuse;
        let options = RemapOptions { moves: from.moves, no_fallback, ..RemapOptions::default() };
        let done = self.ssd.remap_from(now, begin, &[range], options)?.at;
        remaps.changes.note(now, (offset, len), done);
        if from.moves {
            remaps.changes.note(now, (from.offset, len), done);
        }
        if let Some(contents) = &mut self.contents {
            // What it held repeats nothing any more, and what it shows now is not stored again.
            contents.note(&Command { op: Op::Trim, ..*command });
        }
        let delay = if begin > now { Delay::Host } else { Delay::None };
        Ok(Completion { at: done, delay })
    }

    fn writes_instead(&self, from: RemapFrom) -> bool {
        self.remaps.as_ref().is_some_and(|remaps| remaps.writes) && !from.moves
    }

    fn keep(&mut self, baseline: &mut Counters, keeper: &mut Keeper<'_>) {
        Keep::keep(self, keeper);
        // Before measuring begins there is none of a buffer.
        let mut has_buffer = baseline.buffer.is_some();
        has_buffer.keep(keeper);
        if keeper.reads() {
            let buffer = self.ssd.buffer_stats().filter(|_| has_buffer);
            *baseline = Counters { buffer, ..Counters::default() };
        }
        baseline.keep(keeper);
    }

    fn fails_alone(error: &Refused) -> bool {
        let Refused::Ssd(error) = error else { return false };
        let lost = matches!(error, SsdError::Ftl(FtlError::Remap(RemapError::LostSource { .. })));
        lost || error.is_unreadable() || error.is_read_only()
    }

    fn error(refused: Refused, request: u64, command: &Command) -> SimError {
        let Command { op, len, offset, .. } = command;
        match refused {
            Refused::Alignment { unit, source } => {
                let what = format!("remap of {len} B from byte {source} to byte {offset}");
                SimError::RemapAlignment { request, what, unit }
            }
            Refused::Ssd(source) => {
                let what = format!("{} of {len} B at byte {offset}", name(*op, &source));
                SimError::Device { request, what, source }
            }
        }
    }
}

/// What failed, in a word: remaps have a write's operation and errors of their own.
const fn name(op: Op, error: &SsdError) -> &'static str {
    if matches!(error, SsdError::Ftl(FtlError::Remap(_))) { "remap" } else { op.name() }
}
