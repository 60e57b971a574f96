//! A volume on a modelled SSD, without time and without the bytes of blocks.

use std::collections::VecDeque;

use onefold_format::volume::{DeviceRole, VolumeDevice, VolumeLabel, VolumeMode, VolumeName};
use onefold_nand::{Geometry as FlashGeometry, GeometrySpec, NullMedia, Span};
use onefold_ssd::{Command, Payload, Ssd, SsdConfig, example_config};
use onefold_units::convert::{index, index64, narrow, u64_from};
use onefold_units::{Lba, Nanos, Op};
use onefold_volume::{
    Backing, Geometry, Io, IoFailed, IoId, IoKind, Layout, Options, Range, Refusal, Volume, format,
    mount,
};

pub(crate) type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const BLOCK: u64 = 4096;

/// Writes to the device that are kept under way, so that a batch waits for the next one and not for itself.
const IN_FLIGHT: usize = 2;

/// Over-provisioning of the device in percent.
const OVER_PROVISIONING: u64 = 7;

/// A device with one superblock of `superblock_blocks` per erase, that shows `blocks`.
pub(crate) fn device(
    blocks: u64,
    superblock_blocks: u64,
    unit_blocks: u32,
    streams: u32,
) -> Outcome<Ssd<NullMedia>> {
    let superblocks = (blocks * (100 + OVER_PROVISIONING)).div_ceil(100 * superblock_blocks);
    let geometry = FlashGeometry::new(GeometrySpec {
        channels: 1,
        ways: 1,
        planes: 1,
        blocks: narrow(superblocks),
        pages: narrow(superblock_blocks),
        page_bytes: 4096,
        unit_bytes: 4096 * unit_blocks,
        span: Span::Device,
    })?;
    let mut config = SsdConfig { geometry, ..example_config() };
    config.ftl.logical_units = blocks / u64::from(unit_blocks);
    config.ftl.gc_start = 0.0;
    config.ftl.streams = streams;
    // Room for every trim of a run: a full log would take superblocks for a checkpoint.
    config.ftl.trim_log_bytes = 1 << 30;
    let mut ssd = Ssd::new(config, NullMedia)?;
    ssd.set_timed(false);
    Ok(ssd)
}

/// The device below a volume, with the bytes that the volume reads again.
pub(crate) struct Below {
    pub(crate) ssd: Ssd<NullMedia>,
    /// Where the volume begins on the device.
    offset: u64,
    /// Headers and what checkpoints write, by block.
    kept: Vec<Option<Box<[u8]>>>,
}

impl Below {
    fn submit(&mut self, op: Op, at: u64, blocks: u64) -> Result<(), IoFailed> {
        self.submit_to(0, op, at, blocks)
    }

    fn submit_to(&mut self, stream: u16, op: Op, at: u64, blocks: u64) -> Result<(), IoFailed> {
        let (offset, len) =
            if op == Op::Flush { (0, 0) } else { ((self.offset + at) * BLOCK, blocks * BLOCK) };
        let command = Command { stream, ..Command::new(op, offset, len) };
        self.ssd.submit(Nanos::ZERO, &command, Payload::None).map(|_| ()).map_err(|_| IoFailed)
    }

    fn keep(&mut self, at: u64, bytes: &[u8]) {
        for (place, block) in self.kept[index64(at)..].iter_mut().zip(bytes.chunks(4096)) {
            *place = Some(block.into());
        }
    }
}

impl Backing for Below {
    fn read(&mut self, at: u64, bytes: &mut [u8]) -> Result<(), IoFailed> {
        for (place, block) in self.kept[index64(at)..].iter().zip(bytes.chunks_mut(4096)) {
            match place {
                Some(kept) => block.copy_from_slice(kept),
                None => block.fill(0),
            }
        }
        Ok(())
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), IoFailed> {
        self.keep(at, bytes);
        self.submit(Op::Write, at, u64_from(bytes.len()) / BLOCK)
    }

    fn flush(&mut self) -> Result<(), IoFailed> {
        self.submit(Op::Flush, 0, 0)
    }

    fn trim(&mut self, at: u64, blocks: u64) -> Result<(), IoFailed> {
        self.submit(Op::Trim, at, blocks)
    }
}

/// Sizes of a stack, in blocks of 4 KiB.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// Log segments that hold data.
    pub(crate) log_segments: u64,
    pub(crate) segment_blocks: u32,
    pub(crate) superblock_blocks: u64,
    pub(crate) unit_blocks: u32,
    pub(crate) logical_blocks: u64,
    /// Where the volume begins on the device.
    pub(crate) offset: u64,
    /// Streams that the device places apart.
    pub(crate) streams: u32,
}

/// A volume on a device.
pub(crate) struct Stack {
    pub(crate) volume: Volume,
    pub(crate) below: Below,
    in_flight: VecDeque<IoId>,
}

