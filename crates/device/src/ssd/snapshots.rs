//! Snapshots: ranges whose content is shared with snapshot units.
//!
//! Snapshot unit 0 holds the table of them; the others hold contents, each snapshot in one run.
//!
//! 1. A snapshot counts once the table that names it is durable; its content is durable before.
//! 2. Snapshot units that no entry names hold nothing: what a cut before 1 left is unmapped at the next
//!    opening.
//! 3. The table is replaced as one unit, so after a cut it is the old one or the new one. One that
//!    cannot be read is left alone, and so is everything it may name.
//! 4. Where the host failed while the table was replaced, either may be found at the next opening. Nothing that one of them
//!    names is unmapped or used for another snapshot before the one that counts is durable.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use onefold_format::{
    REMAP_BLOCK_BYTES, SNAPSHOTS_MAX, SnapshotAction, SnapshotCommand, SnapshotEntry, SnapshotName,
    SnapshotTable, VectorRange,
};
use onefold_ftl::{OnLogDamage, RemapOptions, RemapRange};
use onefold_nand::Media;
use onefold_ssd::{Ssd, SsdConfig, SsdError};
use onefold_units::convert::{index64, narrow};
use onefold_units::{Lpn, Nanos, PAGE_BYTES, Status};

use super::remap::{MailboxBlock, Refusal, pages, to_range};
use super::{Shared, State};
use crate::block::Due;
use crate::media::FileMedia;

/// Snapshot unit of the table.
const TABLE: u32 = 0;

/// The table, or why there is none.
pub(super) struct Snapshots(Mutex<Result<Kept, String>>);

/// The table as it counts.
pub(super) struct Kept {
    table: SnapshotTable,
    /// Another table may reach the medium: it was written, and the host failed before that was known to be durable.
    unsure: bool,
}

