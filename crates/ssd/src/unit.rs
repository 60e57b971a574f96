//! The short way of a command: one whole unit, past everything but link and controller, to the FTL.
//!
//! Most commands of a simulation read or write one unit of a device without a buffer. For those this
//! does what `submit` does in general, and must come to the same.

use onefold_ftl::FtlError;
use onefold_nand::Media;
use onefold_units::convert::{low32, narrow};
use onefold_units::{Cause, Lpn, Nanos, Op};

use crate::times::Times;
use crate::{Command, Completion, Payload, Ssd, SsdError};

impl<M: Media> Ssd<M> {
    /// The unit that a command reads or writes, if that is all there is to it.
    #[inline]
    pub(crate) fn plain_unit(&self, command: &Command, payload: &Payload<'_>) -> Option<Lpn> {
        let Command { op, fua, offset, len, .. } = *command;
        let carries_nothing = matches!(payload, Payload::None | Payload::Contents(_));
        let is_plain = !M::STORES
            && self.is_plain
            && len == self.unit
            && offset < self.capacity
            && offset & self.unit.wrapping_sub(1) == 0
            && carries_nothing
            && matches!(op, Op::Read | Op::Write)
            && !fua
            && self.ftl.nand().failed_die().is_none();
        // Within the capacity: 32 bits hold it.
        is_plain.then(|| Lpn::new(low32(offset.wrapping_shr(self.unit_shift))))
    }

    /// Reads or writes one unit.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a part of the simulator's loop")]
    pub(crate) fn submit_unit(
        &mut self,
        now: Nanos,
        command: &Command,
        lpn: Lpn,
    ) -> Result<Completion, SsdError> {
        let pages = self.ftl.nand().geometry().pages_per_unit();
        let ready = self.ftl.nand_mut().timelines_mut().work(now, self.unit_work);
        let done = if command.op == Op::Read {
            self.read_plain(Times { now, ready }, lpn, pages)
        } else {
            self.write_plain(Times { now, ready }, lpn, pages, command.stream.into())
        };
        Ok(done?)
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a part of the simulator's loop")]
    fn read_plain(&mut self, times: Times, lpn: Lpn, pages: u64) -> Result<Completion, FtlError> {
        self.host.count(Op::Read, pages);
        let bytes = narrow(self.unit);
        let grant = self.ftl.read_here(times.host(), lpn, bytes, Cause::User, &mut [])?;
        let links = self.ftl.nand_mut().timelines_mut();
        let at = links.link_out(times.now, grant.done, self.unit);
        Ok(Completion { at: at + self.config.timing.firmware_read, delay: grant.delay })
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a part of the simulator's loop")]
    fn write_plain(
        &mut self,
        times: Times,
        lpn: Lpn,
        pages: u64,
        stream: u32,
    ) -> Result<Completion, FtlError> {
        self.host.count(Op::Write, pages);
        let ready = self.ftl.nand_mut().timelines_mut().link_in(times.ready, self.unit);
        let times = Times { ready, ..times };
        let grant = self.ftl.write(times.host(), lpn, pages, stream, &[])?;
        let at = grant.done.max(times.ready);
        Ok(Completion { at: at + self.config.timing.firmware_write, delay: grant.delay })
    }
}

#[cfg(test)]
mod tests {
    use onefold_nand::{Geometry, GeometrySpec, NullMedia};
    use onefold_units::{Nanos, Op, Rng};

    use crate::{Command, Payload, Ssd, SsdConfig, example_config};

    /// The same commands one by one take the same time and leave the same behind by the long way.
    #[test]
    fn comes_to_the_same_as_the_long_way() {
        for (unit, page) in [(4096, 4096), (4096, 16_384), (16_384, 4096)] {
            let mut config = example_config();
            let spec =
                GeometrySpec { unit_bytes: unit, page_bytes: page, ..*config.geometry.spec() };
            config.geometry = Geometry::new(spec).unwrap();
            config.ftl.logical_units = config.geometry.total_slots() / 2;
            config.timing.command = Nanos::new(700);
            config.timing.link_rate = 300_000_000;
            compare(&config);
        }
    }

    fn compare(config: &SsdConfig) {
        let mut rng = Rng::new(8);
        let mut short = Ssd::new(*config, NullMedia).unwrap();
        let mut long = Ssd::new(*config, NullMedia).unwrap();
        assert!(short.is_plain);
        long.is_plain = false;
        let (unit, units) = (short.unit, short.capacity / short.unit);
        for n in 0..6 * units {
            let op = if rng.below(3) == 0 { Op::Read } else { Op::Write };
            let mut command = Command::new(op, rng.below(units) * unit, unit);
            match rng.below(12) {
                // Not what the short way takes.
                0 => command.fua = true,
                1 => command.len -= 512,
                2 => command.offset = (command.offset + 512).min(short.capacity - unit),
                _ => {}
            }
            let now = Nanos::new(n * 20_000);
            let answers = [&mut short, &mut long]
                .map(|device| device.submit(now, &command, Payload::None).unwrap());
            assert_eq!(answers[0], answers[1], "{command:?}");
        }
        assert_eq!(short.host_stats(), long.host_stats());
        assert_eq!(short.ftl().stats(), long.ftl().stats());
        assert!(short.ftl().stats().erases > 0, "nothing was collected");
    }
}
