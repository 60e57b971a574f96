//! Making and opening volumes.

use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, RwLock};
use std::time::{Duration, Instant};

use onefold_format::volume::{
    Codec, DeviceRole, VolumeDevice as LabelDevice, VolumeLabel, VolumeMode, VolumeName,
};
use onefold_units::PAGE_BYTES;
use onefold_units::convert::float;
use onefold_volume::{
    Acknowledge, CleanMove, Geometry, Layout, MemberId, MountError, Options, Recovery, Trim,
};

use super::backing::VolumeBacking;
use super::bell::Bell;
use super::error::VolumeError;
use super::io_mode::{self, VolumeIo};
use super::jobs;
use super::owner;
use super::watch::{self, Journals};
use super::{Opening, Shared, State, Threads, VolumeDevice};
use crate::driver::Jobs;

/// What becomes of a write for which there is no space (volume.md, section 5.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFull {
    /// It fails.
    Error,
    /// It waits until trims or deleted snapshots make room, or until nobody serves the volume any more.
    Block,
}

/// How to run a volume.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct VolumeOptions {
    /// What becomes of writes for which there is no space.
    pub on_full: OnFull,
    /// How requests get to the backing.
    pub io: VolumeIo,
    /// Whether they go around the page cache where the file system can do that.
    pub direct: bool,
    /// Whether the cleaner moves blocks by remap where the backing can: an emulated SSD with `ftl.remap`.
    pub remap: bool,
    /// Whether the backing is told which log segments hold nothing: drives of all, files of those that stay free.
    pub trim: bool,
    /// What becomes of the journals of file systems.
    pub journals: Journals,
    /// Time between the beginnings of two scrubs, the first of which begins with the opening; `None`: only those asked for. Mode `log` only.
    pub scrub: Option<Duration>,
    /// What the engine is run with, but for how the cleaner moves blocks, trims, and streams of journals.
    pub engine: Options,
}

/// Batches in memory, of 1 MiB: a drive that takes 5 ms for each of many writes wants that many under way for its full
/// bandwidth (docs/volume.md).
const BATCHES: usize = 32;

/// Requests at a time for what is read of the map in the background: a read of the host comes behind no more than those.
const PRELOAD: u32 = 128;

impl Default for VolumeOptions {
    fn default() -> Self {
        Self {
            on_full: OnFull::Error,
            io: VolumeIo::Auto,
            direct: true,
            remap: true,
            trim: true,
            journals: Journals::default(),
            scrub: None,
            engine: Options {
                acknowledge: Acknowledge::Buffered,
                batches: BATCHES,
                preload: PRELOAD,
                ..Options::default()
            },
        }
    }
}

/// What a volume to be made is like.
#[derive(Clone, Debug)]
pub struct VolumeSpec {
    /// Its name.
    pub name: VolumeName,
    /// How it places and cleans.
    pub mode: VolumeMode,
    /// Bytes that it exports; `None`: what is left of the log space after `op`.
    pub bytes: Option<u64>,
    /// Share of log space that stays free where `bytes` is absent (volume.md, section 5.1: 0.2).
    pub op: f64,
    /// `bytes` may be more than the log can hold; mode `log` only.
    pub thin: bool,
    /// Bytes of a log segment, in mode `sung` of a partition; `None`: chosen by the size of the backing.
    pub segment_bytes: Option<u64>,
    /// Bytes of the indirection unit of the backing; `None`: what that tells ([`VolumeBacking::unit_bytes`]).
    pub unit_bytes: Option<u64>,
    /// How to compress blocks where that saves room. Mode `log` only.
    pub compress: Option<Codec>,
}

impl Default for VolumeSpec {
    fn default() -> Self {
        Self {
            name: VolumeName::default(),
            mode: VolumeMode::Log,
            bytes: None,
            op: 0.2,
            thin: false,
            segment_bytes: None,
            unit_bytes: None,
            compress: None,
        }
    }
}

/// A volume that was opened, and how.
pub struct VolumeOpened {
    /// The volume.
    pub device: VolumeDevice,
    /// What recovery found.
    pub recovery: Recovery,
    /// How long it took.
    pub took: Duration,
}

impl VolumeSpec {
    /// The label of a volume on a backing of so many blocks, without zones.
    ///
    /// # Errors
    /// What does not fit.
    pub fn label(&self, blocks: u64) -> Result<VolumeLabel, VolumeError> {
        if self.mode != VolumeMode::Log {
            if self.compress.is_some() {
                let what = "does not compress: leave out --compress or use mode log";
                return Err(VolumeError::Mode { mode: self.mode.name(), what });
            }
            return super::modes::label(self, blocks);
        }
        let unit = self.unit_blocks()?;
        let segment = match self.segment_bytes {
            Some(bytes) => Self::blocks_of("log segments", bytes, ", 4 GiB at most")?,
            None => default_segment_blocks(blocks).next_multiple_of(unit.max(1)),
        };
        self.log_label(blocks, segment, 0)
    }

