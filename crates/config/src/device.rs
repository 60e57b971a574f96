//! The device that a configuration describes, as the core's types.

use onefold_buffer::{BufferConfig, Charge};
use onefold_ftl::{DedupScope, FtlConfig, RemapConfig, RemapScheme};
use onefold_nand::{FaultSpec, Geometry, GeometrySpec, Span, TimingSpec};
use onefold_ssd::zns::ZnsConfigError;
use onefold_ssd::{DedupConfig, HashKind, SsdConfig, Writeback};
use onefold_units::{Rng, convert};

use crate::config::Config;
use crate::error::{ConfigError, Origin};
use crate::quantity::Measure;
use crate::value::{Capacity, Value};

/// Contents that deduplication remembers where only its scope is given: a host writes copies of the
/// files it read within its write-back backlog (writeonce.md, section 2). 9 MB.
const SCOPE_FINGERPRINTS: u32 = 256_000;

impl Config {
    /// The checked geometry.
    ///
    /// # Errors
    /// Names the dimension that is out of range, or the limit that the whole array exceeds.
    pub fn geometry(&self) -> Result<Geometry, ConfigError> {
        if !self.places.is_empty() {
            return Err(ConfigError::NeedsDevice);
        }
        let spec = GeometrySpec {
            channels: self.narrow("geometry.channels"),
            ways: self.narrow("geometry.ways"),
            planes: self.narrow("geometry.planes"),
            blocks: self.narrow("geometry.blocks"),
            pages: self.narrow("geometry.pages"),
            page_bytes: convert::narrow(self.quantity("geometry.page")),
            // Below a zone nothing is mapped.
            unit_bytes: if self.is_zoned() {
                4096
            } else {
                convert::narrow(self.quantity("ftl.indirection"))
            },
            span: match self.word("geometry.superblock") {
                "device" => Span::Device,
                _ => Span::Die,
            },
        };
        Geometry::new(spec)
            .map_err(|source| ConfigError::Geometry { name: self.name().to_owned(), source })
    }

    pub(crate) fn logical_units(&self, geometry: &Geometry) -> Result<u64, ConfigError> {
        let (unit, total) = (u64::from(geometry.unit_bytes()), geometry.total_slots());
        let setting = self.setting("capacity.logical");
        let units = match setting.value {
            Value::Capacity(Capacity::Bytes(bytes)) => bytes / unit,
            Value::Capacity(Capacity::Fraction(fraction)) => {
                convert::floor_u64(fraction * convert::float(total))
            }
            ref other => panic!("capacity.logical is a capacity, not {other:?}"),
        };
        if (1..total).contains(&units) {
            return Ok(units);
        }
        Err(ConfigError::Capacity {
            origin: setting.origin.clone(),
            found: setting.value.toml(),
            unit: Measure::Size.format(unit),
            raw: Measure::Size.format(geometry.raw_bytes()),
        })
    }

    /// Units for snapshots, and one for the table of them.
    fn snapshot_units(&self) -> u64 {
        let (bytes, unit) = (self.quantity("capacity.snapshots"), self.quantity("ftl.indirection"));
        if bytes == 0 { 0 } else { bytes.div_ceil(unit) + 1 }
    }

    /// Logical capacity in bytes, a multiple of the mapping unit; of a zoned namespace, what its zones take; of a stack, what its top exports.
    ///
    /// # Errors
    /// As [`Config::ssd`] and [`Config::zns`].
    pub fn logical_bytes(&self) -> Result<u64, ConfigError> {
        if let Some(stack) = self.stack(0)? {
            return Ok(stack.logical_bytes());
        }
        if let Some(zns) = self.zns(0)? {
            return Ok(zns.writable_blocks() * 4096);
        }
        let geometry = self.geometry()?;
        Ok(self.logical_units(&geometry)? * u64::from(geometry.unit_bytes()))
    }

