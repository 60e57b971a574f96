//! A zoned volume as a layer.

use onefold_config::ZonedVolume as Config;
use onefold_nand::Delay;
use onefold_units::convert::{index, narrow};
use onefold_units::{Lba, Nanos, ZoneId};
use onefold_volume::Range;
use onefold_zoned::{IoFailed, IoId, IoKind, REQUESTS_MAX, Refusal, Request, Volume};

use super::layer::{Asked, Caps, Done, Layer, Lower, LowerId, Output, Refused, Taken, Why};
use crate::request::Work;

/// A zoned volume between a load and the places below: a regular one, unless the zoned one has
/// conventional zones, and a zoned one.
pub(crate) struct ZonedLayer {
    pub(crate) config: Config,
    pub(crate) volume: Volume,
    /// What the requests met whose ends are told next.
    delay: Delay,
}

impl ZonedLayer {
    pub(crate) fn new(config: &Config, volume: Volume) -> Self {
        Self { config: config.clone(), volume, delay: Delay::None }
    }
}

impl Layer for ZonedLayer {
    /// Its metadata is in memory once it is open.
    fn caps(&self) -> Caps {
        Caps {
            requests_max: REQUESTS_MAX,
            depth: self.config.regular_depth,
            ..Caps::of_blocks(self.volume.blocks())
        }
    }

    fn submit(&mut self, now: Nanos, tag: u64, work: Work, fua: bool) -> Result<Taken, Refused> {
        self.delay = Delay::None;
        let (asked, blocks) = in_words_of_the_volume(work, fua);
        match self.volume.submit(now, tag, asked) {
            Ok(()) => Ok(Taken { blocks, later: true }),
            Err(Refusal::Busy) => Err(Refused::Busy),
            Err(refusal) => Err(Refused::Never(Why::Zoned(refusal))),
        }
    }

    /// Everything goes on when it is submitted.
    fn turn(&mut self, _now: Nanos) {}

    fn due(&self) -> Option<Nanos> {
        self.volume.poll_timeout()
    }

    fn expire(&mut self, now: Nanos) {
        self.volume.handle_timeout(now);
    }

    fn poll(&mut self) -> Option<Output> {
        let Some(io) = self.volume.poll_io() else {
            let onefold_zoned::Done { tag, result, .. } = self.volume.poll_done()?;
            let result = result.map_err(Why::ZonedFailed);
            return Some(Output::Done(Done { tag, delay: self.delay, result }));
        };
        let range = Range { lba: Lba::new(io.at), blocks: io.blocks.into() };
        let what = match io.kind {
            IoKind::Read => Asked::Read(range),
            IoKind::Write => Asked::Write(range, 0),
            IoKind::Flush => Asked::Flush,
            IoKind::Reset => Asked::Reset(ZoneId::new(narrow(
                io.at / u64::from(self.config.geometry.zone_blocks()),
            ))),
        };
        let id = LowerId(io.id.number().into());
        Some(Output::Lower(Lower { id, port: index(io.device), what }))
    }

    fn completed(&mut self, now: Nanos, LowerId(id): LowerId, delay: Delay, failed: bool) {
        self.delay = delay;
        let result = if failed { Err(IoFailed::Error) } else { Ok(()) };
        self.volume.completed(now, IoId::new(narrow(id)), result);
    }
}

/// A step of a request in the words of the volume, and its blocks. Differs from the kernel target
/// only in name: write-zeroes are discards there as well.
fn in_words_of_the_volume(work: Work, fua: bool) -> (Request, u64) {
    match work {
        Work::Read(range) => {
            (Request::Read { lba: range.lba.raw(), blocks: narrow(range.blocks) }, range.blocks)
        }
        Work::Write(range) => {
            let (lba, blocks) = (range.lba.raw(), narrow(range.blocks));
            (Request::Write { lba, blocks, fua, data: Vec::new() }, range.blocks)
        }
        Work::Trim(range) => {
            (Request::Discard { lba: range.lba.raw(), blocks: narrow(range.blocks) }, range.blocks)
        }
        Work::Flush => (Request::Flush, 1),
    }
}
