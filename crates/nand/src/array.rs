//! The flash array: rules, faults and times around a medium.
//!
//! 1. A superblock is programmed in ascending order, each program once, after an erase.
//! 2. Every operation takes its time on the timelines, unless the array is untimed.
//! 3. Faults are drawn in the order of operations alone: with and without times, and with and without bytes, the same
//!    operations meet the same faults.
//! 4. Once a die has failed nothing is programmed or erased, and no data on it is read. Spare areas, headers and NVRAM can be read:
//!    the drive is taken to keep what it says of itself on several dies.
//!
//! What a flash operation takes is compiled into its few callers as a whole (`inline(always)`): the functions
//! on the way have many arguments, and handing those on takes as long as the work.
#![expect(clippy::inline_always, reason = "the way of an operation, see above")]

use onefold_units::convert::{index, u64_from};
use onefold_units::{Nanos, Ppn, Rng, SuperblockId};

use crate::media::{Media, MediaError, NullMedia, Spare};
use crate::{Delay, FaultSpec, Geometry, Grant, Timelines, TimingSpec, Work};

/// When an operation is submitted, and when it may start at the earliest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// Time of the submission; never decreases.
    pub now: Nanos,
    /// Time from which the operation may start: its inputs are there.
    pub ready: Nanos,
    /// For whom it is done.
    pub work: Work,
}

/// The flash array of one device.
#[derive(Clone, Debug)]
pub struct Nand<M> {
    geometry: Geometry,
    timelines: Timelines,
    media: M,
    timed: bool,
    /// Next program of each superblock; `u32::MAX` where it has to be erased first.
    next: Vec<u32>,
    faults: Option<Box<Faults>>,
    erases: u64,
    programs: u64,
    slow: SlowCounts,
}

onefold_units::keep!(Nand<NullMedia> { timelines, timed, next, erases, programs, slow } each { faults } but { geometry, media });

/// Operations that took longer than usual ([`FaultSpec::slow`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlowCounts {
    /// Reads that needed retries.
    pub reads: u64,
    /// Programs that needed more pulses.
    pub programs: u64,
}

onefold_units::keep!(SlowCounts { reads, programs });

impl SlowCounts {
    /// What was counted since `earlier`, an older state of the same counters.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self { reads: self.reads - earlier.reads, programs: self.programs - earlier.programs }
    }
}

#[derive(Clone, Debug)]
struct Faults {
    spec: FaultSpec,
    program: Rng,
    erase: Rng,
    read: Rng,
    rot: Rng,
    slow_program: Rng,
    slow_read: Rng,
    /// The last read needed retries.
    retried: bool,
    failed_die: Option<u32>,
}

onefold_units::keep!(Faults { program, erase, read, rot, slow_program, slow_read, retried, failed_die } but { spec });

impl Faults {
    /// The faults to draw; `None` if there are none.
    fn new(spec: FaultSpec) -> Option<Box<Self>> {
        let probabilities = [spec.program, spec.erase, spec.read, spec.bit_rot, spec.slow];
        let draw = |stream| Rng::fork(spec.seed, stream);
        let injects = spec.die > 0 || probabilities.iter().any(|p| *p > 0.0);
        injects.then(|| {
            Box::new(Self {
                spec,
                program: draw(11),
                erase: draw(12),
                read: draw(13),
                rot: draw(14),
                slow_program: draw(15),
                slow_read: draw(16),
                retried: false,
                failed_die: None,
            })
        })
    }
}

impl<M: Media> Nand<M> {
    /// An array around an erased `media`. Recovery marks what it finds programmed with
    /// [`Nand::close_short`].
    #[must_use]
    pub fn new(geometry: Geometry, timing: TimingSpec, faults: FaultSpec, media: M) -> Self {
        Self {
            geometry,
            timelines: Timelines::new(&geometry, timing),
            media,
            timed: true,
            next: vec![0; index(geometry.superblocks())],
            faults: Faults::new(faults),
            erases: 0,
            programs: 0,
            slow: SlowCounts::default(),
        }
    }

    /// The shape of the array.
    #[must_use]
    pub const fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The timelines.
    #[must_use]
    pub const fn timelines(&self) -> &Timelines {
        &self.timelines
    }

    /// The timelines, for controller and link work.
    pub const fn timelines_mut(&mut self) -> &mut Timelines {
        &mut self.timelines
    }