    /// The device. Everything random in it comes from `seed`.
    ///
    /// # Errors
    /// Names the numbers that do not fit together. Whether the spare capacity suffices for GC is
    /// judged by the device. A zoned namespace is another device ([`Config::zns`]).
    pub fn ssd(&self, seed: u64) -> Result<SsdConfig, ConfigError> {
        if !self.places.is_empty() {
            return Err(ConfigError::NeedsDevice);
        }
        if self.is_zoned() {
            return Err(ConfigError::NeedsBlocks { what: "this use of a device" });
        }
        self.mapped_device(self.geometry()?, seed)
    }

    /// A device that maps pages, on an array.
    pub(crate) fn mapped_device(
        &self,
        geometry: Geometry,
        seed: u64,
    ) -> Result<SsdConfig, ConfigError> {
        self.check_order("ftl.gc_stop", "ftl.gc_start")?;
        Ok(SsdConfig {
            geometry,
            timing: self.timing(),
            ftl: self.ftl(self.logical_units(&geometry)?, seed),
            dedup: self.dedup(seed),
            buffer: self.buffer(),
            writeback: self.writeback(),
            separate_streams: self.flag("buffer.separate_streams"),
            unmap_zeroes: self.word("ftl.zeroes") == "unmap",
            classifier: match self.setting("ftl.classifier").value {
                Value::Classifier(policy) => policy,
                ref other => panic!("ftl.classifier is a stream classifier, not {other:?}"),
            },
            faults: self.faults(seed),
        })
    }

    fn check_order(&self, key: &'static str, limit_key: &'static str) -> Result<(), ConfigError> {
        let (found, limit) = (self.real(key), self.real(limit_key));
        if found <= limit {
            return Ok(());
        }
        Err(ConfigError::Order {
            origin: self.setting(key).origin.clone(),
            key,
            found: found.to_string(),
            limit_key,
            limit: limit.to_string(),
        })
    }

    pub(crate) fn timing(&self) -> TimingSpec {
        let transfer = self.quantity("timing.transfer");
        let channel_rate = match transfer {
            0 => self.quantity("timing.channel"),
            // Rounded to the next byte per second: an error below 1e-6 for any real part.
            nanos => (self.quantity("geometry.page") * 1_000_000_000 + nanos / 2) / nanos,
        };
        TimingSpec {
            read: self.cells("timing.read"),
            program: self.cells("timing.program"),
            erase: self.time("timing.erase"),
            channel_rate,
            link_rate: self.quantity("timing.link"),
            command: self.time("timing.command"),
            command_page: self.time("timing.command_page"),
            firmware_read: self.time("timing.firmware_read"),
            firmware_write: self.time("timing.firmware_write"),
            dram_page: self.time("timing.dram_page"),
            table_lookup: self.time("timing.table_lookup"),
            cache_read: self.flag("timing.cache_read"),
            cache_program: self.flag("timing.cache_program"),
            plane_parallel: self.flag("timing.plane_parallel"),
            read_priority: self.time("timing.read_priority"),
        }
    }

    pub(crate) fn ftl(&self, logical_units: u64, seed: u64) -> FtlConfig {
        FtlConfig {
            logical_units,
            snapshot_units: self.snapshot_units(),
            map_cache_bytes: match self.setting("ftl.map_cache").value {
                Value::MapCache(bytes) => bytes,
                ref other => panic!("ftl.map_cache is a cache size, not {other:?}"),
            },
            victim: match self.setting("ftl.victim").value {
                Value::Victim(policy) => policy,
                ref other => panic!("ftl.victim is a victim policy, not {other:?}"),
            },
            victim_draws: self.narrow("ftl.d"),
            gc_start: self.real("ftl.gc_start"),
            gc_stop: self.real("ftl.gc_stop"),
            gc_pacing: self.flag("ftl.gc_pacing"),
            gc_idle: self.flag("ftl.gc_idle"),
            separate_gc: self.flag("ftl.separate_gc"),
            streams: self.narrow("ftl.streams"),
            metadata_pages: self.word("ftl.metadata") == "pages",
            checkpoint: self.real("ftl.checkpoint"),
            trim_log_bytes: self.quantity("ftl.trim_log"),
            wear_threshold: self.narrow("ftl.wear_threshold"),
            endurance: self.narrow("ftl.endurance"),
            relocate: self.flag("ftl.relocate"),
            seed: stream(seed, 1),
            remap: self.remap(),
            fingerprints: self.fingerprints(),
            dedup_scope: self.dedup_scope(),
        }
    }

