//! Volumes under test.

use onefold_format::volume::{
    Codec, DeviceRole, VolumeDevice, VolumeLabel, VolumeMode, VolumeName,
};
use onefold_units::convert::{index64, narrow, u64_from};
use onefold_units::{Nanos, Rng};
use onefold_volume::{
    Acknowledge, CleanMove, JournalStreams, MemberId, Options, PaperFlush, TRANSACTION_PAIRS_MAX,
    Trim, Victim, drive, mount, settle,
};

use super::disk::Disk;
use super::image::Image;
use super::zones::{ZoneSetup, Zones};
use crate::engine::format;

pub(crate) const UUID: [u8; 16] = [7; 16];

/// What does not change in the life of a volume, and how it is run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) mode: VolumeMode,
    pub(crate) backing_blocks: u64,
    /// Blocks that the backing really has; a volume may grow up to there.
    pub(crate) file_blocks: u64,
    pub(crate) logical_blocks: u64,
    pub(crate) unit_blocks: u32,
    /// Blocks of a partition, in the modes that have some.
    pub(crate) partition_blocks: u32,
    /// The host uses a clone of the device, which stays as it is.
    pub(crate) cloned: bool,
    /// How blocks are compressed.
    pub(crate) compress: Option<Codec>,
    /// What zones the backing has, if it has any.
    pub(crate) zones: Option<ZoneSetup>,
    /// One in so many remaps fails; 0: none does.
    pub(crate) refused_remaps: u64,
    pub(crate) options: Options,
}

pub(crate) const OPTIONS: Options = Options {
    batch_blocks: 16,
    batches: 26,
    map_pages: usize::MAX,
    checkpoint_blocks: 1 << 20,
    checkpoint_batches: 1 << 20,
    checkpoint_age: Nanos::new(1 << 50),
    flush_blocks: 1 << 20,
    flush_age: Nanos::new(1 << 50),
    marker_age: Nanos::new(1 << 50),
    batch_age: Nanos::new(1_000_000),
    acknowledge: Acknowledge::Complete,
    hot_cold: false,
    journal: JournalStreams::Off,
    victim: Victim::Greedy,
    clean_move: CleanMove::Copy,
    clean_below: None,
    trim: Trim::Always,
    trim_pause: Nanos::ZERO,
    verify: true,
    bytes: true,
    transaction_pairs: TRANSACTION_PAIRS_MAX,
    free_share: 0.1,
    commit_age: Nanos::new(1 << 50),
    table_bytes: u64::MAX,
    give_up_zones: false,
    paper_flush: PaperFlush::None,
    merge: true,
    clean_share: 1.0,
    preload: 128,
};

pub(crate) fn pick<T: Copy>(rng: &mut Rng, from: &[T]) -> T {
    from[index64(rng.below(u64_from(from.len())))]
}

impl Setup {
    /// Without an indirection unit.
    pub(crate) const fn of(backing_blocks: u64, logical_blocks: u64, options: Options) -> Self {
        Self {
            mode: VolumeMode::Log,
            backing_blocks,
            file_blocks: backing_blocks,
            logical_blocks,
            unit_blocks: 1,
            partition_blocks: 0,
            cloned: false,
            compress: None,
            zones: None,
            refused_remaps: 0,
            options,
        }
    }

    /// The same on so many zones.
    pub(crate) const fn on_zones(mut self, count: u64, zones: ZoneSetup) -> Self {
        self.backing_blocks = count * zones.size as u64;
        self.file_blocks = self.backing_blocks;
        self.zones = Some(zones);
        self.options.clean_move = CleanMove::Copy;
        self
    }

    /// A volume on zones on which everything happens often.
    pub(crate) fn random_zoned(rng: &mut Rng) -> Self {
        let mut setup = Self { refused_remaps: 0, unit_blocks: 1, ..Self::random(rng) };
        let limit = pick(rng, &[Some(4), Some(5), Some(6), None]);
        let (size, capacity) = pick(rng, &[(64, 64), (128, 64), (67, 67), (128, 97)]);
        let room = 5 * setup.logical_blocks / 4;
        if setup.options.batch_blocks > 16 {
            (setup.options.batch_blocks, setup.options.batches) = (16, 26);
        }
        let count = 4 + 22 + rng.below(8) + room.div_ceil(capacity - capacity / 8);
        let capacity = narrow(capacity);
        setup.options.clean_below = pick(rng, &[None, Some(14)]);
        let conventional = pick(rng, &[0, 0, 1, 2, 4, 9]);
        setup.on_zones(count, ZoneSetup { size, capacity, limit, conventional })
    }

    /// The same, cleaned by remap.
    pub(crate) const fn remapped(mut self) -> Self {
        self.options.clean_move = CleanMove::Remap;
        self
    }

