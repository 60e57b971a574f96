//! What a volume counts. One struct for both clocks.

/// Why blocks were sent to the backing (design.md, contract 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sent {
    /// Data the host wrote.
    User,
    /// Data the host wrote to journals that have log segments of their own.
    Journal,
    /// Headers of batches.
    Header,
    /// Fill up to the indirection unit.
    Padding,
    /// Live data moved by the cleaner.
    Cleaning,
    /// Map pages, their sums, directories, runs and bodies of checkpoints.
    Map,
    /// Labels and roots.
    Label,
    /// Copies of the label that a scrub wrote anew. What it has checkpoints write counts as theirs.
    Scrub,
}

impl Sent {
    /// Every cause, in report order.
    pub const ALL: [Self; 8] = [
        Self::User,
        Self::Journal,
        Self::Header,
        Self::Padding,
        Self::Cleaning,
        Self::Map,
        Self::Label,
        Self::Scrub,
    ];

    /// Stable name in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Journal => "journal",
            Self::Header => "header",
            Self::Padding => "padding",
            Self::Cleaning => "cleaning",
            Self::Map => "map",
            Self::Label => "label",
            Self::Scrub => "scrub",
        }
    }

    const fn slot(self) -> usize {
        match self {
            Self::User => 0,
            Self::Journal => 1,
            Self::Header => 2,
            Self::Padding => 3,
            Self::Cleaning => 4,
            Self::Map => 5,
            Self::Label => 6,
            Self::Scrub => 7,
        }
    }
}

/// Blocks of 4 KiB and events, since the volume was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    sent: [u64; 8],
    /// Blocks the host wrote. Those overwritten before they were sent are not in [`Sent::User`] or
    /// [`Sent::Journal`].
    pub written: u64,
    /// Blocks the host read.
    pub read: u64,
    /// Blocks the host trimmed.
    pub trimmed: u64,
    /// Overwritten in memory before they were sent.
    pub absorbed: u64,
    /// Runs of contiguous blocks that reads of the host took, zeroes and memory not counted.
    pub read_runs: u64,
    /// Blocks read by the cleaner, headers included.
    pub clean_read: u64,
    /// Blocks the cleaner read but did not move, because they were overwritten meanwhile.
    pub clean_wasted: u64,
    /// Blocks the cleaner moved to where a batch of the host would be padded: of [`Sent::Cleaning`].
    pub filled: u64,
    /// Blocks the cleaner moved by remap: neither read nor sent.
    pub remapped: u64,
    /// Remaps that the backing could not do; the blocks are copied then.
    pub failed_remaps: u64,
    /// Blocks that the cleaner moved out of log segments of journals: of [`Sent::Cleaning`], or of `remapped`.
    pub journal_copied: u64,
    /// Times that log segments of journals became ordinary ones: the journal is gone or elsewhere, or there is no room.
    pub journal_demotions: u64,
    /// Log segments cleaned.
    pub cleaned_segments: u64,
    /// Log segments that cannot be cleaned because their headers or their map cannot be read.
    pub damaged_segments: u64,
    /// Blocks that were stored compressed (`crate::packs`).
    pub packed: u64,
    /// Log segments given back.
    pub freed_segments: u64,
    /// Blocks of log segments trimmed on the backing.
    pub trim_sent: u64,
    /// Zones reset.
    pub zone_resets: u64,
    /// Zones finished that were not full.
    pub zone_finishes: u64,
    /// Flushes of the host.
    pub flushes: u64,
    /// Flushes sent to the backing.
    pub flushes_sent: u64,
    /// Batches sent.
    pub batches: u64,
    /// Batches that have nothing but the number of what is durable.
    pub markers: u64,
    /// Checkpoints.
    pub checkpoints: u64,
    /// Map pages read.
    pub map_faults: u64,
    /// Map pages that made room for others.
    pub map_evictions: u64,
    /// Requests to the backing that failed, each time that they did.
    pub failed_requests: u64,
    /// Times that a part of a write that had failed was found in its zone.
    pub resumed_writes: u64,
    /// Batches that failed and went elsewhere.
    pub retried_batches: u64,
    /// Blocks whose checksum was wrong.
    pub crc_errors: u64,
    /// Passes of the scrub that came to their end.
    pub scrubs: u64,
    /// Blocks that scrubs read.
    pub scrub_read: u64,
    /// What scrubs found damaged.
    pub scrub_damaged: u64,
    /// What scrubs had written anew of that.
    pub scrub_mended: u64,
    /// Times that a write of the host had to wait for the cleaner.
    pub clean_stalls: u64,
    /// How long these waited; counted in the modes `sung` and `han`.
    pub clean_stall_ns: u64,
    /// Tables that were searched for where blocks lie (modes `sung` and `han`).
    pub map_probes: u64,
    /// Tables that were read because they had left memory (mode `sung`).
    pub table_faults: u64,
}

