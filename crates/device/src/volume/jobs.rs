//! What a volume asks of its backing, as a thread carries it out.

use onefold_units::PAGE_BYTES;
use onefold_units::convert::index;
use onefold_volume::{Buffer, Engine, Io, IoFailed, IoKind, Relocation, Stream, ZoneStatus};

use super::VolumeBacking;

/// A request to the backing with its bytes.
pub(super) struct Job {
    pub(super) io: Io,
    pub(super) bytes: Buffer,
    /// What a remap is about.
    list: Vec<Relocation>,
    /// The stream of a write, for a device that places streams apart.
    stream: u16,
    /// What the backing said of a zone.
    told: Option<ZoneStatus>,
    /// How it ended.
    pub(super) result: Result<(), IoFailed>,
}

impl Job {
    /// Copies what is to be written, so that nobody waits for the volume meanwhile.
    pub(super) fn new(io: Io, volume: &dyn Engine) -> Self {
        let len = index(io.blocks) * usize::try_from(PAGE_BYTES).unwrap_or(4096);
        let mut bytes = match io.kind {
            IoKind::Write | IoKind::Read => Buffer::new(len),
            IoKind::Flush
            | IoKind::Trim
            | IoKind::Remap
            | IoKind::Reset
            | IoKind::Finish
            | IoKind::Report => Buffer::default(),
        };
        if io.kind == IoKind::Write {
            bytes.bytes_mut().copy_from_slice(&volume.buffer(io.id)[..len]);
        }
        let list = match io.kind {
            IoKind::Remap => volume.relocations(io.id),
            _ => Vec::new(),
        };
        let stream = volume.as_log().and_then(|log| log.stream(io.id)).map_or(0, Stream::code);
        Self { io, bytes, list, stream: stream.into(), told: None, result: Ok(()) }
    }

    /// Hands over what was read, or said of a zone.
    pub(super) fn give_back(&self, volume: &mut dyn Engine) {
        if self.io.kind == IoKind::Read {
            volume.buffer_mut(self.io.id).copy_from_slice(self.bytes.bytes());
        }
        if let Some(status) = self.told {
            volume.zone_reported(self.io.id, status);
        }
    }
}

/// Carries out a request.
pub(super) fn execute(backing: &VolumeBacking, job: &mut Job) -> Result<(), IoFailed> {
    let at = u64::from(job.io.at.raw());
    match job.io.kind {
        IoKind::Read => backing.read(at, job.bytes.bytes_mut()),
        IoKind::Write => backing.write_to_stream(at, job.bytes.bytes(), job.stream),
        IoKind::Flush => backing.flush(),
        IoKind::Trim => backing.trim(at, job.io.blocks.into()),
        IoKind::Remap => backing.remap(&job.list),
        IoKind::Reset => backing.reset(job.io.zone()),
        IoKind::Finish => backing.finish(job.io.zone()),
        IoKind::Report => backing.zone(job.io.zone()).map(|zone| job.told = Some(zone)),
    }
}
