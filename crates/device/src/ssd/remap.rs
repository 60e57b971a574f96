//! Commands of the mailbox: 4 KiB in, 4 KiB out (remap.md section 2).

use std::time::Instant;

use onefold_format::{
    REMAP_BLOCK_BYTES, RangeResult, RemapCaps, RemapDurability, RemapFlags, RemapReply,
    RemapVector, ReplyContent, SnapshotCommand, Topology, VectorRange,
};
use onefold_ftl::{RemapOptions, RemapOutcome, RemapRange};
use onefold_ssd::SsdError;
use onefold_units::convert::{low16, narrow};
use onefold_units::{Lpn, PAGE_BYTES, Status};

use super::{Shared, SsdDevice, State};
use crate::block::{Due, RemappedRange};

/// A command or a reply.
pub type MailboxBlock = [u8; REMAP_BLOCK_BYTES];

/// Flags that every device executes.
const MODES: RemapFlags =
    RemapFlags::MOVE_ON_FLUSH.with(RemapFlags::VERIFY_EQUAL).with(RemapFlags::NO_FALLBACK);
/// Flags that need a device which remembers its commands.
const NUMBERED: RemapFlags = RemapFlags::MOVE.with(RemapFlags::ATOMIC);

/// Why a command was not executed, or failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: Status,
    pub(crate) text: String,
}

impl Refusal {
    pub(crate) fn new(status: Status, text: impl std::fmt::Display) -> Self {
        Self { status, text: text.to_string() }
    }

    /// The command is wrong.
    pub(crate) fn invalid(text: impl std::fmt::Display) -> Self {
        Self::new(Status::InvalidField, text)
    }
}

impl From<SsdError> for Refusal {
    fn from(error: SsdError) -> Self {
        Self::new(error.status(), error)
    }
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        let text = match status {
            Status::Poisoned => "the device is closed, or changes nothing until it is opened again",
            Status::NoSpace => "the file system of the host has no room",
            Status::MediaError => "the file under the device failed",
            Status::Ok | Status::InvalidField => "the command is not possible",
        };
        Self::new(status, text)
    }
}

/// What a command led to: the reply, and when or with what error the write of it is answered.
pub(crate) struct Executed {
    pub(crate) reply: MailboxBlock,
    pub(crate) result: Result<Due, Status>,
}

impl SsdDevice {
    /// Executes a command of the mailbox: a remap vector, or a command about snapshots. All zeroes ask
    /// for the capabilities. Refusals are replies, too. Returns when the modelled device would.
    #[must_use]
    pub fn exchange(&self, block: &MailboxBlock) -> MailboxBlock {
        let executed = self.shared.execute(block);
        if let Ok(Some(due)) = executed.result {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        executed.reply
    }
}

impl Shared {
    /// The reply of a slot that no command was written to.
    pub(crate) fn caps_reply(&self) -> MailboxBlock {
        match self.remap_caps() {
            Ok(caps) => reply(Status::Ok, 0, ReplyContent::Caps(caps)),
            Err(status) => refusal(&Refusal::from(status), 0),
        }
    }

    fn remap_caps(&self) -> Result<RemapCaps, Status> {
        let mut state = self.usable()?;
        let ssd = state.ssd()?;
        let (caps, config) = (ssd.remap_caps(), *ssd.config());
        let remembers = state.remembers_commands()?;
        let units_max =
            narrow(u64::from(caps.max_units) * u64::from(caps.granularity) / PAGE_BYTES);
        Ok(RemapCaps {
            granularity_bytes: caps.granularity,
            ranges_max: caps.max_ranges,
            units_max,
            references_max: caps.max_refs,
            atomic_units_max: if remembers { units_max } else { 0 },
            modes: if remembers { MODES.with(NUMBERED) } else { MODES },
            topology: Topology::Any,
            durable_at: RemapDurability::Completion,
            superblock_bytes: config.geometry.superblock_row_bytes(),
            streams: low16(config.ftl.streams.into()),
        })
    }

    pub(crate) fn execute(&self, block: &MailboxBlock) -> Executed {
        if block.iter().all(|byte| *byte == 0) {
            return Executed { reply: self.caps_reply(), result: Ok(None) };
        }
        let (cmd_id, executed) = if SnapshotCommand::is_one(block) {
            match SnapshotCommand::decode(block) {
                Ok(command) => (command.cmd_id, self.execute_snapshot(&command)),
                Err(error) => (0, Err(Refusal::invalid(error))),
            }
        } else {
            match RemapVector::decode(block) {
                Ok(vector) => (vector.cmd_id, self.execute_vector(&vector)),
                Err(error) => (0, Err(Refusal::invalid(error))),
            }
        };
        match executed {
            Ok((reply, due)) => Executed { reply, result: Ok(due) },
            Err(refused) => {
                tracing::warn!(status = ?refused.status, "mailbox: {}", refused.text);
                Executed { reply: refusal(&refused, cmd_id), result: Err(refused.status) }
            }
        }
    }

