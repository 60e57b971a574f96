//! The device: how it is built, what it tells, how it is shut down. Commands are in `submit`.

use onefold_buffer::{Learnt, Policy, Sizes, Stats, new_policy};
use onefold_ftl::{Ftl, FtlError, OnLogDamage, RecoveryReport};
use onefold_nand::{At, Grant, Media, Nand, NullMedia};
use onefold_units::convert::{index, narrow};
use onefold_units::{Lpn, Nanos};

use crate::buffered::Buffered;
use crate::classifier::Classified;
use crate::dedup::{Dedup, DedupStats, Unit, content_of_unit, store};
use crate::times::Times;
use crate::{BuildError, HostStats, SsdConfig, SsdError};

/// One modelled SSD with a block namespace.
pub struct Ssd<M> {
    pub(crate) config: SsdConfig,
    pub(crate) ftl: Ftl<M>,
    pub(crate) buffer: Option<Buffered>,
    pub(crate) dedup: Option<Dedup>,
    pub(crate) classified: Option<Classified>,
    pub(crate) host: HostStats,
    pub(crate) capacity: u64,
    pub(crate) unit: u64,
    pub(crate) collects_when_idle: bool,
    /// Nothing of it looks at a command on its way to the FTL (`unit`).
    pub(crate) is_plain: bool,
    /// log2 of `unit`.
    pub(crate) unit_shift: u32,
    /// What the controller works for a command of one unit.
    pub(crate) unit_work: Nanos,
    /// One unit; empty where no bytes are stored.
    pub(crate) scratch: Vec<u8>,
}

onefold_units::keep!(Ssd<NullMedia> { ftl, host } each { buffer, dedup, classified } but { config, capacity, unit,
    collects_when_idle, is_plain, unit_shift, unit_work, scratch });

impl<M: Media> Ssd<M> {
    /// A fresh device over an erased medium.
    ///
    /// # Errors
    /// The parts of the configuration do not fit together.
    pub fn new(config: SsdConfig, media: M) -> Result<Self, BuildError> {
        let nand = Nand::new(config.geometry, config.timing, config.faults, media);
        let ftl = Ftl::new(nand, config.ftl, config.faults.bad_superblocks)?;
        Self::assemble(&config, ftl)
    }

    /// A device whose medium was used before, after a power cut or a clean shutdown.
    ///
    /// # Errors
    /// The configuration does not fit the medium, or the medium failed.
    pub fn recover(config: SsdConfig, media: M) -> Result<(Self, RecoveryReport), BuildError> {
        Self::recover_with(config, media, OnLogDamage::Refuse)
    }

    /// The same with a choice about damaged pages of the remap log.
    ///
    /// # Errors
    /// As [`Ftl::recover_with`].
    pub fn recover_with(
        config: SsdConfig,
        media: M,
        on_log_damage: OnLogDamage,
    ) -> Result<(Self, RecoveryReport), BuildError> {
        let nand = Nand::new(config.geometry, config.timing, config.faults, media);
        let bad = config.faults.bad_superblocks;
        let (mut ftl, report) = Ftl::recover_with(nand, config.ftl, bad, on_log_damage)?;
        ftl.set_timed(true);
        Ok((Self::assemble(&config, ftl)?, report))
    }

