//! Prints what reclaim does under recorded requests, in the words of the kernel target, to be laid beside its own log
//! (`scripts/guest.sh fidelity`): regular device of 1 GiB, zoned one of 4 GiB, zones of 64 MiB. Devices answer at once.
//!
//! Standard input has a line per request: time in ms, operation (w, r, d, f), first block, blocks. Behind the actions there is a
//! line with the MiB written to each device and the flushes each got, formatting left out.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};

use onefold_units::Nanos;
use onefold_units::convert::{float, narrow, u32_from};
use onefold_zoned::{
    Action, Backing, Condition, DeviceZones, Geometry, Identity, IoFailed, Move, Options, Request,
    Volume, ZoneReport, execute, format, mount,
};

const ZONE_BLOCKS: u32 = 16384;
const MS: u64 = 1_000_000;

/// Devices that keep metadata and write pointers; without bytes there is nothing else.
#[derive(Default)]
struct Devices {
    kept: BTreeMap<(usize, u64), Vec<u8>>,
    written: BTreeMap<u64, u32>,
}

impl Backing for Devices {
    fn read(&mut self, device: usize, at: u64, bytes: &mut [u8]) -> Result<(), IoFailed> {
        for (at, bytes) in (at..).zip(bytes.chunks_mut(4096)) {
            match self.kept.get(&(device, at)) {
                Some(kept) => bytes.copy_from_slice(kept),
                None => bytes.fill(0),
            }
        }
        Ok(())
    }

    fn write(&mut self, device: usize, at: u64, bytes: &[u8]) -> Result<(), IoFailed> {
        for (at, bytes) in (at..).zip(bytes.chunks(4096)) {
            self.kept.insert((device, at), bytes.to_vec());
        }
        if device == 1 {
            *self.written.entry(at / u64::from(ZONE_BLOCKS)).or_default() +=
                u32_from(bytes.len() / 4096);
        }
        Ok(())
    }

    fn flush(&mut self, _device: usize) -> Result<(), IoFailed> {
        Ok(())
    }

    fn reset(&mut self, _device: usize, at: u64) -> Result<(), IoFailed> {
        self.written.remove(&(at / u64::from(ZONE_BLOCKS)));
        Ok(())
    }

    fn report(&mut self, _device: usize, at: u64) -> Result<ZoneReport, IoFailed> {
        let written = self.written.get(&(at / u64::from(ZONE_BLOCKS)));
        Ok(ZoneReport { condition: Condition::Good, written: written.copied().unwrap_or(0) })
    }
}

struct Replay {
    volume: Volume,
    devices: Devices,
    /// The copy that was printed last, and how many had begun then.
    printed: (Option<Move>, u64),
    out: Vec<u8>,
}

impl Replay {
    /// Carries out all that the volume asks for, and prints what reclaim begins meanwhile.
    fn drive(&mut self, now: Nanos) {
        while let Some(io) = self.volume.poll_io() {
            self.print_move();
            let result = execute(&mut self.volume, &mut self.devices, io);
            self.volume.completed(now, io.id, result);
        }
        while let Some(done) = self.volume.poll_done() {
            done.result.expect("requests of the guest succeeded there");
        }
    }

    fn print_move(&mut self) {
        let begun = Action::ALL.map(|action| self.volume.stats().reclaims(action).started);
        let begun = (self.volume.moves().next(), begun.iter().sum());
        let Some(moved) = begun.0.filter(|_| begun != self.printed) else { return };
        self.printed = begun;
        let Move { action, chunk, source, target } = moved;
        let (from, to) = match action {
            Action::Empty | Action::RndData => ("cache", "seq"),
            Action::Buf => ("buf", "data"),
            Action::SeqData => ("data", "buf"),
        };
        let (from_weight, to_weight) = (self.volume.weight(source), self.volume.weight(target));
        let (source, target) = (source.raw(), target.raw());
        write!(self.out, "Chunk {chunk}, move {from} zone {source} (weight {from_weight}) ")
            .unwrap();
        write!(self.out, "to {to} zone {target}").unwrap();
        let end = if to == "seq" { String::new() } else { format!(" (weight {to_weight})") };
        writeln!(self.out, "{end}").unwrap();
    }

    fn advance(&mut self, end: Nanos) {
        self.drive(end);
        while let Some(due) = self.volume.poll_timeout().filter(|due| *due <= end) {
            self.volume.handle_timeout(due);
            self.drive(due);
        }
    }
}

fn request(op: &str, lba: u64, blocks: u32) -> Request {
    match op {
        "w" => Request::Write { lba, blocks, fua: false, data: Vec::new() },
        "r" => Request::Read { lba, blocks },
        "d" => Request::Discard { lba, blocks },
        "f" => Request::Flush,
        other => panic!("operation {other}: expected w, r, d or f"),
    }
}

fn main() {
    let zones = |conventional, sequential| DeviceZones { conventional, sequential };
    let geometry = Geometry::new(ZONE_BLOCKS, vec![zones(16, 0), zones(0, 64)]).unwrap();
    let mut devices = Devices::default();
    let identity = Identity { label: [0; 32], uuid: [1; 16], device_uuids: vec![[2; 16]; 2] };
    format(&mut devices, &geometry, &identity).unwrap();
    let options = Options { kernel_flush: true, bytes: false, ..Options::default() };
    let (volume, _) = mount(&mut devices, &geometry, options, Nanos::ZERO).unwrap();
    let mut replay = Replay { volume, devices, printed: (None, 0), out: Vec::new() };
    for (tag, line) in (0..).zip(std::io::stdin().lock().lines()) {
        let line = line.unwrap();
        let fields: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| fields[at].parse::<u64>().unwrap();
        let now = Nanos::new(number(0) * MS);
        replay.advance(now);
        let request = request(fields[1], number(2), narrow(number(3)));
        replay.volume.submit(now, tag, request).unwrap();
        replay.drive(now);
    }
    let mib = |blocks: u64| float(blocks) / 256.0;
    for device in &replay.volume.stats().devices {
        let (mib, flushes) = (mib(device.sent_total()), device.flushes_sent);
        writeln!(replay.out, "{mib:.1} MiB, {flushes} flushes").unwrap();
    }
    std::io::stdout().write_all(&replay.out).unwrap();
}