    /// The medium.
    #[must_use]
    pub const fn media(&self) -> &M {
        &self.media
    }

    /// The medium, for headers, NVRAM and synchronisation.
    pub const fn media_mut(&mut self) -> &mut M {
        &mut self.media
    }

    /// Injects these faults from now on, in place of those before.
    pub fn set_faults(&mut self, spec: FaultSpec) {
        self.faults = Faults::new(spec);
    }

    /// The same array around another medium, which is taken to hold the same.
    #[must_use]
    pub fn with_media<N>(self, media: N) -> Nand<N> {
        let Self { geometry, timelines, media: _, timed, next, faults, erases, programs, slow } =
            self;
        Nand { geometry, timelines, media, timed, next, faults, erases, programs, slow }
    }

    /// Gives the medium back, as when power is lost.
    #[must_use]
    pub fn into_media(self) -> M {
        self.media
    }

    /// Superblock erases so far.
    #[must_use]
    pub const fn erases(&self) -> u64 {
        self.erases
    }

    /// 4 KiB pages programmed so far, failed programs included.
    #[must_use]
    pub fn programmed_pages(&self) -> u64 {
        let slots = u64::from(self.geometry.slots_per_program());
        self.programs * slots * self.geometry.pages_per_unit()
    }

    /// Reads and programs that took longer than usual so far.
    #[must_use]
    pub const fn slow(&self) -> SlowCounts {
        self.slow
    }

    /// Whether the last read needed retries.
    #[must_use]
    pub fn was_retried(&self) -> bool {
        self.faults.as_ref().is_some_and(|faults| faults.retried)
    }

    /// Whether a die fails some day.
    #[must_use]
    #[inline]
    pub fn is_to_lose_die(&self) -> bool {
        self.faults.as_ref().is_some_and(|faults| faults.spec.die > 0)
    }

    /// So many superblocks were taken into use in the life of the drive by now: a die may have failed ([`FaultSpec::die`]).
    ///
    /// # Errors
    /// [`MediaError::DieFailed`], once one has.
    #[inline]
    pub fn grow_old(&mut self, opened: u64) -> Result<(), MediaError> {
        if let Some(faults) = &mut self.faults {
            faults.failed_die = faults.spec.failed_die(self.geometry.dies(), opened);
        }
        self.expect_all_dies()
    }

    /// The die that failed, if one has.
    #[must_use]
    #[inline]
    pub fn failed_die(&self) -> Option<u32> {
        self.faults.as_ref()?.failed_die
    }

    #[inline]
    fn expect_all_dies(&self) -> Result<(), MediaError> {
        self.failed_die().map_or(Ok(()), |die| Err(MediaError::DieFailed { die }))
    }

    /// Switches time off (preconditioning) or on again with idle timelines.
    pub fn set_timed(&mut self, timed: bool) {
        self.timed = timed;
        self.timelines.reset(&self.geometry);
    }