impl Stack {
    pub(crate) fn new(sizes: &Sizes, options: Options) -> Outcome<Self> {
        let geometry = geometry(sizes)?;
        let device_blocks =
            (sizes.offset + geometry.backing_blocks).next_multiple_of(sizes.superblock_blocks);
        let ssd = device(device_blocks, sizes.superblock_blocks, sizes.unit_blocks, sizes.streams)?;
        let kept = vec![None; index64(geometry.backing_blocks)];
        let mut below = Below { ssd, offset: sizes.offset, kept };
        if sizes.offset > 0 {
            let before = Command::new(Op::Write, 0, sizes.offset * BLOCK);
            below.ssd.submit(Nanos::ZERO, &before, Payload::None)?;
        }
        format(&mut below, &label(&geometry))?;
        let (volume, _) = mount(&mut below, geometry.backing_blocks, options)?;
        Ok(Self { volume, below, in_flight: VecDeque::new() })
    }

    /// Writes one block, waiting as long as the volume wants.
    pub(crate) fn write(&mut self, lba: u64) -> Outcome<()> {
        let range = Range { lba: Lba::new(lba), blocks: 1 };
        while let Err(refusal) = self.volume.write(0, range, None, false) {
            if refusal != Refusal::Busy {
                return Err(std::format!("block {lba}: {refusal:?}").into());
            }
            self.wait()?;
        }
        self.go_on(IN_FLIGHT);
        Ok(())
    }

    /// Lets the volume go on until something was done.
    fn wait(&mut self) -> Outcome<()> {
        self.volume.pump(Nanos::ZERO);
        for most in (0..=IN_FLIGHT).rev() {
            if self.go_on(most) {
                return Ok(());
            }
        }
        Err("the volume waits for nothing".into())
    }

    /// Carries out what the volume asks for, with at most `most` writes under way. Whether anything happened.
    fn go_on(&mut self, most: usize) -> bool {
        let mut any = false;
        loop {
            let mut some = false;
            while let Some(io) = self.volume.poll_io() {
                some = true;
                self.execute(io);
            }
            while self.in_flight.len() > most
                && let Some(id) = self.in_flight.pop_front()
            {
                some = true;
                self.volume.completed(Nanos::ZERO, id, Ok(()));
            }
            if !some {
                break;
            }
            any = true;
            self.volume.pump(Nanos::ZERO);
        }
        while self.volume.poll_done().is_some() {}
        any
    }

    fn execute(&mut self, io: Io) {
        let at = u64::from(io.at.raw());
        // A device with fewer streams puts the rest into its last one.
        let stream = self.volume.stream(io.id).map_or(0, |stream| u16::from(stream.code()));
        let result = match io.kind {
            IoKind::Read => self.read(io),
            IoKind::Write => {
                // A batch's buffer may be longer than the batch; without bytes it is the header alone.
                let bytes = self.volume.buffer(io.id);
                self.below.keep(at, &bytes[..bytes.len().min(index(io.blocks) * 4096)]);
                self.below.submit_to(stream, Op::Write, at, io.blocks.into())
            }
            IoKind::Flush => self.below.submit(Op::Flush, 0, 0),
            IoKind::Trim => self.below.submit(Op::Trim, at, io.blocks.into()),
            IoKind::Remap => Err(IoFailed),
        };
        if io.kind == IoKind::Write && result.is_ok() {
            self.in_flight.push_back(io.id);
        } else {
            self.volume.completed(Nanos::ZERO, io.id, result);
        }
    }

    fn read(&mut self, io: Io) -> Result<(), IoFailed> {
        let at = u64::from(io.at.raw());
        self.below.read(at, self.volume.buffer_mut(io.id))?;
        self.below.submit(Op::Read, at, io.blocks.into())
    }
}

/// The backing whose log space is as large as wanted, beside the log segments with labels and roots.
fn geometry(sizes: &Sizes) -> Outcome<Geometry> {
    let of = |segments: u64| Geometry {
        backing_blocks: segments * u64::from(sizes.segment_blocks),
        segment_blocks: sizes.segment_blocks,
        unit_blocks: sizes.unit_blocks,
        logical_blocks: sizes.logical_blocks,
    };
    let mut more = (sizes.log_segments..sizes.log_segments + 64).map(of);
    let fits = |geometry: &Geometry| {
        Layout::new(*geometry)
            .is_ok_and(|layout| u64::from(layout.usable_segments()) >= sizes.log_segments)
    };
    more.find(fits).ok_or_else(|| "the mapped blocks do not fit the log".into())
}

fn label(geometry: &Geometry) -> VolumeLabel {
    VolumeLabel {
        uuid: [7; 16],
        generation: 1,
        name: VolumeName::default(),
        mode: VolumeMode::Log,
        compat: 0,
        ro_compat: 0,
        incompat: 0,
        unit_blocks: geometry.unit_blocks,
        segment_blocks: geometry.segment_blocks,
        logical_blocks: geometry.logical_blocks,
        op_basis_points: 0,
        devices: vec![VolumeDevice {
            uuid: [8; 16],
            role: DeviceRole::Data,
            blocks: geometry.backing_blocks,
            zone_blocks: 0,
        }],
    }
}
