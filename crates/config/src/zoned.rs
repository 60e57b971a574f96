//! The zoned namespace that a configuration describes (`[namespace]`; zoned.md section 2).

use onefold_ssd::zns::{ZnsConfig, ZnsLayout, ZoneLimits};
use onefold_units::convert;

use crate::config::Config;
use crate::error::ConfigError;

const BLOCK: u64 = 4096;

impl Config {
    pub(crate) fn is_zoned(&self) -> bool {
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
        let blocks = |key| convert::narrow(self.quantity(key) / BLOCK);
        let some = |found: u32| Some(found).filter(|found| *found > 0);
        let zone_blocks = blocks("namespace.zone_size");
        // What is no multiple of a block is refused like what is no multiple of a flash page.
        let capacity = match self.quantity("namespace.zone_capacity") {
            0 => zone_blocks,
            bytes if bytes.is_multiple_of(BLOCK) => blocks("namespace.zone_capacity"),
            bytes => return Err(ConfigError::ZoneCapacity { bytes }),
        };
        let zones = self.logical_units(&geometry)? / u64::from(capacity.max(1));
        let config = ZnsConfig {
            geometry,
            timing: self.timing(),
            zone_blocks,
            capacity_blocks: capacity,
            zones: convert::narrow(zones),
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
            faults: self.faults(seed),
        };
        let layout = ZnsLayout::new(&config);
        layout.map(|_| Some(config)).map_err(|source| ConfigError::Namespace { source })
    }

    /// Keys that would do nothing on a zoned namespace, or something else than they say.
    fn check_zoned(&self) -> Result<(), ConfigError> {
        // A volume can be overwritten.
        let volume = self.word("volume.mode") == "log";
        let given = [
            ("volume.mode = \"sung\"", self.word("volume.mode") == "sung"),
            ("volume.mode = \"han\"", self.word("volume.mode") == "han"),
            ("volume.offset", self.quantity("volume.offset") > 0),
            ("volume.log_segment", self.quantity("volume.log_segment") > 0),
            ("ftl.remap", self.word("ftl.remap") != "none"),
            ("dedup.fingerprints", self.count("dedup.fingerprints") > 0),
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