impl Snapshots {
    /// Reads the table of a device that was just recovered, and unmaps what nothing names.
    pub(super) fn open(ssd: &mut Ssd<FileMedia>) -> Result<Self, SsdError> {
        found(ssd).map(|found| Self(Mutex::new(found)))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Result<Kept, String>> {
        // It changes after everything that can fail.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The table of a device that was just recovered, whose nameless contents are unmapped; or why there is none.
pub(super) fn found(ssd: &mut Ssd<FileMedia>) -> Result<Result<Kept, String>, SsdError> {
    let table = load(ssd);
    match &table {
        Ok(table) => unmap_nameless(ssd, table)?,
        Err(error) => tracing::error!("{error}; snapshots are left as they are"),
    }
    Ok(table.map(|table| Kept { table, unsure: false }))
}

/// How recovery gives up units of a damaged remap log: all but the table, which no remap ever targets.
pub(crate) fn give_up(config: &SsdConfig) -> OnLogDamage {
    let has_table = config.ftl.snapshot_units > 0;
    let table = Lpn::new(narrow(config.ftl.logical_units) + TABLE);
    OnLogDamage::GiveUp { but: has_table.then_some(table) }
}

fn load<M: Media>(ssd: &mut Ssd<M>) -> Result<SnapshotTable, String> {
    let units = ssd.snapshot_units();
    let per = u64::from(ssd.config().geometry.unit_bytes()) / PAGE_BYTES;
    let empty =
        SnapshotTable { capacity: u64::from(units.saturating_sub(1)) * per, ..Default::default() };
    if units == 0 || !ssd.ftl().is_mapped(ssd.snapshot_lpn(TABLE)) {
        return Ok(empty);
    }
    let mut unit = vec![0; index64(per * PAGE_BYTES)];
    let damaged = |error: &dyn std::fmt::Display| format!("the table of snapshots: {error}");
    ssd.read_snapshot_unit(Nanos::ZERO, TABLE, &mut unit).map_err(|error| damaged(&error))?;
    let found = SnapshotTable::decode(&unit[..REMAP_BLOCK_BYTES]).map_err(|e| damaged(&e))?;
    let table = SnapshotTable { entries: found.entries, ..empty };
    if are_sound(&table, per, pages(ssd.capacity())) {
        Ok(table)
    } else {
        Err(damaged(&"its entries contradict each other or the device"))
    }
}

/// Whether entries lie on the device, apart from each other.
fn are_sound(table: &SnapshotTable, per: u64, size: u64) -> bool {
    let mut runs: Vec<_> = table.entries.iter().map(|entry| (entry.at, entry.units)).collect();
    runs.sort_unstable();
    let inside = |first: u64, units: u64, end: u64| {
        units > 0
            && first.checked_add(units).is_some_and(|last| last <= end)
            && (first | units).is_multiple_of(per)
    };
    let end = per + table.capacity;
    table.entries.iter().all(|entry| {
        inside(entry.first, entry.units, size)
            && entry.at >= per
            && inside(entry.at, entry.units, end)
    }) && runs.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0)
}

/// The runs of snapshot units of 4 KiB that no entry names: first and count, ascending.
fn holes(table: &SnapshotTable, per: u64) -> Vec<(u64, u64)> {
    let mut runs: Vec<_> = table.entries.iter().map(|entry| (entry.at, entry.units)).collect();
    runs.push((per + table.capacity, 0));
    runs.sort_unstable();
    let mut begin = per;
    let mut holes = Vec::new();
    for (first, units) in runs {
        if first > begin {
            holes.push((begin, first - begin));
        }
        begin = first + units;
    }
    holes
}

/// Invariant 2.
fn unmap_nameless<M: Media>(ssd: &mut Ssd<M>, table: &SnapshotTable) -> Result<(), SsdError> {
    let per = u64::from(ssd.config().geometry.unit_bytes()) / PAGE_BYTES;
    for (first, units) in holes(table, per) {
        ssd.trim_snapshot_units(Nanos::ZERO, narrow(first / per), narrow(units / per))?;
    }
    Ok(())
}

impl Shared {
    pub(super) fn execute_snapshot(
        &self,
        command: &SnapshotCommand,
    ) -> Result<(MailboxBlock, Due), Refusal> {
        let mut kept = self.snapshots.lock();
        let kept = kept.as_mut().map_err(|error| {
            Refusal::new(Status::MediaError, format_args!("{error}; restore the image"))
        })?;
        if kept.unsure {
            // Before what a table that does not count names is used again (invariant 4).
            self.publish(&kept.table)?;
            kept.unsure = false;
        }
        let done = match &command.action {
            SnapshotAction::List => Done::default(),
            SnapshotAction::Create { name, first, units } => {
                self.create(kept, name, *first, *units)?
            }
            SnapshotAction::Delete { name } => self.delete(kept, name)?,
            SnapshotAction::Restore { name } => {
                let entry = find(&kept.table, name)?;
                self.copy_out(entry, entry.first)?
            }
            SnapshotAction::Clone { name, target } => {
                self.copy_out(find(&kept.table, name)?, *target)?
            }
        };
        let stall_ns = u64::try_from(done.stall.as_nanos()).unwrap_or(u64::MAX);
        let answer = SnapshotTable { cmd_id: command.cmd_id, stall_ns, ..kept.table.clone() };
        let block = answer.encode().map_err(Refusal::invalid)?;
        Ok((block, done.due))
    }

    fn create(
        &self,
        kept: &mut Kept,
        name: &SnapshotName,
        first: u64,
        units: u64,
    ) -> Result<Done, Refusal> {
        let per = self.usable()?.unit_pages()?;
        let at = place(&kept.table, name, per, units)?;
        let source = self.host_range(first, units, per)?;
        let content = |ssd: &Ssd<FileMedia>| RemapRange {
            dst: ssd.snapshot_lpn(narrow(at / per)),
            src: source.src,
            len: source.len,
        };
        let entry = SnapshotEntry { name: name.clone(), first, units, at, created: now_s() };
        let mut next = kept.table.clone();
        next.entries.push(entry);
        let made = self.remap_held(content, RemapOptions::default());
        let made = made.and_then(|done| self.replace(kept, next).map(|()| done));
        if made.is_err() && !kept.unsure {
            // If this fails as well, the next opening does it.
            let _ = self.unmap(at / per, units / per);
        }
        made
    }

    /// Makes another table count, durably.
    fn replace(&self, kept: &mut Kept, next: SnapshotTable) -> Result<(), Refusal> {
        kept.unsure = true;
        self.publish(&next)?;
        *kept = Kept { table: next, unsure: false };
        Ok(())
    }

    /// A range of the host in mapping units, as source and target.
    fn host_range(&self, first: u64, units: u64, per: u64) -> Result<RemapRange, Refusal> {
        let refuse = |text: &str| Refusal::invalid(format_args!("the range {text}"));
        let len = u32::try_from(units).ok().filter(|len| *len > 0);
        let len = len.ok_or_else(|| refuse(&format!("has {units} units, expected at least 1")))?;
        let range = VectorRange { dst: first, src: first, len };
        to_range(&range, per, pages(self.size)).map_err(|text| refuse(&text))
    }

    /// Gives a range of the host the content of a snapshot; all or nothing, where the device can.
    fn copy_out(&self, entry: &SnapshotEntry, target: u64) -> Result<Done, Refusal> {
        let (per, atomic) = {
            let mut state = self.usable()?;
            (state.unit_pages()?, state.remembers_commands()?)
        };
        let range = self.host_range(target, entry.units, per)?;
        let content = |ssd: &Ssd<FileMedia>| RemapRange {
            dst: range.dst,
            src: ssd.snapshot_lpn(narrow(entry.at / per)),
            len: range.len,
        };
        self.remap_held(content, RemapOptions { atomic, ..RemapOptions::default() })
    }

    /// Remaps while no write gets through, and makes that durable.
    fn remap_held(
        &self,
        range: impl FnOnce(&Ssd<FileMedia>) -> RemapRange,
        options: RemapOptions,
    ) -> Result<Done, Refusal> {
        self.durably(|state| {
            let begin = Instant::now();
            let now = self.tick(state);
            let ssd = state.ssd()?;
            let range = [range(ssd)];
            let done = ssd.remap_snapshots(now, &range, options)?;
            ssd.settle(now)?;
            Ok(Done { due: self.due(done.at), stall: begin.elapsed() })
        })
    }

    /// Writes the table, durably (invariants 1 and 3).
    fn publish(&self, table: &SnapshotTable) -> Result<(), Refusal> {
        let stored = SnapshotTable { cmd_id: 0, stall_ns: 0, ..table.clone() };
        let block = stored.encode().map_err(Refusal::invalid)?;
        self.durably(|state: &mut State| {
            let now = self.tick(state);
            let unit_bytes = state.unit_pages()? * PAGE_BYTES;
            let mut unit = vec![0; index64(unit_bytes)];
            unit[..block.len()].copy_from_slice(&block);
            let ssd = state.ssd()?;
            ssd.write_snapshot_unit(now, TABLE, &unit)?;
            Ok(ssd.settle(now)?)
        })
    }

    fn delete(&self, kept: &mut Kept, name: &SnapshotName) -> Result<Done, Refusal> {
        let per = self.usable()?.unit_pages()?;
        let entry = find(&kept.table, name)?.clone();
        let mut next = kept.table.clone();
        next.entries.retain(|other| other.name != *name);
        self.replace(kept, next)?;
        self.unmap(entry.at / per, entry.units / per)?;
        Ok(Done::default())
    }

    fn unmap(&self, first: u64, units: u64) -> Result<(), Refusal> {
        let mut state = self.admit()?;
        let now = self.tick(&mut state);
        let trimmed = state.ssd()?.trim_snapshot_units(now, narrow(first), narrow(units));
        Ok(trimmed?)
    }
}

/// What a command took.
#[derive(Default)]
struct Done {
    due: Due,
    /// How long writes were held up.
    stall: Duration,
}

fn find<'a>(table: &'a SnapshotTable, name: &SnapshotName) -> Result<&'a SnapshotEntry, Refusal> {
    table.entries.iter().find(|entry| entry.name == *name).ok_or_else(|| {
        let names: Vec<&str> = table.entries.iter().map(|entry| entry.name.as_str()).collect();
        let have = if names.is_empty() {
            "there are none".into()
        } else {
            format!("have {}", names.join(", "))
        };
        Refusal::invalid(format_args!("there is no snapshot {}: {have}", name.as_str()))
    })
}

