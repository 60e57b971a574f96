//! Writing fresh units in order, many at once: preconditioning.
//!
//! While nothing takes time, fails or shares a slot, what such writes leave behind is known beforehand:
//! the pools take turns, and each puts its units into the next slots of its frontier. So the tables
//! are filled by runs ([`crate::entries`]), and no unit takes time of its own. What happens now and then
//! is left to [`Ftl::write`]: superblocks are opened and closed there, and checkpoints begin there.

use onefold_format::SlotKind;
use onefold_nand::Media;
use onefold_units::convert::{index, narrow, u32_from};
use onefold_units::{Cause, Lpn, Ppn};

use crate::entries::Run;
use crate::ftl::Ftl;
use crate::layout::UNMAPPED;
use crate::lifecycle::tail_record;

impl<M: Media> Ftl<M> {
    /// Writes up to `count` units from `first` on, as [`Ftl::write`] would whole units of stream 0 one
    /// by one, and returns how many it wrote. It writes none where the next unit has to be written by
    /// itself:
    ///
    /// - the unit was written before, opens or fills a superblock, or begins a checkpoint;
    /// - the superblocks that the pools fill are not in one row;
    /// - the FTL remaps, finds duplicates, pages its map or collects;
    /// - flash takes its time, stores bytes or has faults.
    pub fn write_run(&mut self, first: Lpn, count: u32) -> u32 {
        let Some((rounds, run)) = self.rounds(first.raw(), count) else { return 0 };
        let pools = u32_from(self.pools.len());
        for nth in 0..pools {
            self.fill_frontier(self.pool_after(nth), rounds, first.raw() + nth, nth);
        }
        let units = rounds * pools;
        self.map.l2p.lay(first.index(), units, run);
        let pages = self.nand.geometry().pages_per_unit() * u64::from(units);
        self.stats.programs.add(Cause::User, pages);
        self.seq += u64::from(units);
        self.checkpoints.written += u64::from(units);
        units
    }

    /// The pool that takes the unit after the next `nth`.
    fn pool_after(&self, nth: u32) -> u32 {
        self.nand.geometry().pool_divisor().split(self.turn + nth).1
    }

    /// Next slot of the host's frontier in a pool; `None` if there is no frontier, or a page of it waits for
    /// more units.
    fn next_slot(&self, pool: u32) -> Option<Ppn> {
        let open = &self.frontiers[index(pool * self.layout.frontiers)];
        let superblock = open.superblock.filter(|_| open.staged.is_empty())?;
        Some(self.nand.geometry().ppn(superblock, open.next))
    }

    /// How often the pools can take their turns, and the run of the slots that the units get then.
    fn rounds(&self, first: u32, count: u32) -> Option<(u32, Run)> {
        let plain = self.nand.is_plain()
            && self.remap.is_none()
            && self.contents.is_none()
            && self.map_cache.is_none()
            && self.moving.is_empty()
            && self.hungry == 0
            && self.checkpoints.dump.is_none();
        if !plain {
            return None;
        }
        let pools = u32_from(self.pools.len());
        let end = first.saturating_add(count).min(self.layout.host_units);
        let mut rounds = end.saturating_sub(first).min(self.before_checkpoint()) / pools;
        let pattern = self.map.l2p.pattern();
        let run = pattern.run(self.next_slot(self.turn)?.raw(), self.turn);
        for nth in 0..pools {
            let pool = self.pool_after(nth);
            if self.next_slot(pool)?.raw() != pattern.at(run, nth) {
                return None;
            }
            let open = &self.frontiers[index(pool * self.layout.frontiers)];
            let valid = self.pools[index(pool)].valid;
            // The last slot closes the superblock.
            rounds = rounds.min(self.layout.data_end - open.next - 1);
            rounds = rounds.min(self.layout.pool_valid_max.saturating_sub(valid));
        }
        rounds -= rounds % self.nand.geometry().slots_per_program();
        let fresh = index(first)..index(first + rounds * pools);
        (rounds > 0 && self.map.l2p.are_all(fresh, UNMAPPED)).then_some((rounds, run))
    }

    /// Host writes that begin no checkpoint.
    fn before_checkpoint(&self) -> u32 {
        let left = self.layout.checkpoint_every.saturating_sub(self.checkpoints.written + 1);
        narrow(left.min(u64::from(u32::MAX)))
    }

    /// Puts every unit of this pool into the next slots of its frontier: from `lpn` on, which the
    /// host writes after `nth` others.
    fn fill_frontier(&mut self, pool: u32, slots: u32, lpn: u32, nth: u32) {
        let Some(ppn) = self.next_slot(pool) else { return };
        let (superblock, slot) = self.nand.geometry().split(ppn);
        let each = self.nand.geometry().slots_per_program();
        self.nand.program_many(superblock, slot / each, slots / each);
        let owners = self.map.p2l.pattern().run(lpn, slot);
        self.map.p2l.lay(ppn.index(), slots, owners);
        self.valid.set_run(superblock, slot, slots);
        self.superblocks[superblock.index()].valid += slots;
        self.pools[index(pool)].valid += slots;
        let record = tail_record(SlotKind::Data, lpn, self.seq + 1 + u64::from(nth));
        let pools = u32_from(self.pools.len());
        let open = &mut self.frontiers[index(pool * self.layout.frontiers)];
        open.next += slots;
        open.programmed += slots;
        if let Some(meter) = &mut open.meter {
            meter.add_run(&record, pools, slots);
        }
    }
}

