//! Making and opening a layer on the places below, before the run has a clock.

use onefold_config::{Volume as VolumeConfig, ZonedVolume};
use onefold_format::volume::{BlockError, VolumeLabel};
use onefold_journal::{Detector, Setting};
use onefold_ssd::zns::{ZoneAction, ZoneState};
use onefold_units::convert::{narrow, u64_from};
use onefold_units::{Lba, Nanos, Op, ZoneId};
use onefold_volume::{IoFailed, MountError, Range, ZoneReport, read_label};
use onefold_zoned::{Condition, Identity};

use super::device::Device;
use super::layer::Answer;
use super::port::{Port, manage};
use super::{At, Stack, VolumeLayer, ZonedLayer};
use crate::SimError;
use crate::request::{Owner, Request, whole_step_of};
use crate::used::Used;

const BLOCK: u64 = 4096;

impl Stack {
    /// Makes a volume on the place below, and opens it.
    pub(crate) fn add_volume(
        &mut self,
        name: &str,
        config: &VolumeConfig,
        below: usize,
    ) -> Result<usize, SimError> {
        let mut port = Port::new(self.at(below), config.offset_blocks);
        let mut opening = Opening { stack: self, ports: std::slice::from_mut(&mut port) };
        let label = config.geometry.label(config.mode, [[7; 16], [8; 16]]);
        onefold_modes::format(&mut opening, &label)
            .map_err(|source| SimError::VolumeMount { what: "made", source })?;
        self.open_volume(name, config, port)
    }

    /// Opens the volume that is on the place below.
    pub(crate) fn open_volume(
        &mut self,
        name: &str,
        config: &VolumeConfig,
        mut port: Port,
    ) -> Result<usize, SimError> {
        let blocks = config.geometry.backing_blocks;
        let mut opening = Opening { stack: self, ports: std::slice::from_mut(&mut port) };
        let (mut engine, _) = onefold_modes::open(&mut opening, blocks, config.options)
            .map_err(|source| SimError::VolumeMount { what: "opened", source })?;
        if let (Some(volume), Some(journal)) = (engine.as_log_mut(), &config.journal) {
            // What the user of a real volume may say as well.
            let given = Setting::Ranges(vec![(journal.start * BLOCK, journal.end * BLOCK)]);
            let blocks = config.geometry.logical_blocks;
            volume.set_journal(Detector::new(blocks, given, Nanos::ZERO).ranges());
        }
        let layer = Box::new(VolumeLayer::new(config, engine));
        Ok(self.add_layer(name, layer, vec![port]))
    }

    /// Makes a zoned volume on the places below, the regular one first, and opens it.
    pub(crate) fn add_zoned(
        &mut self,
        name: &str,
        config: &ZonedVolume,
        below: &[usize],
    ) -> Result<usize, SimError> {
        let mut ports: Vec<_> = below.iter().map(|below| Port::new(self.at(*below), 0)).collect();
        let device_uuids = vec![[8; 16]; config.geometry.devices()];
        let identity = Identity { label: [0; 32], uuid: [7; 16], device_uuids };
        let failed = |what| move |source| SimError::ZonedMount { what, source };
        let mut opening = Opening { stack: self, ports: &mut ports };
        onefold_zoned::format(&mut opening, &config.geometry, &identity).map_err(failed("made"))?;
        let options = config.options.clone();
        let opened = onefold_zoned::mount(&mut opening, &config.geometry, options, Nanos::ZERO);
        let (volume, _) = opened.map_err(failed("opened"))?;
        let layer = Box::new(ZonedLayer::new(config, volume));
        Ok(self.add_layer(name, layer, ports))
    }

    /// A drive that was used before, the port to it, and the label of the volume at its beginning,
    /// if there is one.
    pub(crate) fn used(used: Used) -> Result<(Self, Port, Option<VolumeLabel>), SimError> {
        let mut stack = Self::default();
        let below = At::Device(0);
        stack.devices.push(Device::Blocks(Box::new(used.ssd)));
        stack.add("drive", below);
        let mut port = Port::used(below, used.read);
        let blocks = stack.blocks(below);
        let mut opening = Opening { stack: &mut stack, ports: std::slice::from_mut(&mut port) };
        match read_label(&mut opening, blocks) {
            Ok(label) => Ok((stack, port, Some(label))),
            Err(MountError::Label(BlockError::NotOurs)) => Ok((stack, port, None)),
            Err(source) => Err(SimError::VolumeMount { what: "opened", source }),
        }
    }

    /// Carries a request to a layer out, to its end, without time.
    pub(super) fn carry_out_untimed(
        &mut self,
        layer: usize,
        (op, at, blocks): (Op, u64, u64),
    ) -> Result<(), IoFailed> {
        let steps = whole_step_of(op, at * BLOCK, blocks * BLOCK);
        let request = Request::new(Owner::Nobody, 0, (op, false), steps);
        let entered = self.enter(layer, request, 0);
        entered.and_then(|()| self.wait_untimed(layer, 0)).map_err(|_| IoFailed::Error)
    }