    /// A volume on which everything happens often.
    pub(crate) fn random(rng: &mut Rng) -> Self {
        let (batch_blocks, batches) = pick(rng, &[(8, 46), (16, 26), (16, 32), (32, 18)]);
        let logical_blocks = pick(rng, &[900, 5000, 6500]);
        let options = Options {
            batch_blocks,
            batches,
            map_pages: pick(rng, &[4, 4, 8, usize::MAX]),
            checkpoint_blocks: pick(rng, &[150, 600, 2000]),
            checkpoint_batches: pick(rng, &[30, 1 << 20]),
            checkpoint_age: pick(rng, &[Nanos::new(20_000_000), Nanos::new(1 << 50)]),
            flush_blocks: pick(rng, &[40, 400, 1 << 20]),
            flush_age: pick(rng, &[Nanos::new(5_000_000), Nanos::new(1 << 50)]),
            marker_age: pick(rng, &[Nanos::ZERO, Nanos::new(100_000), Nanos::new(1 << 50)]),
            acknowledge: pick(rng, &[Acknowledge::Complete, Acknowledge::Buffered]),
            hot_cold: rng.below(2) == 0,
            victim: pick(rng, &[Victim::Greedy, Victim::CostBenefit]),
            clean_below: if logical_blocks < 1000 {
                pick(rng, &[None, Some(80)])
            } else {
                pick(rng, &[None, Some(16)])
            },
            trim: pick(rng, &[Trim::Always, Trim::Always, Trim::Spare, Trim::Never]),
            trim_pause: pick(rng, &[Nanos::ZERO, Nanos::new(3_000_000)]),
            preload: pick(rng, &[0, 1, 2, 128]),
            ..OPTIONS
        };
        let segments = 134 + rng.below(20);
        let backing_blocks = 64 * segments + rng.below(64);
        let unit_blocks = pick(rng, &[1, 1, 4]);
        let remaps = unit_blocks == 1 && rng.below(2) == 0;
        let setup = Self {
            unit_blocks,
            refused_remaps: pick(rng, &[0, 0, 1, 5]),
            compress: match backing_blocks % 6 {
                0 => Some(Codec::Lz4),
                3 => Some(Codec::Zstd),
                _ => None,
            },
            ..Self::of(backing_blocks, logical_blocks, options)
        };
        if remaps { setup.remapped() } else { setup }
    }

    /// The same with a device that exports several times what the log can hold.
    pub(crate) fn random_thin(rng: &mut Rng) -> Self {
        Self { logical_blocks: pick(rng, &[20_000, 60_000, 100_000]), ..Self::random(rng) }
    }

    pub(crate) fn label(&self) -> VolumeLabel {
        let blocks = self.backing_blocks;
        let segment_blocks = match self.mode {
            VolumeMode::Log => self.zones.map_or(64, |zones| zones.capacity),
            VolumeMode::Sung | VolumeMode::Han => self.partition_blocks,
        };
        VolumeLabel {
            uuid: UUID,
            generation: 1,
            name: VolumeName::default(),
            mode: self.mode,
            compat: 0,
            ro_compat: 0,
            incompat: self.compress.map_or(0, Codec::features),
            unit_blocks: self.unit_blocks,
            segment_blocks,
            logical_blocks: self.logical_blocks,
            op_basis_points: 2000,
            devices: vec![VolumeDevice {
                uuid: [8; 16],
                role: DeviceRole::Data,
                blocks,
                zone_blocks: self.zones.map_or(0, |zones| zones.size.into()),
            }],
        }
    }

    /// A new volume in which nothing was written.
    pub(crate) fn format(&self) -> Disk {
        let mut image = Image::new(self.file_blocks);
        image.zones = self.zones.map(|zones| Zones::new(zones, self.file_blocks));
        let mut disk = Disk::new(image);
        format(&mut disk, &self.label()).expect("a volume that fits");
        if self.cloned {
            make_clone(&mut disk, self);
        }
        assert_eq!(disk.volatile(), 0, "a new volume is durable");
        disk
    }
}

/// Name of the clone that the host uses.
pub(crate) const HOST: &str = "host";

fn make_clone(disk: &mut Disk, setup: &Setup) {
    let opened = mount(disk, setup.file_blocks, setup.options);
    let (mut volume, _) = opened.expect("a new volume opens");
    let name = VolumeName::new(HOST).expect("a short name");
    volume.make_clone(1, MemberId::DEVICE, &name).expect("there is no other member");
    drive(&mut volume, disk, Nanos::new(1));
    volume.close();
    assert!(settle(&mut volume, disk, Nanos::new(1)), "it is closed");
}