    /// The label of a volume on a backing. On one with zones, they are its log segments.
    ///
    /// # Errors
    /// What does not fit.
    pub fn label_on(&self, backing: &VolumeBacking) -> Result<VolumeLabel, VolumeError> {
        let report = backing.zones().map_err(|_| MountError::Backing("its zones were reported"))?;
        let Some(report) = report else {
            let is_log = self.mode == VolumeMode::Log;
            let told = is_log.then(|| backing.unit_bytes());
            let unit_bytes = self.unit_bytes.or(told);
            return Self { unit_bytes, ..self.clone() }.label(backing.blocks());
        };
        let refused = |what| VolumeError::Mode { mode: self.mode.name(), what };
        if self.mode != VolumeMode::Log {
            return Err(refused("overwrites in place, which zones do not take: use mode log"));
        }
        if self.segment_bytes.is_some() {
            return Err(refused("on zones has zones for log segments: leave out --segment"));
        }
        let capacity = report.capacity().map_err(MountError::Zones)?;
        self.log_label(backing.blocks(), capacity, report.zone_blocks)
    }

    fn unit_blocks(&self) -> Result<u32, VolumeError> {
        let unit = self.unit_bytes.unwrap_or(PAGE_BYTES);
        Self::blocks_of("an indirection unit", unit, ", 256 KiB at most")
    }

    fn log_label(&self, blocks: u64, segment: u32, zone: u32) -> Result<VolumeLabel, VolumeError> {
        let geometry = Geometry {
            backing_blocks: blocks,
            segment_blocks: segment,
            zone_blocks: zone,
            unit_blocks: self.unit_blocks()?,
            logical_blocks: 1,
            compress: self.compress,
        };
        let layout = Layout::new(geometry).map_err(MountError::Geometry)?;
        let logical_blocks = match self.bytes {
            Some(bytes) => Self::whole_blocks(bytes)?,
            None => share(layout.log_blocks(), 1.0 - self.op).min(layout.logical_max()),
        };
        Layout::new(Geometry { logical_blocks, ..geometry })
            .and_then(|layout| if self.thin { Ok(layout) } else { layout.not_thin() })
            .map_err(MountError::Geometry)?;
        let data = LabelDevice {
            uuid: random_uuid()?,
            role: DeviceRole::Data,
            blocks,
            zone_blocks: zone.into(),
        };
        Ok(VolumeLabel {
            uuid: random_uuid()?,
            generation: 1,
            name: self.name.clone(),
            mode: VolumeMode::Log,
            compat: 0,
            ro_compat: 0,
            incompat: self.compress.map_or(0, Codec::features),
            unit_blocks: geometry.unit_blocks,
            segment_blocks: segment,
            logical_blocks,
            op_basis_points: spare_basis_points(layout.log_blocks(), logical_blocks),
            devices: vec![data],
        })
    }

    pub(super) fn whole_blocks(bytes: u64) -> Result<u64, VolumeError> {
        let (what, limit) = ("a volume", "");
        if bytes.is_multiple_of(PAGE_BYTES) {
            return Ok(bytes / PAGE_BYTES);
        }
        Err(VolumeError::Size { what, bytes, multiple: PAGE_BYTES, limit })
    }

    pub(super) fn blocks_of(
        what: &'static str,
        bytes: u64,
        limit: &'static str,
    ) -> Result<u32, VolumeError> {
        let blocks = u32::try_from(bytes / PAGE_BYTES).ok();
        let whole = bytes > 0 && bytes.is_multiple_of(PAGE_BYTES) && bytes <= 4 << 30;
        blocks.filter(|_| whole).ok_or(VolumeError::Size {
            what,
            bytes,
            multiple: PAGE_BYTES,
            limit,
        })
    }
}

/// clamp(next power of two(capacity / 512), 4 MiB, 1 GiB), and at least 128 of them where there is room for log segments of
/// 256 KiB (volume.md, section 5.1).
fn default_segment_blocks(blocks: u64) -> u32 {
    let wanted = (blocks / 512).next_power_of_two().clamp(1024, 262_144);
    let most = (blocks / 160).max(64);
    let most = if most.is_power_of_two() { most } else { most.next_power_of_two() / 2 };
    u32::try_from(wanted.min(most)).unwrap_or(1024)
}

/// Share of the log space that the exported blocks leave free, in 1/10,000.
pub(super) fn spare_basis_points(log: u64, logical_blocks: u64) -> u16 {
    let spare = log.saturating_sub(logical_blocks);
    u16::try_from(spare * 10_000 / log.max(1)).unwrap_or(10_000)
}

pub(super) fn share(blocks: u64, share: f64) -> u64 {
    onefold_units::convert::floor_u64(float(blocks) * share.clamp(0.0, 1.0))
}