    /// Lets time pass by itself until no request to a layer waits, and as few are under way below.
    pub(super) fn wait_untimed(&mut self, layer: usize, in_flight: usize) -> Result<(), SimError> {
        loop {
            let joint = &self.layers[layer].joint;
            let is_over = joint.waiting() == 0
                && self.flights.len() <= in_flight
                && (in_flight > 0 || joint.under_way() == 0);
            if is_over {
                return Ok(());
            }
            if self.flights.is_empty() {
                let due = self.layers.iter().filter_map(|above| above.layer.due());
                self.base = self.base.max(due.min().ok_or(SimError::VolumeStuck)?.get());
                self.advance(0)?;
            }
            self.land(0)?;
        }
    }
}

/// The places below a layer that is made or opened.
struct Opening<'a> {
    stack: &'a mut Stack,
    ports: &'a mut [Port],
}

impl Opening<'_> {
    fn submit(&mut self, port: usize, op: Op, range: Range) -> Result<(), IoFailed> {
        let port = &mut self.ports[port];
        match port.below {
            At::Device(device) => {
                let device = &mut self.stack.devices[device];
                let done = match op {
                    Op::Flush => port.flush(0, device),
                    op => port.submit(0, (op, 0), range, device),
                };
                done.map(|_| ()).map_err(|_| IoFailed::Error)
            }
            At::Layer(below) => {
                port.asked.count(op, range.blocks);
                let at = if op == Op::Flush { 0 } else { port.at(range.lba.raw()) };
                self.stack.carry_out_untimed(below, (op, at, range.blocks))
            }
        }
    }

    fn device(&mut self, port: usize) -> Option<(&mut Device, &mut Port)> {
        let port = self.ports.get_mut(port)?;
        match port.below {
            At::Device(device) => Some((&mut self.stack.devices[device], port)),
            At::Layer(_) => None,
        }
    }
}

const fn range(at: u64, blocks: u64) -> Range {
    Range { lba: Lba::new(at), blocks }
}

const NOTHING: Range = range(0, 0);

const fn done(answer: Answer) -> Result<(), IoFailed> {
    if answer.failed { Err(IoFailed::Error) } else { Ok(()) }
}

/// Reads come from what was kept.
impl onefold_volume::Backing for Opening<'_> {
    fn read(&mut self, at: u64, bytes: &mut [u8]) -> Result<(), IoFailed> {
        if self.ports[0].load(at, bytes) { Ok(()) } else { Err(IoFailed::Error) }
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), IoFailed> {
        let blocks = range(at, u64_from(bytes.len()) / BLOCK);
        self.ports[0].keep(blocks, bytes);
        self.submit(0, Op::Write, blocks)
    }

    fn zones(&mut self) -> Result<Option<ZoneReport>, IoFailed> {
        Ok(self.device(0).and_then(|(device, _)| device.report()))
    }

    fn reset(&mut self, zone: ZoneId) -> Result<(), IoFailed> {
        let (device, port) = self.device(0).ok_or(IoFailed::Error)?;
        done(port.reset(0, zone, device))
    }

    fn finish(&mut self, zone: ZoneId) -> Result<(), IoFailed> {
        let (device, _) = self.device(0).ok_or(IoFailed::Error)?;
        done(manage(0, zone, ZoneAction::Finish, device))
    }

    fn flush(&mut self) -> Result<(), IoFailed> {
        self.submit(0, Op::Flush, NOTHING)
    }

    fn trim(&mut self, at: u64, blocks: u64) -> Result<(), IoFailed> {
        self.ports[0].forget(range(at, blocks));
        self.submit(0, Op::Trim, range(at, blocks))
    }
}

/// Reads come from what was kept.
impl onefold_zoned::Backing for Opening<'_> {
    fn read(&mut self, device: usize, at: u64, bytes: &mut [u8]) -> Result<(), IoFailed> {
        if self.ports[device].load(at, bytes) { Ok(()) } else { Err(IoFailed::Error) }
    }

    fn write(&mut self, device: usize, at: u64, bytes: &[u8]) -> Result<(), IoFailed> {
        let blocks = range(at, u64_from(bytes.len()) / BLOCK);
        self.ports[device].keep(blocks, bytes);
        self.submit(device, Op::Write, blocks)
    }

    fn flush(&mut self, device: usize) -> Result<(), IoFailed> {
        self.submit(device, Op::Flush, NOTHING)
    }

    fn reset(&mut self, device: usize, at: u64) -> Result<(), IoFailed> {
        let (device, _) = self.device(device).ok_or(IoFailed::Error)?;
        let zone = zone_of(device, at).ok_or(IoFailed::Error)?;
        done(manage(0, zone, ZoneAction::Reset, device))
    }

    fn report(&mut self, device: usize, at: u64) -> Result<onefold_zoned::ZoneReport, IoFailed> {
        let (device, _) = self.device(device).ok_or(IoFailed::Error)?;
        let zone = zone_of(device, at).ok_or(IoFailed::Error)?;
        let zns = device.zns().ok_or(IoFailed::Error)?;
        let info = zns.zone(zone).ok_or(IoFailed::Error)?;
        let condition = match info.state {
            ZoneState::ReadOnly => Condition::ReadOnly,
            ZoneState::Offline => Condition::Offline,
            _ => Condition::Good,
        };
        let end = info.start + u64::from(zns.config().zone_blocks);
        let written = narrow(info.write_pointer.unwrap_or(end) - info.start);
        Ok(onefold_zoned::ZoneReport { condition, written })
    }
}

fn zone_of(device: &Device, at: u64) -> Option<ZoneId> {
    device.zone_blocks().map(|blocks| ZoneId::new(narrow(at / u64::from(blocks))))
}