/// Snapshot units for a new snapshot.
fn place(table: &SnapshotTable, name: &SnapshotName, per: u64, units: u64) -> Result<u64, Refusal> {
    if table.capacity == 0 {
        return Err(Refusal::new(
            Status::NoSpace,
            "the device has no capacity for snapshots: create it with --set \
             capacity.snapshots=SIZE",
        ));
    }
    if table.entries.iter().any(|entry| entry.name == *name) {
        let name = name.as_str();
        let text = format_args!("snapshot {name} exists: delete it or choose another name");
        return Err(Refusal::invalid(text));
    }
    if table.entries.len() >= SNAPSHOTS_MAX {
        let text = format!("there are {SNAPSHOTS_MAX} snapshots, the most: delete one first");
        return Err(Refusal::new(Status::NoSpace, text));
    }
    let holes = holes(table, per);
    let largest = holes.iter().map(|(_, units)| *units).max().unwrap_or(0);
    let hole = holes.into_iter().find(|(_, free)| *free >= units);
    hole.map(|(first, _)| first).ok_or_else(|| {
        let capacity = table.capacity;
        let text = format_args!(
            "the snapshot has {units} units of 4 KiB, but {largest} in one piece are free of \
             capacity.snapshots of {capacity}: delete snapshots or choose a smaller range"
        );
        Refusal::new(Status::NoSpace, text)
    })
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}
