//! Devices small enough that every corner is reached, and what is done to them.

use onefold_ftl::{
    ConfigError, Ftl, FtlConfig, FtlError, Layout, Maintenance, RecoveryReport, RemapConfig,
    RemapOptions, RemapRange, RemapScheme, VictimSpec,
};
use onefold_nand::{At, FaultSpec, Geometry, GeometrySpec, Media, Nand, Span, TimingSpec, Work};
use onefold_units::convert::{float, floor_u64, index, index64, low32, narrow, u64_from};
use onefold_units::{Cause, Lpn, Nanos, Rng};

/// A device to be built, and built again from its medium.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) geometry: Geometry,
    pub(crate) config: FtlConfig,
    pub(crate) faults: FaultSpec,
}

pub(crate) const VICTIMS: [&str; 5] = ["greedy", "cost-benefit", "fifo", "d-choices", "random"];

pub(crate) fn victim(name: &str) -> VictimSpec {
    VictimSpec::parse(name).unwrap()
}

pub(crate) fn spec(blocks: u32, pages: u32, page_bytes: u32, unit_bytes: u32) -> GeometrySpec {
    GeometrySpec {
        channels: 1,
        ways: 1,
        planes: 1,
        blocks,
        pages,
        page_bytes,
        unit_bytes,
        span: Span::Device,
    }
}

pub(crate) fn plain_config() -> FtlConfig {
    FtlConfig { gc_start: 0.0, trim_log_bytes: 4096, seed: 1, ..FtlConfig::plain(1) }
}

impl Setup {
    /// The device with `share` of its possible capacity as logical capacity.
    #[expect(clippy::large_types_passed_by_value, reason = "tests make one beside the call")]
    pub(crate) fn new(spec: GeometrySpec, config: FtlConfig, share: f64) -> Option<Self> {
        let geometry = Geometry::new(spec).unwrap();
        let units = u64::from(geometry.superblocks()) * u64::from(geometry.slots());
        let mut config = FtlConfig { logical_units: units, ..config };
        while let Err(error) = Layout::new(&geometry, &config) {
            config.logical_units = match error {
                ConfigError::NoSpace { usable, .. } => {
                    (usable / u64::from(geometry.unit_bytes())).min(config.logical_units) - 1
                }
                _ => return None,
            };
            if config.logical_units < 2 {
                return None;
            }
        }
        // Less than what is possible by at least a superblock per pool: the device has to progress
        // with filled-up flash pages, too.
        let pools = u64::from(geometry.pools());
        let most = config.logical_units.saturating_sub(pools * u64::from(geometry.slots()));
        config.logical_units = floor_u64(float(most) * share);
        if config.logical_units < 4 {
            return None;
        }
        Some(Self { geometry, config, faults: FaultSpec::default() })
    }

    /// A random small device.
    pub(crate) fn random(rng: &mut Rng) -> Self {
        loop {
            if let Some(setup) = Self::try_random(rng) {
                return setup;
            }
        }
    }

    fn try_random(rng: &mut Rng) -> Option<Self> {
        let (page_bytes, unit_bytes) = *pick(
            rng,
            &[(4096, 4096), (4096, 4096), (8192, 4096), (16384, 4096), (4096, 8192), (8192, 8192)],
        );
        let spec = GeometrySpec {
            channels: *pick(rng, &[1, 2]),
            ways: *pick(rng, &[1, 1, 2]),
            planes: *pick(rng, &[1, 1, 2]),
            blocks: 14 + low32(rng.below(8)),
            pages: *pick(rng, &[2, 3, 4, 8]),
            page_bytes,
            unit_bytes,
            span: if rng.below(2) == 0 { Span::Device } else { Span::Die },
        };
        let geometry = Geometry::new(spec).ok()?;
        let remap = random_remap(rng);
        // One program for the head, one for the tail, and several for data: filling up flash pages
        // must not eat all that collection gains.
        let programs = geometry.slots() / geometry.slots_per_program();
        if geometry.total_slots() > 500 || programs < 4 {
            return None;
        }
        let config = FtlConfig {
            map_cache_bytes: *pick(rng, &[None, None, Some(4096), Some(65536)]),
            victim: victim(pick::<&str>(rng, &VICTIMS)),
            victim_draws: 3,
            gc_start: *pick(rng, &[0.0, 0.0, 0.2, 0.3]),
            gc_stop: *pick(rng, &[0.0, 0.0, 0.1]),
            gc_pacing: rng.below(3) > 0,
            gc_idle: false,
            separate_gc: rng.below(2) == 0,
            streams: *pick(rng, &[1, 1, 2]),
            metadata_pages: rng.below(2) == 0,
            checkpoint: *pick(rng, &[0.0, 0.1, 0.5]),
            wear_threshold: *pick(rng, &[0, 0, 2]),
            seed: rng.next_u64(),
            remap,
            ..plain_config()
        };
        Self::new(spec, config, *pick(rng, &[0.4, 0.7, 0.9]))
    }

    pub(crate) fn nvram_bytes(&self) -> u64 {
        Layout::new(&self.geometry, &self.config).unwrap().nvram_bytes()
    }

    pub(crate) fn nand<M: Media>(&self, media: M) -> Nand<M> {
        let mut nand = Nand::new(self.geometry, TimingSpec::EXAMPLE, self.faults, media);
        nand.set_timed(false);
        nand
    }

