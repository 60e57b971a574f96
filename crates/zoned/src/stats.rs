//! What a zoned volume counts (zoned.md, section 8). One struct for both clocks.

use onefold_units::convert::{float, index};
use onefold_units::{Nanos, ZoneId};

/// Why blocks were written to a device: every block has exactly one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sent {
    /// Data the host wrote, without the journal.
    User,
    /// The journal, as the host wrote it, in the zones of its chunks.
    Journal,
    /// The journal, as the host wrote it, appended to sequential zones of its own.
    JournalAppended,
    /// Valid blocks that reclaim moved from a conventional data zone to a sequential one.
    RndData,
    /// From a buffer zone to the sequential zone it belongs to.
    Buf,
    /// From a sequential zone to its buffer zone.
    SeqData,
    /// Blocks of the journal that reclaim moved, whatever the action, and those that moved to the head of their stream.
    JournalCopied,
    /// Blocks that went back to their chunks, because the journal is elsewhere or gone.
    JournalReturned,
    /// Zeroes that fill the holes of a copy in a sequential zone.
    ZeroFill,
    /// Valid blocks that were copied and then thrown away.
    AbortedValid,
    /// Zeroes that were thrown away.
    AbortedZero,
    /// Blocks of map and validity bits.
    Map,
    /// Root records.
    Label,
}

impl Sent {
    /// Every cause, in report order.
    pub const ALL: [Self; 13] = [
        Self::User,
        Self::Journal,
        Self::JournalAppended,
        Self::RndData,
        Self::Buf,
        Self::SeqData,
        Self::JournalCopied,
        Self::JournalReturned,
        Self::ZeroFill,
        Self::AbortedValid,
        Self::AbortedZero,
        Self::Map,
        Self::Label,
    ];

    /// Valid blocks that were copied, those thrown away included: what Choi 2022 counts.
    pub const COPIES: [Self; 6] = [
        Self::RndData,
        Self::Buf,
        Self::SeqData,
        Self::JournalCopied,
        Self::JournalReturned,
        Self::AbortedValid,
    ];

    /// Stable name in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Journal => "journal",
            Self::JournalAppended => "journal_appended",
            Self::RndData => "reclaim_rnd_data",
            Self::Buf => "reclaim_buf",
            Self::SeqData => "reclaim_seq_data",
            Self::JournalCopied => "journal_copied",
            Self::JournalReturned => "journal_returned",
            Self::ZeroFill => "zero_fill",
            Self::AbortedValid => "reclaim_aborted",
            Self::AbortedZero => "zero_fill_aborted",
            Self::Map => "map",
            Self::Label => "label",
        }
    }

    fn slot(self) -> usize {
        Self::ALL.iter().position(|cause| *cause == self).unwrap_or_default()
    }
}

/// What reclaim does with a zone (zoned.md, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// A data zone without valid blocks is freed.
    Empty,
    /// A conventional data zone moves to a sequential zone.
    RndData,
    /// A buffer zone is appended to its sequential zone.
    Buf,
    /// A sequential zone moves into its buffer zone.
    SeqData,
}

impl Action {
    /// Every action, in report order.
    pub const ALL: [Self; 4] = [Self::Empty, Self::RndData, Self::Buf, Self::SeqData];

    /// Stable name in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::RndData => "rnd_data",
            Self::Buf => "buf",
            Self::SeqData => "seq_data",
        }
    }

    fn slot(self) -> usize {
        Self::ALL.iter().position(|action| *action == self).unwrap_or_default()
    }
}

/// Why a request of the host slept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WaitReason {
    /// Its zone was being reclaimed.
    Reclaim,
    /// No zone was free.
    FreeZone,
}

impl WaitReason {
    /// Both, in report order.
    pub const ALL: [Self; 2] = [Self::Reclaim, Self::FreeZone];

    /// Stable name in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reclaim => "reclaim",
            Self::FreeZone => "free_zone",
        }
    }

    const fn slot(self) -> usize {
        match self {
            Self::Reclaim => 0,
            Self::FreeZone => 1,
        }
    }
}

