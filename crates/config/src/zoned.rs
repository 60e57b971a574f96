//! The zoned namespace that a configuration describes (`[namespace]`; zoned.md section 2).

use onefold_ftl::{FtlConfig, Layout};
use onefold_nand::{FaultSpec, Geometry, GeometrySpec};
use onefold_ssd::zns::{ZnsConfig, ZnsConfigError, ZnsLayout, ZoneLimits};
use onefold_ssd::{BuildError, SsdConfig};
use onefold_units::{Rng, convert};

use crate::config::Config;
use crate::error::ConfigError;

const BLOCK: u64 = 4096;

impl Config {
    /// Whether the device exports zones.
    #[must_use]
    pub fn is_zoned(&self) -> bool {
        self.word("namespace.type") == "zoned"
    }

    /// The zoned namespace, if the device has one in place of a block namespace.
    ///
    /// # Errors
    /// Names the number that does not fit the others, or the key that needs a block namespace.
    pub fn zns(&self, seed: u64) -> Result<Option<ZnsConfig>, ConfigError> {
        if !self.is_zoned() {
            return Ok(None);
        }
        self.check_zoned()?;
        let geometry = self.geometry()?;
        let some = |found: u32| Some(found).filter(|found| *found > 0);
        let (zone_blocks, capacity) = self.zone_blocks()?;
        let conventional = self.conventional_blocks(zone_blocks);
        let logical = self.logical_units(&geometry)?.saturating_sub(conventional);
        let zones = logical / u64::from(capacity.max(1));
        let mapped = self.conventional(&geometry, conventional, seed)?;
        let faults = self.faults(seed);
        let mapped_bad = mapped.map_or(0, |device| device.faults.bad_superblocks);
        let config = ZnsConfig {
            geometry,
            timing: self.timing(),
            zone_blocks,
            capacity_blocks: capacity,
            zones: convert::narrow(zones),
            conventional: mapped,
            zone_dies: some(self.narrow("namespace.zone_dies")).unwrap_or_else(|| geometry.dies()),
            limits: ZoneLimits {
                max_open: some(self.narrow("namespace.max_open")),
                max_active: some(self.narrow("namespace.max_active")),
            },
            append_blocks: some(convert::narrow(
                self.quantity("namespace.max_append").div_ceil(BLOCK),
            )),
            read_across: self.flag("namespace.read_across"),
            cache_bytes: self.quantity("buffer.size"),
            cache_volatile: self.flag("buffer.volatile"),
            faults: FaultSpec {
                bad_superblocks: faults.bad_superblocks - mapped_bad,
                die: 0,
                ..faults
            },
        };
        let layout = ZnsLayout::new(&config);
        layout.map(|_| Some(config)).map_err(|source| ConfigError::Namespace { source })
    }

    /// Blocks of a zone: its addresses, and those that can be written.
    pub(crate) fn zone_blocks(&self) -> Result<(u32, u32), ConfigError> {
        let blocks = |key| convert::narrow(self.quantity(key) / BLOCK);
        let zone_blocks = blocks("namespace.zone_size");
        // What is no multiple of a block is refused like what is no multiple of a flash page.
        let capacity = match self.quantity("namespace.zone_capacity") {
            0 => zone_blocks,
            bytes if bytes.is_multiple_of(BLOCK) => blocks("namespace.zone_capacity"),
            bytes => return Err(ConfigError::ZoneCapacity { bytes }),
        };
        Ok((zone_blocks, capacity))
    }

    /// Blocks of all conventional zones.
    pub(crate) fn conventional_blocks(&self, zone_blocks: u32) -> u64 {
        self.count("namespace.conventional") * u64::from(zone_blocks)
    }

    /// The device behind the conventional zones: the last flash blocks of every plane, as few as do.
    fn conventional(
        &self,
        all: &Geometry,
        logical: u64,
        seed: u64,
    ) -> Result<Option<SsdConfig>, ConfigError> {
        if logical == 0 {
            return Ok(None);
        }
        let ftl = self.ftl(logical, seed);
        let geometry = self.conventional_share(all, &ftl)?;
        let faults = self.faults(seed);
        // Those that are bad from the factory are spread over the array.
        let share = u64::from(faults.bad_superblocks) * u64::from(geometry.superblocks());
        let bad_superblocks = convert::narrow(share / u64::from(all.superblocks()));
        let seed = Rng::fork(faults.seed, 1).next_u64();
        let faults = FaultSpec { bad_superblocks, die: 0, seed, ..faults };
        Ok(Some(SsdConfig { geometry, ftl, faults, ..self.mapped_device(*all, seed)? }))
    }

    /// The smallest share of the array on which a device of that capacity and over-provisioning works.
    fn conventional_share(&self, all: &Geometry, ftl: &FtlConfig) -> Result<Geometry, ConfigError> {
        let op = self.real("namespace.conventional_op");
        let logical = convert::float(ftl.logical_units) * (1.0 + op);
        let larger = FtlConfig { logical_units: convert::floor_u64(logical.ceil()), ..*ftl };
        let spec = *all.spec();
        let share = |blocks| Geometry::new(GeometrySpec { blocks, ..spec }).ok();
        let fits = |blocks: u32| {
            share(blocks).is_some_and(|geometry| Layout::new(&geometry, &larger).is_ok())
        };
        let (mut less, mut enough) = (0, spec.blocks);
        while less + 1 < enough {
            let middle = u32::midpoint(less, enough);
            if fits(middle) { enough = middle } else { less = middle }
        }
        if let Some(geometry) = share(enough).filter(|_| enough < spec.blocks) {
            return Ok(geometry);
        }
        let zones = self.count("namespace.conventional");
        match Layout::new(all, ftl) {
            Err(source) if !matches!(source, onefold_ftl::ConfigError::NoSpace { .. }) => {
                let source = ZnsConfigError::Mapped(BuildError::Ftl(source));
                Err(ConfigError::Namespace { source })
            }
            _ => Err(ConfigError::ConventionalZones { zones, op, blocks: spec.blocks }),
        }
    }

    /// Keys that would do nothing on a zoned namespace, or something else than they say.
    fn check_zoned(&self) -> Result<(), ConfigError> {
        // A volume can be overwritten.
        let volume = self.word("volume.mode") == "log" || self.word("zoned.policy") == "log";
        let given = [
            ("volume.mode = \"sung\"", self.word("volume.mode") == "sung"),
            ("volume.mode = \"han\"", self.word("volume.mode") == "han"),
            ("volume.offset", self.quantity("volume.offset") > 0),
            ("volume.log_segment", self.quantity("volume.log_segment") > 0),
            ("run.latency = \"none\"", self.word("run.latency") == "none"),
            ("volume.unit", self.quantity("volume.unit") > 0),
            ("ftl.remap", self.word("ftl.remap") != "none"),
            ("dedup.fingerprints", self.fingerprints() > 0),
            ("capacity.snapshots", self.quantity("capacity.snapshots") > 0),
            ("precondition.overwrite", !volume && self.real("precondition.overwrite") > 0.0),
            ("precondition.remap_log", self.real("precondition.remap_log") > 0.0),
            (
                "precondition.until = \"steady\"",
                !volume && self.word("precondition.until") == "steady",
            ),
        ];
        match given.into_iter().find(|(_, given)| *given) {
            Some((what, _)) => Err(ConfigError::NeedsBlocks { what }),
            None => Ok(()),
        }
    }
}