impl Stats {
    /// Blocks sent to the backing for one cause.
    #[must_use]
    pub const fn sent(&self, cause: Sent) -> u64 {
        self.sent[cause.slot()]
    }

    /// Blocks sent to the backing for any cause.
    #[must_use]
    pub fn sent_total(&self) -> u64 {
        self.sent.iter().sum()
    }

    /// Counts blocks that are sent for one cause.
    pub const fn count(&mut self, cause: Sent, blocks: u64) {
        self.sent[cause.slot()] += blocks;
    }

    /// What was counted since `earlier`, an older state of the same counters.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut sent = self.sent;
        sent.iter_mut().zip(earlier.sent).for_each(|(now, then)| *now -= then);
        Self {
            sent,
            written: self.written - earlier.written,
            read: self.read - earlier.read,
            trimmed: self.trimmed - earlier.trimmed,
            absorbed: self.absorbed - earlier.absorbed,
            read_runs: self.read_runs - earlier.read_runs,
            clean_read: self.clean_read - earlier.clean_read,
            clean_wasted: self.clean_wasted - earlier.clean_wasted,
            filled: self.filled - earlier.filled,
            remapped: self.remapped - earlier.remapped,
            failed_remaps: self.failed_remaps - earlier.failed_remaps,
            journal_copied: self.journal_copied - earlier.journal_copied,
            journal_demotions: self.journal_demotions - earlier.journal_demotions,
            cleaned_segments: self.cleaned_segments - earlier.cleaned_segments,
            damaged_segments: self.damaged_segments - earlier.damaged_segments,
            packed: self.packed - earlier.packed,
            freed_segments: self.freed_segments - earlier.freed_segments,
            trim_sent: self.trim_sent - earlier.trim_sent,
            zone_resets: self.zone_resets - earlier.zone_resets,
            zone_finishes: self.zone_finishes - earlier.zone_finishes,
            flushes: self.flushes - earlier.flushes,
            flushes_sent: self.flushes_sent - earlier.flushes_sent,
            batches: self.batches - earlier.batches,
            markers: self.markers - earlier.markers,
            checkpoints: self.checkpoints - earlier.checkpoints,
            map_faults: self.map_faults - earlier.map_faults,
            map_evictions: self.map_evictions - earlier.map_evictions,
            failed_requests: self.failed_requests - earlier.failed_requests,
            resumed_writes: self.resumed_writes - earlier.resumed_writes,
            retried_batches: self.retried_batches - earlier.retried_batches,
            crc_errors: self.crc_errors - earlier.crc_errors,
            scrubs: self.scrubs - earlier.scrubs,
            scrub_read: self.scrub_read - earlier.scrub_read,
            scrub_damaged: self.scrub_damaged - earlier.scrub_damaged,
            scrub_mended: self.scrub_mended - earlier.scrub_mended,
            clean_stalls: self.clean_stalls - earlier.clean_stalls,
            clean_stall_ns: self.clean_stall_ns - earlier.clean_stall_ns,
            map_probes: self.map_probes - earlier.map_probes,
            table_faults: self.table_faults - earlier.table_faults,
        }
    }

    /// Blocks sent / blocks the host wrote; `None` before the first.
    #[must_use]
    pub fn write_amplification(&self) -> Option<f64> {
        use onefold_units::convert::float;
        (self.written > 0).then(|| float(self.sent_total()) / float(self.written))
    }
}