/// Blocks of 4 KiB and events of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceStats {
    sent: [u64; 13],
    /// Blocks read for the host.
    pub read: u64,
    /// Blocks read for copying.
    pub read_for_copying: u64,
    /// Flushes sent.
    pub flushes_sent: u64,
    /// Zones reset.
    pub resets: u64,
}

impl DeviceStats {
    /// Blocks written to the device for one cause.
    #[must_use]
    pub fn sent(&self, cause: Sent) -> u64 {
        self.sent[cause.slot()]
    }

    /// Blocks written to the device for any cause.
    #[must_use]
    pub fn sent_total(&self) -> u64 {
        self.sent.iter().sum()
    }

    /// Saturating, because what was copied may turn out to be thrown away later.
    fn subtract(&mut self, earlier: &Self) {
        for (now, then) in self.sent.iter_mut().zip(earlier.sent) {
            *now = now.saturating_sub(then);
        }
        self.read -= earlier.read;
        self.read_for_copying -= earlier.read_for_copying;
        self.flushes_sent -= earlier.flushes_sent;
        self.resets -= earlier.resets;
    }
}

/// Sleeps of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// How many; each takes at most a second.
    pub count: u64,
    /// Their sum in nanoseconds.
    pub ns: u64,
}

/// How reclaims of one action ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reclaims {
    /// Begun.
    pub started: u64,
    /// Done.
    pub completed: u64,
    /// Given up because the host wanted the zone.
    pub aborted: u64,
    /// Given up because a device failed.
    pub failed: u64,
    /// Valid blocks of the zones that were begun, as the kernel logs them ("weight").
    pub started_weight: u64,
}

impl Reclaims {
    const fn subtract(&mut self, earlier: &Self) {
        self.started -= earlier.started;
        self.completed -= earlier.completed;
        self.aborted -= earlier.aborted;
        self.failed -= earlier.failed;
        self.started_weight -= earlier.started_weight;
    }
}

/// From when on the journal was written to a zone (Choi 2022, Fig. 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalZone {
    /// When its first block was.
    pub at: Nanos,
    /// Journal blocks written to other zones before.
    pub before: u64,
    /// The zone.
    pub zone: ZoneId,
}

/// Most of them that are kept.
const JOURNAL_PATH_MAX: usize = 4096;

/// What was counted since the volume was opened. Blocks are of 4 KiB.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Per device.
    pub devices: Vec<DeviceStats>,
    /// Blocks the host wrote.
    pub written: u64,
    /// Blocks the host read.
    pub read: u64,
    /// Blocks the host discarded.
    pub discarded: u64,
    /// Flushes of the host, those of FUA writes not counted.
    pub flushes: u64,
    /// Writes of the host with FUA.
    pub fua_writes: u64,
    /// Metadata flushes that wrote something.
    pub metadata_flushes: u64,
    /// Journal blocks written outside the pinned chunk or the journal zone set.
    pub journal_outside: u64,
    /// Pinned chunks that were moved out of a sequential zone.
    pub journal_merges: u64,
    /// Times that the journal lost zones, because it was gone or elsewhere.
    pub journal_demotions: u64,
    /// Journal blocks among those that were copied and thrown away.
    pub journal_aborted: u64,
    /// How often another zone took the journal than before.
    pub journal_moves: u64,
    /// The zones that the journal was written to, as it went from one to the next: the first 4,096.
    pub journal_path: Vec<JournalZone>,
    /// Sequential zones that failed to be written or reset.
    pub failed_zones: u64,
    reclaims: [Reclaims; 4],
    waits: [Waits; 2],
}

impl Stats {
    pub(crate) fn new(devices: Vec<DeviceStats>) -> Self {
        Self { devices, ..Self::default() }
    }