    fn assemble(config: &SsdConfig, ftl: Ftl<M>) -> Result<Self, BuildError> {
        let unit = config.geometry.unit_bytes();
        let flash = config.geometry.spec();
        let sizes = Sizes {
            entry_bytes: unit,
            flash_page_bytes: flash.page_bytes.max(unit),
            device_bytes: u64::from(ftl.host_units()) * u64::from(unit),
            channels: flash.channels,
            ways: flash.ways,
        };
        let dedup = Dedup::new::<M>(config, ftl.host_units());
        let asks_contents = dedup.is_some() || config.unmap_zeroes;
        if asks_contents && config.buffer.bytes > 0 && !M::STORES {
            return Err(BuildError::DedupInBuffer);
        }
        let buffer = if config.buffer.bytes == 0 {
            None
        } else {
            let policy = new_policy(&config.buffer, &sizes)?;
            Some(Buffered::new::<M>(policy, config, ftl.host_units()))
        };
        let classified =
            Classified::new(&config.classifier, ftl.host_units(), unit, config.ftl.streams);
        Ok(Self {
            config: *config,
            is_plain: !config.ftl.gc_idle
                && !asks_contents
                && buffer.is_none()
                && classified.is_none(),
            capacity: u64::from(ftl.host_units()) * u64::from(unit),
            unit: u64::from(unit),
            collects_when_idle: config.ftl.gc_idle,
            unit_shift: unit.trailing_zeros(),
            unit_work: config.timing.work(config.geometry.pages_per_unit()),
            scratch: vec![0; if M::STORES { index(unit) } else { 0 }],
            classified,
            ftl,
            buffer,
            dedup,
            host: HostStats::default(),
        })
    }

    /// The same drive for a simulation: it knows where everything is, and no longer what. What a buffer held is gone, but
    /// not what it has learnt, and counters of the host begin anew.
    ///
    /// # Errors
    /// The parts of the configuration do not fit together without bytes.
    pub fn without_bytes(self) -> Result<Ssd<NullMedia>, BuildError> {
        let mut same = Ssd::assemble(&self.config, self.ftl.without_bytes())?;
        if let Some(learnt) = self.buffer.as_ref().and_then(|buffer| buffer.policy.learnt()) {
            same.learn(learnt);
        }
        Ok(same)
    }

    /// Bytes the host sees.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// What defines the device.
    #[must_use]
    pub const fn config(&self) -> &SsdConfig {
        &self.config
    }

    /// The FTL.
    #[must_use]
    pub const fn ftl(&self) -> &Ftl<M> {
        &self.ftl
    }

    /// The FTL, for preconditioning and checks.
    pub const fn ftl_mut(&mut self) -> &mut Ftl<M> {
        &mut self.ftl
    }

    /// Whether what the device does takes virtual time. Times begin at zero again.
    pub fn set_timed(&mut self, timed: bool) {
        self.ftl.set_timed(timed);
        if let Some(dedup) = &mut self.dedup {
            dedup.set_timed(timed);
        }
    }

    /// What the host asked for so far.
    #[must_use]
    pub const fn host_stats(&self) -> &HostStats {
        &self.host
    }

    /// The buffer policy, if there is a buffer.
    #[must_use]
    pub fn buffer(&self) -> Option<&(dyn Policy + Send)> {
        self.buffer.as_ref().map(|buffer| buffer.policy.as_ref())
    }