pub(crate) fn random_uuid() -> Result<[u8; 16], VolumeError> {
    let mut uuid = [0; 16];
    rustix::rand::getrandom(&mut uuid[..], rustix::rand::GetRandomFlags::empty())
        .map_err(|error| VolumeError::Random(error.into()))?;
    // Version 4, variant 1 of RFC 9562.
    uuid[6] = uuid[6] & 0x0F | 0x40;
    uuid[8] = uuid[8] & 0x3F | 0x80;
    Ok(uuid)
}

impl VolumeDevice {
    /// Makes a volume on a backing.
    ///
    /// # Errors
    /// The backing holds something and `force` is not given, or it is too small. Nothing was changed then.
    pub fn format(
        backing: &VolumeBacking,
        spec: &VolumeSpec,
        force: bool,
    ) -> Result<VolumeLabel, VolumeError> {
        let label = spec.label_on(backing)?;
        if !force && let Some(what) = backing.contents(&written(&label)) {
            return Err(VolumeError::Holds { what });
        }
        onefold_volume::format(&mut backing.clone(), &label)?;
        Ok(label)
    }

    /// Opens the volume on a backing and recovers it.
    ///
    /// # Errors
    /// There is none, or it is damaged.
    pub fn open(
        backing: VolumeBacking,
        mut options: VolumeOptions,
    ) -> Result<VolumeOpened, VolumeError> {
        let begin = Instant::now();
        let blocks = backing.blocks();
        let label = onefold_volume::read_label(&mut backing.clone(), blocks)?;
        let uuid = label.uuid;
        let remaps = options.remap && can_remap(&backing, &label);
        options.engine.clean_move = if remaps { CleanMove::Remap } else { CleanMove::Copy };
        options.engine.trim = trims(&backing, options.trim);
        if options.engine.paper_flush {
            return Err(VolumeError::PaperFlush);
        }
        let setting = options.journals.setting(&label)?;
        options.engine.journal = watch::streams(setting.as_ref());
        let io = io_mode::choose(&backing, &options)?;
        let (mut volume, recovery) =
            onefold_volume::open(&mut backing.clone(), blocks, options.engine)?;
        super::scrub::repeat(&mut *volume, options.scrub)?;
        let took = begin.elapsed();
        let size = volume.logical_blocks() * PAGE_BYTES;
        let file = backing.as_file().cloned();
        let bell = match io.engine {
            "uring" => Some(Arc::new(Bell::new().map_err(VolumeError::NoUring)?)),
            _ => None,
        };
        let state = State::new(volume, setting);
        let watches = state.watch.is_some();
        let shared = Arc::new(Shared {
            write_blocks_max: state.volume.write_blocks_max(),
            state: Mutex::new(state),
            progress: Condvar::new(),
            watched: Condvar::new(),
            jobs: Jobs::default(),
            bell: bell.clone(),
            thread_manages: file.as_ref().is_some_and(|file| file.is_block_device()),
            opening: Opening { uuid, io, remaps, recovery, took },
            backing,
            rewrite: RwLock::new(()),
            sizes: Mutex::default(),
            start: Instant::now(),
            writes_wait: options.engine.acknowledge == Acknowledge::Complete,
            waits_for_space: AtomicBool::new(options.on_full == OnFull::Block),
        });
        let threads = Threads { shared: Arc::clone(&shared), list: Mutex::default() };
        let mut started = jobs::start(&shared).map_err(VolumeError::Thread)?;
        if let (Some(file), Some(bell)) = (&file, &bell) {
            started.push(owner::start(&shared, file, bell).map_err(VolumeError::NoUring)?);
        }
        if watches {
            started.push(watch::start(&shared).map_err(VolumeError::Thread)?);
        }
        threads.list.lock().unwrap_or_else(std::sync::PoisonError::into_inner).extend(started);
        shared.turn(&mut shared.state());
        let (member, threads) = (MemberId::DEVICE, Arc::new(threads));
        let size = shared.size_of(member, size);
        let device = Self { shared, member, size, _threads: threads };
        Ok(VolumeOpened { device, recovery, took })
    }
}

/// What making a volume overwrites at once, in bytes: the labels and the roots of mode log. Other modes begin at the ends.
fn written(label: &VolumeLabel) -> Vec<Range<u64>> {
    let Ok(layout) = Layout::new(Geometry::of(label)) else { return Vec::new() };
    let places = layout.labels().iter().chain(layout.roots());
    places.map(|at| at * PAGE_BYTES..(at + 1) * PAGE_BYTES).collect()
}

/// Which log segments are trimmed. Somebody who writes files has no use for a hole that is filled again soon.
fn trims(backing: &VolumeBacking, wanted: bool) -> Trim {
    match backing.as_file() {
        _ if !wanted => Trim::Never,
        Some(file) if file.is_regular() => Trim::Spare,
        _ => Trim::Always,
    }
}

/// Whether the cleaner can move the blocks of a volume by remap.
fn can_remap(backing: &VolumeBacking, label: &VolumeLabel) -> bool {
    let packed = Codec::of_features(label.incompat).is_some();
    label.mode == VolumeMode::Log && label.unit_blocks == 1 && !packed && backing.remaps()
}
