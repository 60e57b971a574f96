//! Looking at a volume that is not open, without changing it.

use onefold_format::{DMZ_BLOCK_BYTES, DmzRootError};
use onefold_units::ZoneId;
use onefold_units::convert::{index, narrow, u32_from, u64_from};

use crate::backing::Backing;
use crate::block_map::{BlockMap, Stream};
use crate::error::{Lost, MountError};
use crate::geometry::{Geometry, ZoneKind};
use crate::layout::Layout;
use crate::load::{load, lost_in, valid_twice};
use crate::meta::{Identity, Metadata};
use crate::metadata_sets::{Chosen, choose, differing};
use crate::mount::{identity, report};
use crate::opening_io::read_set;
use crate::recovery::Recovery;
use crate::roots::{Roots, find_roots};
use crate::zones::{Condition, Role, Zone, Zones};

/// Something that is wrong, and that no power cut leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finding {
    /// The root record of a metadata set is damaged; the other set counts.
    Root {
        /// 0 for the first set, 1 for the second.
        set: u32,
        /// What is wrong with it.
        error: MountError,
    },
    /// The copy of the root record on a device after the first is damaged.
    Copy {
        /// The device, from 0 on.
        device: usize,
        /// What is wrong with it.
        error: DmzRootError,
    },
    /// Blocks of the metadata are damaged, and whole in the other set.
    Metadata {
        /// How many.
        blocks: u64,
    },
    /// Blocks of the metadata are damaged in both sets: the volume cannot be opened.
    MetadataLost {
        /// How many.
        blocks: u64,
    },
    /// The map of the set that counts is damaged: the volume cannot be opened.
    Map(MountError),
    /// A zone holds less than it should.
    Lost(Lost),
    /// Blocks that are valid both in the data zone and in the buffer zone of a chunk: which one counts is not known.
    Twice {
        /// The chunk.
        chunk: u32,
        /// Blocks.
        blocks: u32,
    },
    /// A zone with data is offline: reading that is an error.
    Offline {
        /// The zone.
        zone: ZoneId,
        /// Whose it is; `None`: the journal's.
        chunk: Option<u32>,
        /// Blocks of data.
        blocks: u32,
    },
}

impl Finding {
    /// Whether opening the volume with [`crate::Options::give_up_lost`] puts it right.
    #[must_use]
    pub const fn is_repairable(&self) -> bool {
        let is_whole =
            matches!(self, Self::Root { .. } | Self::Copy { .. } | Self::Metadata { .. });
        is_whole || self.is_lossy()
    }

    /// Whether that gives data up.
    #[must_use]
    pub const fn is_lossy(&self) -> bool {
        matches!(self, Self::Lost(_) | Self::Twice { .. } | Self::MetadataLost { .. })
    }
}

/// What a zone is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneUse {
    /// A metadata set, or the copy of the root record.
    Metadata,
    /// Free.
    Free,
    /// Free, and for reclaim only.
    Reserved,
    /// Data zone of a chunk.
    Data(u32),
    /// Buffer zone of a chunk.
    Buffer(u32),
    /// Given back and not free yet, or being filled by reclaim; only while the volume is open.
    Held,
    /// In the journal zone set.
    Journal,
    /// Read only or offline, and without a chunk.
    OutOfService,
}

impl ZoneUse {
    pub(crate) const fn of(zone: &Zone, is_metadata: bool) -> Self {
        match zone.role {
            _ if is_metadata => Self::Metadata,
            Role::Data => Self::Data(zone.chunk),
            Role::Buffer => Self::Buffer(zone.chunk),
            Role::Free if zone.reserved => Self::Reserved,
            Role::Free => Self::Free,
            Role::Held => Self::Held,
            Role::Journal => Self::Journal,
            Role::None => Self::OutOfService,
        }
    }

    /// Stable name for results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Metadata => "metadata",
            Self::Free => "free",
            Self::Reserved => "reserved",
            Self::Data(_) => "data",
            Self::Buffer(_) => "buffer",
            Self::Held => "held",
            Self::Journal => "journal",
            Self::OutOfService => "out_of_service",
        }
    }
}