    fn remap(&self) -> RemapConfig {
        let name = self.word("ftl.remap");
        let scheme = RemapScheme::ALL.into_iter().find(|scheme| scheme.name() == name);
        RemapConfig {
            scheme: scheme.unwrap_or(RemapScheme::None),
            paper: self.word("ftl.remap_mode") == "paper",
            log_bytes: self.quantity("ftl.remap_log"),
            segment_bytes: convert::narrow(self.quantity("ftl.remap_segment")),
            max_refs: self.narrow("ftl.remap_refs"),
            compacts: self.word("ftl.remap_compaction") == "watermark",
            watermark: self.narrow("ftl.remap_watermark"),
            log_spare: self.narrow("ftl.remap_spare"),
            nvram_read: self.time("timing.nvram_read"),
            nvram_write: self.time("timing.nvram_write"),
        }
    }

    /// Contents that deduplication remembers; 0 without it. Where only the scope is given, there are
    /// [`SCOPE_FINGERPRINTS`].
    pub(crate) fn fingerprints(&self) -> u32 {
        match (self.word("dedup.scope"), self.narrow("dedup.fingerprints")) {
            ("off", _) => 0,
            ("auto", given) => given,
            (_, 0) => SCOPE_FINGERPRINTS,
            (_, given) => given,
        }
    }

    fn dedup_scope(&self) -> DedupScope {
        let name = self.word("dedup.scope");
        DedupScope::ALL.into_iter().find(|scope| scope.name() == name).unwrap_or_default()
    }

    fn dedup(&self, seed: u64) -> DedupConfig {
        let name = self.word("dedup.hash");
        let mut rng = Rng::fork(seed, 3);
        let mut key = [0; 32];
        for part in key.as_chunks_mut::<8>().0 {
            *part = rng.next_u64().to_le_bytes();
        }
        DedupConfig {
            hash: HashKind::ALL.into_iter().find(|kind| kind.name() == name),
            hash_time: self.time("dedup.hash_time"),
            hash_units: self.narrow("dedup.hash_units"),
            key,
        }
    }

    pub(crate) fn buffer(&self) -> BufferConfig {
        BufferConfig {
            policy: match self.setting("buffer.policy").value {
                Value::Buffer(policy) => policy,
                ref other => panic!("buffer.policy is a policy, not {other:?}"),
            },
            charge: match self.word("buffer.charge") {
                "full" => Charge::Full,
                "none" => Charge::None,
                _ => Charge::Paper,
            },
            bytes: self.quantity("buffer.size"),
            volatile: self.flag("buffer.volatile"),
        }
    }

    fn writeback(&self) -> Writeback {
        match self.word("buffer.writeback") {
            "async" => Writeback::Async { slots: self.narrow("buffer.wb_slots") },
            _ => Writeback::Sync,
        }
    }

    pub(crate) fn faults(&self, seed: u64) -> FaultSpec {
        FaultSpec {
            program: self.real("faults.program"),
            erase: self.real("faults.erase"),
            read: self.real("faults.read"),
            bit_rot: self.real("faults.bit_rot"),
            slow: self.real("faults.slow"),
            slow_by: self.narrow("faults.slow_by"),
            die: self.count("faults.die"),
            bad_superblocks: self.narrow("faults.bad_superblocks"),
            seed: stream(seed, 2),
        }
    }

    /// Logical capacity, and `capacity.snapshots` beside it, / raw capacity.
    ///
    /// # Errors
    /// As [`Config::logical_bytes`].
    pub fn logical_share(&self) -> Result<f64, ConfigError> {
        if let Value::Capacity(Capacity::Fraction(fraction)) =
            self.setting("capacity.logical").value
        {
            return Ok(fraction);
        }
        let geometry = self.geometry()?;
        let unit = if self.is_zoned() {
            u64::from(self.zone_blocks()?.1) * u64::from(geometry.unit_bytes())
        } else {
            u64::from(geometry.unit_bytes())
        };
        let all = self.logical_bytes()? + self.snapshot_units() * unit;
        Ok(convert::float(all) / convert::float(geometry.raw_bytes()))
    }