    /// What was counted since `earlier`, an older state of the same counters.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut since = self.clone();
        for (now, then) in since.devices.iter_mut().zip(&earlier.devices) {
            now.subtract(then);
        }
        for (now, then) in since.reclaims.iter_mut().zip(&earlier.reclaims) {
            now.subtract(then);
        }
        for (now, then) in since.waits.iter_mut().zip(earlier.waits) {
            *now = Waits { count: now.count - then.count, ns: now.ns - then.ns };
        }
        since.written -= earlier.written;
        since.read -= earlier.read;
        since.discarded -= earlier.discarded;
        since.flushes -= earlier.flushes;
        since.fua_writes -= earlier.fua_writes;
        since.metadata_flushes -= earlier.metadata_flushes;
        since.journal_outside -= earlier.journal_outside;
        since.journal_merges -= earlier.journal_merges;
        since.journal_demotions -= earlier.journal_demotions;
        since.journal_aborted -= earlier.journal_aborted;
        since.journal_moves -= earlier.journal_moves;
        // The zone that was in use then still counts.
        since.journal_path.drain(..earlier.journal_path.len().saturating_sub(1));
        since.failed_zones -= earlier.failed_zones;
        since
    }

    /// Reclaims of one action.
    #[must_use]
    pub fn reclaims(&self, action: Action) -> Reclaims {
        self.reclaims[action.slot()]
    }

    /// Sleeps of requests of the host.
    #[must_use]
    pub const fn waits(&self, reason: WaitReason) -> Waits {
        self.waits[reason.slot()]
    }

    /// Blocks written to all devices for one cause.
    #[must_use]
    pub fn sent(&self, cause: Sent) -> u64 {
        self.devices.iter().map(|device| device.sent(cause)).sum()
    }

    /// Blocks written to all devices for any cause.
    #[must_use]
    pub fn sent_total(&self) -> u64 {
        self.devices.iter().map(DeviceStats::sent_total).sum()
    }

    /// Blocks written to all devices / blocks the host wrote; `None` before the first.
    #[must_use]
    pub fn write_amplification(&self) -> Option<f64> {
        (self.written > 0).then(|| float(self.sent_total()) / float(self.written))
    }

    /// "Valid page copies" of Choi 2022: valid blocks copied, those thrown away included.
    #[must_use]
    pub fn valid_copies(&self) -> u64 {
        Sent::COPIES.map(|cause| self.sent(cause)).iter().sum()
    }

    pub(crate) fn count(&mut self, device: u32, cause: Sent, blocks: u64) {
        self.devices[index(device)].sent[cause.slot()] += blocks;
    }

    /// What was counted for one cause had another one after all.
    pub(crate) fn recount(&mut self, device: u32, (from, to): (Sent, Sent), blocks: u64) {
        let sent = &mut self.devices[index(device)].sent;
        sent[from.slot()] -= blocks;
        sent[to.slot()] += blocks;
    }

    /// Journal blocks among the valid ones that were copied, those thrown away included.
    #[must_use]
    pub fn journal_copies(&self) -> u64 {
        self.sent(Sent::JournalCopied) + self.journal_aborted
    }

    /// Journal blocks are about to go to a zone.
    pub(crate) fn note_journal(&mut self, at: Nanos, zone: ZoneId) {
        let before = self.sent(Sent::Journal) + self.sent(Sent::JournalAppended);
        let last = self.journal_path.last().map(|last| last.zone);
        if last == Some(zone) {
            return;
        }
        self.journal_moves += u64::from(last.is_some());
        if self.journal_path.len() < JOURNAL_PATH_MAX {
            self.journal_path.push(JournalZone { at, before, zone });
        }
    }

    pub(crate) fn reclaims_mut(&mut self, action: Action) -> &mut Reclaims {
        &mut self.reclaims[action.slot()]
    }

    pub(crate) const fn waited(&mut self, reason: WaitReason, ns: u64) {
        let waits = &mut self.waits[reason.slot()];
        waits.count += 1;
        waits.ns += ns;
    }
}