/// What is known of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneView {
    /// Which one, counted over all devices.
    pub zone: ZoneId,
    /// What it is good for.
    pub kind: ZoneKind,
    /// Whether it can be used.
    pub condition: Condition,
    /// What it is used for.
    pub used: ZoneUse,
    /// Blocks before the write pointer of a sequential zone.
    pub written: u32,
    /// Valid blocks.
    pub valid: u32,
}

/// Where a block lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Nowhere: it reads as zeroes.
    Zeroes,
    /// On a device, at this block of 4 KiB.
    At {
        /// The device, from 0 on.
        device: usize,
        /// The block on it.
        block: u64,
        /// The zone.
        zone: ZoneId,
    },
}

/// A volume that was looked at.
#[derive(Debug)]
pub struct Inspection {
    /// Sizes of the metadata.
    pub layout: Layout,
    /// Names of the volume and its devices.
    pub identity: Identity,
    /// Generation of the set that counts.
    pub generation: u64,
    /// The set that counts: 0 or 1.
    pub set: u32,
    /// Damage.
    pub findings: Vec<Finding>,
    /// Blocks in which the other set differs, and whether its root record is older: a flush was cut off.
    pub differing_blocks: u64,
    /// The root record of the other set is of another generation.
    pub is_older: bool,
    /// Sequential zones that no chunk has and that are not empty: opening resets them.
    pub leftover_zones: u64,
    /// Zones out of service that hold data which can be read.
    pub read_only_zones: u64,
    /// Every zone; none if the map is damaged.
    pub zones: Vec<ZoneView>,
    geometry: Geometry,
    meta: Metadata,
    map: BlockMap,
    written: Vec<u32>,
}

/// Looks at a volume.
///
/// # Errors
/// [`MountError`] if there is none, or a device cannot be read. Damage is no error.
pub fn inspect(backing: &mut dyn Backing, geometry: &Geometry) -> Result<Inspection, MountError> {
    let reports = report(backing, geometry)?;
    let roots = find_roots(backing, geometry)?;
    let mut chosen = choose(backing, geometry, &roots)?;
    chosen.give_up();
    let Chosen { set, layout, root, bytes, healed, lost } = chosen;
    let (identity, damaged) = identity(backing, geometry, &root)?;
    let blocks = u32_from(bytes.len() / DMZ_BLOCK_BYTES);
    let other = read_set(backing, layout.set_block(geometry, 1 - set), blocks)?;
    let differing_blocks = u64_from(differing(&bytes, &other).count());
    let (meta, map) = bytes.split_at(index(layout.metadata_blocks) * DMZ_BLOCK_BYTES);
    let found = BlockMap::of(geometry.zone_blocks(), map);
    let meta = Metadata::of(&layout, meta);
    let mut findings = root_findings(&roots);
    if healed > 0 {
        findings.push(Finding::Metadata { blocks: healed });
    }
    if !lost.is_empty() {
        findings.push(Finding::MetadataLost { blocks: u64_from(lost.len()) });
    }
    findings.extend(
        damaged.iter().map(|(device, error)| Finding::Copy { device: *device, error: *error }),
    );
    let mut inspection = Inspection {
        layout,
        identity,
        generation: root.generation,
        set,
        findings,
        differing_blocks,
        is_older: !roots.is_current(1 - set, root.generation),
        leftover_zones: 0,
        read_only_zones: 0,
        zones: Vec::new(),
        geometry: geometry.clone(),
        meta,
        map: BlockMap::default(),
        written: reports.iter().map(|report| report.written).collect(),
    };
    let mut recovered = inspection.meta.clone();
    let mut recovery = Recovery::default();
    let loaded = found.map_err(MountError::Journal).and_then(|mut map| {
        let both = (&mut recovered, &mut map);
        let zones = load(geometry, &layout, both, &reports, &mut recovery)?;
        inspection.map = map;
        Ok(zones)
    });
    match loaded {
        Ok(zones) => inspection.judge(&zones),
        Err(error) => inspection.findings.push(Finding::Map(error)),
    }
    Ok(inspection)
}