    pub(crate) fn build<M: Media>(&self, media: M) -> Ftl<M> {
        Ftl::new(self.nand(media), self.config, self.faults.bad_superblocks).unwrap()
    }

    /// `None` where power failed during recovery: the medium is then in `lost`.
    pub(crate) fn recover<M: Media>(
        &self,
        media: M,
    ) -> Result<(Ftl<M>, RecoveryReport), onefold_ftl::RecoverError> {
        Ftl::recover(self.nand(media), self.config, self.faults.bad_superblocks)
    }

    pub(crate) fn units(&self) -> u32 {
        narrow(self.config.logical_units)
    }

    pub(crate) fn unit(&self) -> Vec<u8> {
        vec![0; index(self.geometry.unit_bytes())]
    }
}

pub(crate) fn pick<'a, T>(rng: &mut Rng, items: &'a [T]) -> &'a T {
    &items[index64(rng.below(u64_from(items.len())))]
}

pub(crate) const AT: At = At { now: Nanos::ZERO, ready: Nanos::ZERO, work: Work::Host };

pub(crate) const MAINTENANCE: [Maintenance; 5] = [
    Maintenance::Collect,
    Maintenance::CompactLog,
    Maintenance::DestageLog,
    Maintenance::CollectLog,
    Maintenance::Checkpoint,
];

/// What a host does, and what the device does by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Write { lpn: u32, stream: u32 },
    Trim { lpn: u32, count: u32 },
    Read { lpn: u32 },
    Flush,
    Checkpoint,
    Remap { ranges: [Option<RemapRange>; 3], options: RemapOptions },
    Maintain(Maintenance),
}

impl Op {
    /// A random operation; `trims` of a hundred are trims.
    pub(crate) fn random(rng: &mut Rng, setup: &Setup, trims: u64) -> Self {
        let units = u64::from(setup.units());
        // Half of the traffic goes to an eighth of the units, so that staged units are rewritten.
        let range = if rng.below(2) == 0 { units } else { units.div_ceil(8) };
        let lpn = low32(rng.below(range));
        let stream = low32(rng.below(u64::from(setup.config.streams)));
        if rng.below(100) < trims {
            let count = (1 + low32(rng.below(4))).min(setup.units() - lpn);
            return Self::Trim { lpn, count };
        }
        if rng.below(100) < 2 {
            return Self::Maintain(*pick(rng, &MAINTENANCE));
        }
        if setup.config.remap.scheme != RemapScheme::None && rng.below(100) < 25 {
            return Self::random_remap(rng, setup);
        }
        match rng.below(100) {
            0..82 => Self::Write { lpn, stream },
            82..92 => Self::Read { lpn },
            92..99 => Self::Flush,
            _ => Self::Checkpoint,
        }
    }

    fn random_remap(rng: &mut Rng, setup: &Setup) -> Self {
        let units = setup.units();
        let mut ranges = [None; 3];
        let mut first = 0;
        for range in ranges.iter_mut().take(1 + index64(rng.below(3))) {
            // Targets ascend and are disjoint; sources are anywhere.
            if first + 1 >= units {
                break;
            }
            let dst = first + low32(rng.below(u64::from(units - first)));
            // Long ones have strided runs where superblocks are of one die.
            let longest = *pick(rng, &[6, 6, 6, 24]);
            let len = (1 + low32(rng.below(longest))).min(units - dst);
            let src = low32(rng.below(u64::from(units - len + 1)));
            first = dst + len;
            *range = Some(RemapRange { dst: Lpn::new(dst), src: Lpn::new(src), len });
        }
        let kind = rng.below(6);
        let options = RemapOptions {
            moves: kind < 2,
            moves_on_flush: kind == 2,
            atomic: rng.below(3) == 0,
            id: (rng.below(3) == 0).then(|| u128::from(rng.next_u64()) + 1),
            ..COPY
        };
        Self::Remap { ranges, options }
    }
}

/// Of a remap: a copy, and no more.
pub(crate) const COPY: RemapOptions = RemapOptions {
    moves: false,
    moves_on_flush: false,
    atomic: false,
    id: None,
    no_fallback: false,
    verify_equal: false,
};

/// Targets and sources of a remap, unit by unit.
pub(crate) fn pairs(ranges: &[RemapRange]) -> Vec<(u32, u32)> {
    let units = |range: &RemapRange| {
        let (dst, src) = (range.dst.raw(), range.src.raw());
        (0..range.len).map(move |n| (dst + n, src + n))
    };
    ranges.iter().flat_map(units).collect()
}

/// A log with segments of four entries, sometimes too small.
fn random_remap(rng: &mut Rng) -> RemapConfig {
    let scheme =
        *pick(rng, &[RemapScheme::None, RemapScheme::Ln, RemapScheme::Lh, RemapScheme::Lh]);
    let segments = *pick(rng, &[6, 10, 20, 60]);
    RemapConfig {
        scheme,
        log_bytes: segments * 128,
        segment_bytes: 128,
        max_refs: *pick(rng, &[0, 0, 0, 3]),
        ..RemapConfig::OFF
    }
}

pub(crate) fn read<M: Media>(
    ftl: &mut Ftl<M>,
    setup: &Setup,
    lpn: u32,
) -> Result<Vec<u8>, FtlError> {
    let mut data = setup.unit();
    ftl.read(AT, Lpn::new(lpn), setup.geometry.unit_bytes(), Cause::User, &mut data)?;
    Ok(data)
}