#[cfg(test)]
mod tests {
    use onefold_nand::{
        At, FaultSpec, Geometry, GeometrySpec, Nand, NullMedia, Span, TimingSpec, Work,
    };
    use onefold_units::{Lpn, Nanos, Rng};

    use crate::{Ftl, FtlConfig};

    const NOW: At = At { now: Nanos::ZERO, ready: Nanos::ZERO, work: Work::Host };

    /// Devices of both spans, with several units in a page and several pages in a unit, with and
    /// without metadata pages, and with dies that are no power of two.
    fn devices() -> impl Iterator<Item = (GeometrySpec, FtlConfig)> {
        let spec = GeometrySpec {
            channels: 3,
            ways: 2,
            planes: 2,
            blocks: 24,
            pages: 192,
            page_bytes: 4096,
            unit_bytes: 4096,
            span: Span::Device,
        };
        let sizes = [(4096, 4096), (16_384, 4096), (4096, 16_384)];
        let spans = [Span::Device, Span::Die];
        let both = [false, true];
        let all = sizes.into_iter().flat_map(move |size| {
            spans.into_iter().flat_map(move |span| both.map(|metadata| (size, span, metadata)))
        });
        all.map(move |((page_bytes, unit_bytes), span, metadata_pages)| {
            let spec = GeometrySpec { page_bytes, unit_bytes, span, ..spec };
            let slots = Geometry::new(spec).expect("fits").total_slots();
            let plain = FtlConfig::plain(slots * 6 / 10);
            (spec, FtlConfig { metadata_pages, checkpoint: 0.3, ..plain })
        })
    }

    fn untimed(spec: GeometrySpec, config: &FtlConfig) -> Ftl<NullMedia> {
        let geometry = Geometry::new(spec).expect("fits");
        let nand = Nand::new(geometry, TimingSpec::EXAMPLE, FaultSpec::default(), NullMedia);
        let mut ftl = Ftl::new(nand, *config, 0).expect("fits");
        ftl.set_timed(false);
        ftl
    }

    fn write(ftl: &mut Ftl<NullMedia>, lpn: u32) {
        let pages = ftl.nand().geometry().pages_per_unit();
        ftl.write(NOW, Lpn::new(lpn), pages, 0, &[]).expect("there is room");
    }

    /// Fills a drive in order; how many units were written in runs.
    fn fill(ftl: &mut Ftl<NullMedia>, by_runs: bool) -> u32 {
        let (mut lpn, mut in_runs) = (0, 0);
        while lpn < ftl.host_units() {
            // Odd numbers: runs begin and end anywhere.
            let run = if by_runs { ftl.write_run(Lpn::new(lpn), 7001) } else { 0 };
            if run == 0 {
                write(ftl, lpn);
            }
            in_runs += run;
            lpn += run.max(1);
        }
        in_runs
    }

    /// Everything that tells one FTL from another, but for how its tables are kept.
    fn state(ftl: &Ftl<NullMedia>) -> String {
        let (l2p, p2l): (Vec<_>, Vec<_>) =
            (ftl.map.l2p.iter().collect(), ftl.map.p2l.iter().collect());
        format!(
            "{l2p:?} {p2l:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?}",
            ftl.valid,
            ftl.superblocks,
            ftl.frontiers,
            ftl.pools,
            ftl.stats(),
            ftl.nand,
            ftl.checkpoints
        )
    }

    #[test]
    fn runs_equal_single_writes() {
        for (spec, config) in devices() {
            let mut single = untimed(spec, &config);
            let mut runs = untimed(spec, &config);
            assert_eq!(fill(&mut single, false), 0);
            let in_runs = fill(&mut runs, true);
            // What opens or closes a superblock is written by itself. A checkpoint takes a superblock of one
            // pool: those of several pools are not in a row from then on.
            let least = if spec.span == Span::Device { 8 } else { 2 };
            assert!(in_runs > runs.host_units() / 10 * least, "{spec:?} {config:?}: {in_runs}");
            assert!(state(&single) == state(&runs), "{spec:?} {config:?}");
            runs.check().expect("sound");
            // Nothing that was mapped is written by runs.
            assert_eq!(runs.write_run(Lpn::new(0), 7001), 0);
            let mut rng = Rng::new(5);
            for _ in 0..20_000 {
                let lpn = onefold_units::convert::narrow(rng.below(u64::from(runs.host_units())));
                write(&mut single, lpn);
                write(&mut runs, lpn);
            }
            assert!(state(&single) == state(&runs), "{spec:?} {config:?}, later");
            runs.check().expect("sound");
        }
    }

    #[test]
    fn what_takes_time_or_may_fail_is_written_by_itself() {
        let (spec, config) = devices().next().expect("one");
        let mut ftl = untimed(spec, &config);
        write(&mut ftl, 0);
        let mut timed = ftl.clone();
        timed.set_timed(true);
        assert_eq!(timed.write_run(Lpn::new(1), 100), 0);
        let mut faulty = ftl.clone();
        faulty.set_faults(FaultSpec { program: 0.01, ..FaultSpec::default() });
        assert_eq!(faulty.write_run(Lpn::new(1), 100), 0);
        assert_eq!(ftl.write_run(Lpn::new(ftl.host_units()), 100), 0);
        assert_eq!(ftl.write_run(Lpn::new(1), 100), 100);
    }
}