    /// Whether operations take no time, store no bytes and meet no faults.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        !self.timed && !M::STORES && self.faults.is_none()
    }

    /// Does the next `count` programs of a superblock, from `program` on, on an array that
    /// [is plain](Nand::is_plain).
    pub fn program_many(&mut self, superblock: SuperblockId, program: u32, count: u32) {
        assert!(self.is_plain(), "programs of {superblock:?} that are more than counted");
        let next = &mut self.next[superblock.index()];
        assert!(*next == program, "program {program} of {superblock:?}, expected {next} (rule 1)");
        *next += count;
        self.programs += u64::from(count);
    }

    /// Programs the next program of a superblock: one spare area per slot, and their data.
    ///
    /// # Errors
    /// [`MediaError::ProgramFailed`] uses up the program; the caller writes elsewhere. [`MediaError::DieFailed`]: there is nowhere to
    /// write any more.
    #[inline(always)]
    pub fn program(
        &mut self,
        at: At,
        superblock: SuperblockId,
        program: u32,
        spares: &[Spare],
        data: &[u8],
    ) -> Result<Grant, MediaError> {
        self.expect_all_dies()?;
        let next = &mut self.next[superblock.index()];
        assert!(*next == program, "program {program} of {superblock:?}, expected {next} (rule 1)");
        *next += 1;
        self.programs += 1;
        let times = if self.faults.is_some() { self.slow_program() } else { 1 };
        let grant = self.time_program(at, superblock, program, times);
        if let Some(faults) = &mut self.faults
            && faults.program.unit() < faults.spec.program
        {
            return Err(MediaError::ProgramFailed);
        }
        if M::STORES {
            let first = program * self.geometry.slots_per_program();
            self.media.program(self.geometry.ppn(superblock, first), spares, data)?;
        }
        Ok(grant)
    }

    /// Counts a program and lets it take its time at the place of a slot, without one: for what is only
    /// modelled.
    pub fn charge_program(&mut self, at: At, ppn: Ppn) -> Grant {
        let (superblock, slot) = self.geometry.split(ppn);
        let (program, _) = self.geometry.program_of(slot);
        self.programs += 1;
        self.time_program(at, superblock, program, 1)
    }

    /// Draws how many times as long as usual a program takes.
    #[cold]
    fn slow_program(&mut self) -> u32 {
        let Some(faults) = &mut self.faults else { return 1 };
        if faults.slow_program.unit() >= faults.spec.slow {
            return 1;
        }
        self.slow.programs += 1;
        faults.spec.slow_by.max(1)
    }

    /// Draws how many times as long as usual a read takes.
    #[cold]
    fn slow_read(&mut self) -> u32 {
        let Some(faults) = &mut self.faults else { return 1 };
        faults.retried = faults.slow_read.unit() < faults.spec.slow;
        if !faults.retried {
            return 1;
        }
        self.slow.reads += 1;
        faults.spec.slow_by.max(1)
    }

    #[inline(always)]
    fn time_program(
        &mut self,
        at: At,
        superblock: SuperblockId,
        program: u32,
        times: u32,
    ) -> Grant {
        if !self.timed {
            return Grant { done: at.now, delay: Delay::None };
        }
        if self.geometry.pages_per_program() != 1 {
            return self.time_program_of_pages(at, superblock, program, times);
        }
        let page_bytes = self.geometry.spec().page_bytes;
        let place = self.geometry.locate(superblock, program, 0);
        self.timelines.program(at.now, at.ready, place, page_bytes, at.work, times)
    }

    #[inline(never)]
    fn time_program_of_pages(
        &mut self,
        at: At,
        superblock: SuperblockId,
        program: u32,
        times: u32,
    ) -> Grant {
        let page_bytes = self.geometry.spec().page_bytes;
        let mut all = Grant { done: at.now, delay: Delay::None };
        for part in 0..self.geometry.pages_per_program() {
            let place = self.geometry.locate(superblock, program, part);
            let grant = self.timelines.program(at.now, at.ready, place, page_bytes, at.work, times);
            all = Grant { done: all.done.max(grant.done), delay: all.delay.max(grant.delay) };
        }
        all
    }

    /// Reads one slot into `data` (a whole unit, or empty) and moves `bytes` of it over the
    /// channel. The spare area goes to `spare`, which stays as it is where no bytes are stored.
    #[inline(always)]
    pub fn read(
        &mut self,
        at: At,
        ppn: Ppn,
        bytes: u32,
        data: &mut [u8],
        spare: &mut Spare,
    ) -> Result<Grant, MediaError> {
        let times = if self.faults.is_some() { self.slow_read() } else { 1 };
        let grant = self.time_read(at, ppn, bytes, times);
        if M::STORES {
            *spare = self.media.read(ppn, data)?;
        }
        if self.faults.is_some() {
            self.fail_read(ppn, data)?;
        }
        Ok(grant)
    }

    /// Reads consecutive slots of one flash page into `data` (that many units, or nothing where it is empty): one array
    /// read, and their bytes over the channel. `spares` gets a spare area each where bytes are stored.
    ///
    /// # Errors
    /// As [`Nand::read`].
    pub fn read_slots(
        &mut self,
        at: At,
        first: Ppn,
        count: u32,
        data: &mut [u8],
        spares: &mut Vec<Spare>,
    ) -> Result<Grant, MediaError> {
        let times = if self.faults.is_some() { self.slow_read() } else { 1 };
        let grant = self.time_read(at, first, count * self.geometry.unit_bytes(), times);
        self.load_slots(first, count, data, spares)?;
        if self.faults.is_some() {
            self.fail_read(first, data)?;
        }
        Ok(grant)
    }

    /// The same without an array read, for what is still in RAM of the controller in the model.
    ///
    /// # Errors
    /// What the medium reports.
    pub fn load_slots(
        &mut self,
        first: Ppn,
        count: u32,
        data: &mut [u8],
        spares: &mut Vec<Spare>,
    ) -> Result<(), MediaError> {
        spares.clear();
        if M::STORES {
            let mut units = data.chunks_exact_mut(index(self.geometry.unit_bytes()));
            for slot in first.raw()..first.raw() + count {
                spares.push(self.media.read(Ppn::new(slot), units.next().unwrap_or_default())?);
            }
        } else {
            crate::zero(data);
        }
        Ok(())
    }

    /// Draws read faults.
    #[cold]
    fn fail_read(&mut self, ppn: Ppn, data: &mut [u8]) -> Result<(), MediaError> {
        let Some(faults) = &mut self.faults else { return Ok(()) };
        let lost = faults.failed_die.is_some_and(|die| self.geometry.lies_on(ppn, die));
        if faults.read.unit() < faults.spec.read || lost {
            return Err(MediaError::Unreadable);
        }
        if faults.rot.unit() < faults.spec.bit_rot {
            let at = faults.rot.below(u64_from(data.len()));
            match data.get_mut(onefold_units::convert::index64(at)) {
                Some(byte) => *byte ^= 1,
                None => return Err(MediaError::Unreadable),
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn time_read(&mut self, at: At, ppn: Ppn, bytes: u32, times: u32) -> Grant {
        if !self.timed {
            return Grant { done: at.now, delay: Delay::None };
        }
        let (superblock, slot) = self.geometry.split(ppn);
        let (program, _) = self.geometry.program_of(slot);
        if self.geometry.pages_per_program() != 1 {
            return self.time_read_of_pages(at, (superblock, program), bytes, times);
        }
        let bytes = bytes.min(self.geometry.spec().page_bytes);
        let place = self.geometry.locate(superblock, program, 0);
        self.timelines.read(at.now, at.ready, place, bytes, at.work, times)
    }

    #[inline(never)]
    fn time_read_of_pages(
        &mut self,
        at: At,
        (superblock, program): (SuperblockId, u32),
        bytes: u32,
        times: u32,
    ) -> Grant {
        let page_bytes = self.geometry.spec().page_bytes;
        let mut all = Grant { done: at.now, delay: Delay::None };
        for part in 0..bytes.div_ceil(page_bytes) {
            let place = self.geometry.locate(superblock, program, part);
            let grant = self.timelines.read(at.now, at.ready, place, page_bytes, at.work, times);
            all = Grant { done: all.done.max(grant.done), delay: all.delay.max(grant.delay) };
        }
        all
    }

    /// Erases a superblock.
    ///
    /// # Errors
    /// [`MediaError::EraseFailed`]: the superblock cannot be used any more. [`MediaError::DieFailed`].
    pub fn erase(&mut self, at: At, superblock: SuperblockId) -> Result<Grant, MediaError> {
        self.expect_all_dies()?;
        let grant = self.time_erase(at, superblock);
        self.erases += 1;
        if let Some(faults) = &mut self.faults
            && faults.erase.unit() < faults.spec.erase
        {
            return Err(MediaError::EraseFailed);
        }
        self.media.erase(superblock)?;
        self.next[superblock.index()] = 0;
        Ok(grant)
    }

    fn time_erase(&mut self, at: At, superblock: SuperblockId) -> Grant {
        let mut all = Grant { done: at.now, delay: Delay::None };
        if !self.timed {
            return all;
        }
        let planes_apart = self.timelines.spec().plane_parallel;
        for lane in 0..self.geometry.lanes() {
            let place = self.geometry.lane(superblock, lane);
            // One erase command covers all planes of a die, unless they work independently.
            if place.plane == 0 || planes_apart {
                let grant = self.timelines.erase(at.now, at.ready, place, at.work);
                all = Grant { done: all.done.max(grant.done), delay: all.delay.max(grant.delay) };
            }
        }
        all
    }

    /// Marks how far a superblock was programmed before a power cut, each program whole: it goes on with `program`.
    pub fn resume(&mut self, superblock: SuperblockId, program: u32) {
        self.next[superblock.index()] = program;
    }

    /// Marks how far a superblock was programmed before a power cut: it takes no more programs.
    pub fn close_short(&mut self, superblock: SuperblockId) {
        self.next[superblock.index()] = u32::MAX;
    }
}