fn root_findings(roots: &Roots) -> Vec<Finding> {
    let fault = |set: u32| roots.fault(set).map(|error| Finding::Root { set, error });
    (0..2).filter_map(fault).collect()
}

impl Inspection {
    /// Looks at every zone and chunk of a map that is whole.
    fn judge(&mut self, zones: &Zones) {
        for id in self.geometry.ids() {
            let zone = zones.get(id);
            let used = ZoneUse::of(zone, self.layout.is_metadata(&self.geometry, id));
            let (written, valid) = (self.written[id.index()], self.meta.weight(id));
            let is_sequential = zone.is_sequential();
            let free = matches!(used, ZoneUse::Free | ZoneUse::Reserved);
            self.leftover_zones += u64::from(free && is_sequential && written > 0);
            let mapped = zone.is_mapped();
            let chunk = (zone.role != Role::Journal).then_some(zone.chunk);
            self.read_only_zones += u64::from(mapped && zone.condition == Condition::ReadOnly);
            if mapped && zone.condition == Condition::Offline && valid > 0 {
                let blocks = valid;
                self.findings.push(Finding::Offline { zone: id, chunk, blocks });
            }
            let lost = if mapped { lost_in(&self.meta, zones, id) } else { None };
            self.findings.extend(lost.map(Finding::Lost));
            let (kind, condition) = (zone.kind, zone.condition);
            let view = ZoneView { zone: id, kind, condition, used, written, valid };
            self.zones.push(view);
        }
        for chunk in 0..self.layout.chunks {
            let blocks = valid_twice(&self.geometry, &self.meta, chunk);
            if blocks > 0 {
                self.findings.push(Finding::Twice { chunk, blocks });
            }
        }
    }

    /// Data zone and buffer zone of a chunk.
    #[must_use]
    pub fn zones_of(&self, chunk: u32) -> (Option<ZoneId>, Option<ZoneId>) {
        let entry = self.meta.entry(chunk);
        (entry.data, entry.buffer)
    }

    /// The zones of the journal zone set, oldest first, with their streams.
    pub fn journal_zones(&self) -> impl Iterator<Item = (ZoneId, Stream)> + '_ {
        self.map.zones().iter().map(|one| (one.zone, one.stream))
    }

    /// Blocks of the journal that lie in them.
    #[must_use]
    pub fn appended_blocks(&self) -> u64 {
        u64_from(self.map.len())
    }

    /// Blocks of the journal block map in a metadata set.
    #[must_use]
    pub fn journal_blocks(&self) -> u32 {
        self.map.blocks()
    }

    /// The zones it lies on.
    #[must_use]
    pub const fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Blocks of 4 KiB that are exported.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.layout.blocks(&self.geometry)
    }

    /// Where a block lies; behind the end of the volume nowhere.
    #[must_use]
    pub fn place(&self, lba: u64) -> Place {
        if lba >= self.blocks() || self.zones.is_empty() {
            return Place::Zeroes;
        }
        let zone_blocks = u64::from(self.geometry.zone_blocks());
        let (chunk, offset) = (narrow(lba / zone_blocks), narrow(lba % zone_blocks));
        let holds = |zone: &ZoneId| {
            let is_written = self.geometry.kind(*zone) != ZoneKind::Sequential
                || offset < self.written[zone.index()];
            is_written && self.meta.run(*zone, offset..offset + 1).0
        };
        let (data, buffer) = self.zones_of(chunk);
        let zone = data.filter(holds).or_else(|| buffer.filter(holds));
        let spot = self.map.place(lba).or_else(|| zone.map(|zone| (zone, offset)));
        spot.map_or(Place::Zeroes, |(zone, at)| Place::At {
            device: self.geometry.device_of(zone),
            block: self.geometry.start(zone) + u64::from(at),
            zone,
        })
    }

    /// Whether opening the volume changes anything: it was not closed.
    #[must_use]
    pub const fn has_to_recover(&self) -> bool {
        self.differing_blocks > 0 || self.is_older || self.leftover_zones > 0
    }
}