    /// What the buffer has learnt of the addresses of the device, for whoever keeps it while the device is off.
    #[must_use]
    pub fn learnt(&self) -> Option<Learnt<'_>> {
        self.buffer.as_ref()?.policy.learnt()
    }

    /// Gives the buffer what was kept. Returns whether it took that.
    pub fn learn(&mut self, learnt: Learnt<'_>) -> bool {
        self.buffer.as_mut().is_some_and(|buffer| buffer.policy.learn(learnt))
    }

    /// Bytes of the units whose newest content is nowhere but in the buffer; 0 where no bytes are stored.
    #[must_use]
    pub fn dirty_bytes(&self) -> u64 {
        self.buffer.as_ref().map_or(0, |buffer| buffer.dirty.len() * self.unit)
    }

    /// What the buffer counted, if there is one. Other than the statistics of the policy alone, it
    /// knows which misses were served from victims on their way to flash.
    #[must_use]
    pub fn buffer_stats(&self) -> Option<Stats> {
        self.buffer.as_ref().map(Buffered::stats)
    }

    /// Gives the medium back, as when power is lost: everything volatile is gone.
    #[must_use]
    pub fn into_media(self) -> M {
        self.ftl.into_media()
    }

    /// Writes everything volatile to flash and takes a checkpoint: recovery then has nothing to do. A drive with a failed die
    /// cannot: it is left as it is.
    ///
    /// # Errors
    /// What the FTL reported; the device is as after a power cut then, and loses nothing flushed.
    pub fn shut_down(&mut self, now: Nanos) -> Result<(), SsdError> {
        if self.ftl.nand().failed_die().is_some() {
            return Ok(());
        }
        let times = Times { now, ready: now };
        self.drain_buffer(times)?;
        self.ftl.flush(times.host())?;
        self.ftl.checkpoint_now(now)?;
        self.ftl.flush(times.host())?;
        Ok(())
    }

    /// Whether the byte at `offset` is stored, and for how many bytes on (at most `len`) that stays
    /// the same.
    #[must_use]
    pub fn extent(&self, offset: u64, len: u64) -> (bool, u64) {
        let mapped = |unit: u64| self.is_mapped_anywhere(Lpn::new(narrow(unit)));
        let end = offset.saturating_add(len).min(self.capacity);
        let first = offset / self.unit;
        let state = mapped(first);
        let mut unit = first + 1;
        while unit * self.unit < end && mapped(unit) == state {
            unit += 1;
        }
        (state, (unit * self.unit).min(end) - offset)
    }

    pub(crate) fn is_mapped_anywhere(&self, lpn: Lpn) -> bool {
        let buffered = self
            .buffer
            .as_ref()
            .is_some_and(|buffer| buffer.dirty.contains(lpn) || buffer.holes.has(lpn));
        buffered || self.ftl.is_mapped(lpn)
    }

    /// Begins to load the map entry that a command at this byte will need.
    #[inline]
    pub fn prefetch(&self, offset: u64) {
        if offset < self.capacity {
            self.ftl.prefetch(Lpn::new(narrow(offset >> self.unit_shift)));
        }
    }

    /// Writes one whole unit past link and buffer, for preconditioning; `contents` are those of its
    /// pages, as in [`Payload::Contents`](crate::Payload::Contents), or none.
    ///
    /// # Errors
    /// What the FTL reported.
    pub fn prefill(&mut self, at: At, lpn: Lpn, contents: &[u128]) -> Result<Grant, FtlError> {
        let pages = self.ftl.nand().geometry().pages_per_unit();
        let stream = if self.classified.is_some() { self.stream(lpn, 1, 0) } else { 0 };
        let unit = Unit { lpn, pages, stream, data: &[], content: content_of_unit(contents) };
        store(&mut self.ftl, self.dedup.as_mut(), self.config.unmap_zeroes, at, unit)
    }

    /// The same for up to `count` units from `first` on that nothing is known of, and returns how many
    /// were written: none where the next one has to be written by itself ([`Ftl::write_run`]).
    pub fn prefill_run(&mut self, first: Lpn, count: u32) -> u32 {
        if self.classified.is_some() || self.dedup.is_some() {
            return 0;
        }
        self.ftl.write_run(first, count)
    }

    /// The stream of a unit that comes with `units` and for which `stream` was asked.
    #[cold]
    pub(crate) fn stream(&mut self, lpn: Lpn, units: u64, stream: u32) -> u32 {
        match &mut self.classified {
            None => stream,
            Some(classified) => classified.stream(lpn, units, stream),
        }
    }

    /// Whether the device looks at the contents of what is written.
    #[must_use]
    pub const fn asks_contents(&self) -> bool {
        self.dedup.is_some() || self.config.unmap_zeroes
    }

    /// What fingerprinting did so far; nothing without deduplication.
    #[must_use]
    pub fn dedup_stats(&self) -> DedupStats {
        self.dedup.as_ref().map_or_else(DedupStats::default, |dedup| dedup.stats)
    }
}