    /// The same device with a logical capacity of exactly `bytes`, and `capacity.snapshots` beside it:
    /// `geometry.blocks` is changed so that the share of spare capacity stays (at least) that of the
    /// configuration.
    ///
    /// # Errors
    /// `bytes` is no multiple of the mapping unit (of the capacity of a zone), or needs more blocks than a plane may have.
    pub fn with_logical_size(&self, bytes: u64) -> Result<Self, ConfigError> {
        const MAX_BLOCKS: u64 = 1 << 24;
        let geometry = self.geometry()?;
        let block = u64::from(geometry.unit_bytes());
        let (unit, conventional) = if self.is_zoned() {
            let (zone, capacity) = self.zone_blocks()?;
            (u64::from(capacity) * block, self.conventional_blocks(zone) * block)
        } else {
            (block, 0)
        };
        let per_block = geometry.raw_bytes() / self.count("geometry.blocks");
        let fraction = self.logical_share()?;
        // A billionth of a block is far below a byte; without it, rounding could cost a whole block.
        let all = bytes.saturating_add(self.snapshot_units() * unit);
        let exact = convert::float(all) / fraction / convert::float(per_block);
        let blocks = convert::floor_u64((exact - 1e-9).ceil());
        let over = bytes.checked_sub(conventional).filter(|over| *over > 0);
        if over.is_none_or(|over| !over.is_multiple_of(unit.max(1))) {
            let below = conventional + over.unwrap_or(0) / unit.max(1) * unit;
            return Err(ConfigError::SizeUnit {
                found: Measure::Size.format(bytes),
                unit: Measure::Size.format(unit),
                near: [below, below.saturating_add(unit)]
                    .into_iter()
                    .filter(|near| *near > conventional)
                    .map(|near| Measure::Size.format(near))
                    .collect(),
            });
        }
        if !(1..=MAX_BLOCKS).contains(&blocks) {
            return Err(ConfigError::SizeBlocks {
                found: Measure::Size.format(bytes),
                blocks,
                max: MAX_BLOCKS,
            });
        }
        let mut config = self.clone();
        config.put("capacity.logical", Value::Capacity(Capacity::Bytes(bytes)), Origin::Size);
        config.put("geometry.blocks", Value::Count(blocks), Origin::Size);
        if self.is_zoned() {
            config.make_room_for_zones(blocks, MAX_BLOCKS)?;
        } else {
            config.ssd(0)?;
        }
        config.tenants()?;
        Ok(config)
    }

    /// The same device with `more` blocks per plane, which the host does not see.
    ///
    /// # Errors
    /// There are no so many blocks in a plane.
    pub fn with_more_blocks(&self, more: u64) -> Result<Self, ConfigError> {
        let mut config = self.clone();
        if more > 0 {
            let bytes = self.logical_bytes()?;
            let blocks = self.count("geometry.blocks") + more;
            config.put("geometry.blocks", Value::Count(blocks), Origin::Size);
            config.put("capacity.logical", Value::Capacity(Capacity::Bytes(bytes)), Origin::Size);
        }
        Ok(config)
    }

    /// Adds blocks until conventional zones fit and there are more sets of blocks than other zones: what is a share of many zones
    /// may be less than one of few.
    fn make_room_for_zones(&mut self, blocks: u64, max: u64) -> Result<(), ConfigError> {
        let mut more = blocks;
        loop {
            match self.zns(0) {
                Err(
                    ConfigError::Namespace { source: ZnsConfigError::Space { .. } }
                    | ConfigError::ConventionalZones { .. },
                ) if more < max => {
                    more += 1;
                    self.put("geometry.blocks", Value::Count(more), Origin::Size);
                }
                other => return other.map(drop),
            }
        }
    }
}

/// A seed of its own for each part of the device.
fn stream(seed: u64, part: u64) -> u64 {
    Rng::fork(seed, part).next_u64()
}