    fn execute_vector(&self, vector: &RemapVector) -> Result<(MailboxBlock, Due), Refusal> {
        let options = options(vector);
        let start = Instant::now();
        let (done, per, due) = self.durably(|state| {
            let per = state.unit_pages()?;
            let ranges = ranges(vector, per, self.size / PAGE_BYTES)?;
            let now = self.tick(state);
            let done = state.ssd()?.remap(now, &ranges, options);
            let done = done?;
            state.ssd()?.settle(now)?;
            Ok::<_, Refusal>((done.outcomes, narrow(per), self.due(done.at)))
        })?;
        self.tell_remapped(vector, &done, (start, due));
        let results = done.iter().map(|outcome| result(outcome, per)).collect();
        Ok((reply(Status::Ok, vector.cmd_id, ReplyContent::Results(results)), due))
    }
}

impl Shared {
    /// Tells of the ranges of a command that changed something; of none if it had been done before.
    fn tell_remapped(
        &self,
        vector: &RemapVector,
        done: &[RemapOutcome],
        (start, due): (Instant, Due),
    ) {
        let watchers = self.remap_watchers();
        let moves = vector.flags.contains(RemapFlags::MOVE)
            || vector.flags.contains(RemapFlags::MOVE_ON_FLUSH);
        let ranges = vector.ranges.iter().zip(done);
        for (range, _) in ranges.filter(|(_, one)| one.remapped + one.copied > 0) {
            let VectorRange { dst, src, len } = *range;
            let [target, source] = [dst, src].map(|unit| unit * PAGE_BYTES);
            let len = u64::from(len) * PAGE_BYTES;
            let remapped = RemappedRange { target, source, len, moves, start, due };
            watchers.iter().for_each(|watcher| watcher(&remapped));
        }
    }
}

impl State {
    /// Units of 4 KiB of a mapping unit.
    pub(crate) fn unit_pages(&mut self) -> Result<u64, Status> {
        Ok(u64::from(self.ssd()?.config().geometry.unit_bytes()) / PAGE_BYTES)
    }

    /// Whether numbers of commands are kept in NVRAM, which all or nothing needs as well.
    pub(crate) fn remembers_commands(&mut self) -> Result<bool, Status> {
        Ok(self.ssd()?.config().ftl.remap.scheme.is_local())
    }
}

/// A reply; those made here always fit a block.
fn reply(status: Status, cmd_id: u128, content: ReplyContent) -> MailboxBlock {
    RemapReply { status, cmd_id, content }.encode().unwrap_or([0; REMAP_BLOCK_BYTES])
}

fn refusal(refused: &Refusal, cmd_id: u128) -> MailboxBlock {
    reply(refused.status, cmd_id, ReplyContent::Refusal(refused.text.clone()))
}

fn options(vector: &RemapVector) -> RemapOptions {
    let has = |flag| vector.flags.contains(flag);
    RemapOptions {
        moves: has(RemapFlags::MOVE),
        moves_on_flush: has(RemapFlags::MOVE_ON_FLUSH),
        atomic: has(RemapFlags::ATOMIC),
        id: (vector.cmd_id != 0).then_some(vector.cmd_id),
        no_fallback: has(RemapFlags::NO_FALLBACK),
        verify_equal: has(RemapFlags::VERIFY_EQUAL),
    }
}

/// The ranges in mapping units of `per` times 4 KiB, all on a device of `size` units of 4 KiB.
fn ranges(vector: &RemapVector, per: u64, size: u64) -> Result<Vec<RemapRange>, Refusal> {
    let convert = |(at, range)| to_range(range, per, size).map_err(|text| in_range(at, &text));
    vector.ranges.iter().enumerate().map(convert).collect()
}

fn in_range(at: usize, text: &str) -> Refusal {
    Refusal::invalid(format_args!("range {at} of the remap {text}"))
}

/// One range in mapping units, or what is wrong with it.
pub(crate) fn to_range(range: &VectorRange, per: u64, size: u64) -> Result<RemapRange, String> {
    let VectorRange { dst, src, len } = *range;
    let len = u64::from(len);
    let end = dst.max(src).saturating_add(len);
    if end > size {
        return Err(format!("ends at unit {end} of 4 KiB, beyond the device of {size} units"));
    }
    if [dst, src, len].into_iter().any(|number| !number.is_multiple_of(per)) {
        return Err(format!(
            "has target {dst}, source {src} and length {len} in units of 4 KiB, expected multiples \
             of {per}: the device maps {} KiB together",
            per * PAGE_BYTES / 1024
        ));
    }
    let lpn = |unit: u64| Lpn::new(narrow(unit / per));
    Ok(RemapRange { dst: lpn(dst), src: lpn(src), len: narrow(len / per) })
}

fn result(outcome: &RemapOutcome, per: u32) -> RangeResult {
    RangeResult {
        remapped: outcome.remapped * per,
        copied: outcome.copied * per,
        skipped: outcome.skipped * per,
    }
}

/// Bytes as units of 4 KiB.
pub(crate) const fn pages(bytes: u64) -> u64 {
    bytes / PAGE_BYTES
}

#[cfg(test)]
mod tests {
    use super::{Lpn, RemapRange, VectorRange, to_range};

    #[test]
    fn ranges_are_converted_or_refused_with_the_limit() {
        let range = |dst, src, len| to_range(&VectorRange { dst, src, len }, 4, 4096);
        let good = RemapRange { dst: Lpn::new(2), src: Lpn::new(1), len: 3 };
        assert_eq!(range(8, 4, 12), Ok(good));
        assert_eq!(range(4092, 0, 4).map(|range| range.len), Ok(1));
        for (dst, src, len) in [(9, 4, 4), (8, 5, 4), (8, 4, 5)] {
            let text = range(dst, src, len).unwrap_err();
            assert!(text.ends_with("expected multiples of 4: the device maps 16 KiB together"));
        }
        for (dst, src, len) in [(4096, 0, 4), (0, 4096, 4), (0, u64::MAX, 4), (0, 8, 4092)] {
            assert!(range(dst, src, len).unwrap_err().contains("beyond the device of 4096 units"));
        }
    }
}
