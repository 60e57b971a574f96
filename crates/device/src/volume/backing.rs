//! What a volume lies on.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use onefold_format::REMAP_RANGES_MAX;
use onefold_units::convert::{index, index64, narrow, u32_from};
use onefold_units::{PAGE_BYTES, ZoneId};
use onefold_volume::{Buffer, IoFailed, Piece, ReadPlan, Relocation, ZoneReport, ZoneStatus};

use super::access::DirectFile;
use super::error::VolumeError;
use super::{kernel, unit, zones};
use crate::block::{BlockDevice, Due, to_layer_above};
use crate::mailbox::{Client, MailboxError, RemapFlags, VectorRange};
use crate::ssd::SsdDevice;
use crate::write_log::{Keeps, WriteLog, WriteLogError};
use crate::zoned::ZonedDevice;

/// Waits until the modelled SSD would answer, if its time is modelled. Like the device that it stands for it keeps the thread that
/// asked, so no more requests are under way than there are threads that ask.
fn wait(due: Due) {
    if let Some(left) = due.and_then(|due| due.checked_duration_since(Instant::now())) {
        std::thread::sleep(left);
    }
}

/// All pauses of an opening or a check: on a backing that is down none takes longer for each request.
const PATIENCE: Duration = Duration::from_secs(5);

/// A file, a block device with or without zones, an emulated SSD in the same process, of blocks or of zones, or another volume
/// there.
#[derive(Clone)]
pub struct VolumeBacking {
    kind: Kind,
    /// Keeps all that is written.
    log: Option<Arc<WriteLog>>,
    /// Bytes of it that are used at most.
    limit: u64,
    /// How long an opening still waits for a backing that fails.
    pub(super) patience: Duration,
}

#[derive(Clone)]
enum Kind {
    File(Arc<DirectFile>),
    Ssd(SsdDevice),
    Zoned(ZonedDevice),
    Layer(Arc<dyn Layer>),
}

/// A volume that is open, as the layer that lies on it sees it.
pub trait Layer: BlockDevice {
    /// Ends it in good order, and then what it lies on.
    ///
    /// # Errors
    /// Something below failed; what was flushed before is safe.
    fn close(&self) -> Result<(), VolumeError>;
}

impl VolumeBacking {
    const fn of(kind: Kind) -> Self {
        Self { kind, log: None, limit: u64::MAX, patience: PATIENCE }
    }

    /// The same, with all that is written from now on in a log: in a new file, in the format of dm-log-writes. Requests to it go by threads
    /// then, and blocks are not remapped.
    ///
    /// # Errors
    /// It has zones, for which the format has no words; or the file is there already, or cannot be written.
    pub fn with_write_log(self, path: &Path) -> Result<Self, VolumeError> {
        if !matches!(self.zones(), Ok(None)) {
            return Err(WriteLogError::Untold("zones, which this volume lies on").into());
        }
        Ok(Self { log: Some(Arc::new(WriteLog::create(path, Keeps::Covered)?)), ..self })
    }

    /// The same, of which no more than the first `bytes` are used. For what has no zones.
    #[must_use]
    pub fn limited_to(self, bytes: u64) -> Self {
        Self { limit: bytes, ..self }
    }

    /// The log of what is written, if one is kept.
    pub(super) fn write_log(&self) -> Option<&WriteLog> {
        self.log.as_deref()
    }

    /// Opens a file or a block device and locks it. Whoever has it open already keeps it.
    ///
    /// # Errors
    /// It does not exist, is in use, or cannot be opened.
    pub fn open(path: &Path, write: bool) -> Result<Self, VolumeError> {
        Ok(Self::of(Kind::File(Arc::new(DirectFile::open(path, write)?))))
    }

    /// Whether another process has a file or block device open to write.
    #[must_use]
    pub fn is_busy(path: &Path) -> bool {
        DirectFile::is_busy(path)
    }

    /// Makes a file of a size, with holes.
    ///
    /// # Errors
    /// Something is there already, or the file system refuses.
    pub fn create(path: &Path, bytes: u64) -> Result<Self, VolumeError> {
        Ok(Self::of(Kind::File(Arc::new(DirectFile::create(path, bytes)?))))
    }

    /// Lies on an emulated SSD.
    #[must_use]
    pub const fn ssd(device: SsdDevice) -> Self {
        Self::of(Kind::Ssd(device))
    }

    /// Lies on an emulated SSD with zones.
    #[must_use]
    pub const fn zoned(device: ZonedDevice) -> Self {
        Self::of(Kind::Zoned(device))
    }

    /// Lies on another volume, which nobody else may use then.
    #[must_use]
    pub fn layer(volume: impl Layer + 'static) -> Self {
        Self::of(Kind::Layer(Arc::new(volume)))
    }

    /// The emulated SSD with a block namespace, if it is one.
    #[must_use]
    pub const fn as_ssd(&self) -> Option<&SsdDevice> {
        match &self.kind {
            Kind::Ssd(device) => Some(device),
            Kind::File(_) | Kind::Zoned(_) | Kind::Layer(_) => None,
        }
    }

    /// The emulated SSD with zones, if it is one.
    #[must_use]
    pub const fn as_zoned(&self) -> Option<&ZonedDevice> {
        match &self.kind {
            Kind::Zoned(device) => Some(device),
            Kind::File(_) | Kind::Ssd(_) | Kind::Layer(_) => None,
        }
    }

    /// The file or block device, if it is one.
    pub(super) const fn as_file(&self) -> Option<&Arc<DirectFile>> {
        match &self.kind {
            Kind::File(file) => Some(file),
            Kind::Ssd(_) | Kind::Zoned(_) | Kind::Layer(_) => None,
        }
    }

    /// For tests: the `first` request to a file from now on, counted from 1, and those after it fail without being carried
    /// out, `count` in all, and no other.
    pub fn fail(&self, first: u64, count: u64) {
        if let Some(file) = self.as_file() {
            file.fail(first, count);
        }
    }

    /// For tests: requests until the last one that is to fail; 0 after it.
    #[must_use]
    pub fn left_before_failure(&self) -> u64 {
        self.as_file().map_or(0, |file| file.left_before_failure())
    }

    /// The unit in which it maps what it stores, in bytes; 4 KiB where it does not tell.
    #[must_use]
    pub fn unit_bytes(&self) -> u64 {
        match &self.kind {
            Kind::File(file) => file.flash().unit_bytes,
            Kind::Ssd(device) => unit::usable(device.unit_bytes()),
            // A zone is written in order, whatever the unit, and a volume maps blocks.
            Kind::Zoned(_) | Kind::Layer(_) => PAGE_BYTES,
        }
    }

    /// Bytes that it erases together where they were written one after the other; `None` where it does not tell.
    #[must_use]
    pub fn superblock_bytes(&self) -> Option<u64> {
        match &self.kind {
            Kind::File(file) => file.flash().superblock_bytes,
            Kind::Ssd(device) => {
                Client::new(device.clone()).caps().ok().map(|caps| caps.superblock_bytes)
            }
            Kind::Zoned(_) | Kind::Layer(_) => None,
        }
    }

    /// Write streams with superblocks of their own that a volume on it can write to: those of an emulated SSD in the same process.
    /// Nothing else carries the stream of a write.
    #[must_use]
    pub fn streams(&self) -> u16 {
        let caps = self.as_ssd().and_then(|device| Client::new(device.clone()).caps().ok());
        caps.map_or(1, |caps| caps.streams.max(1))
    }

    pub(super) fn bytes(&self) -> u64 {
        let all = match &self.kind {
            Kind::File(file) => file.bytes(),
            Kind::Ssd(device) => device.size(),
            Kind::Zoned(device) => zones::blocks(device) * PAGE_BYTES,
            Kind::Layer(volume) => volume.size(),
        };
        all.min(self.limit)
    }

    /// Whether its size follows from something else than the volume that lies on it.
    pub(crate) const fn has_given_size(&self) -> bool {
        self.limit < u64::MAX || !matches!(self.kind, Kind::File(_))
    }

    /// Whole blocks of 4 KiB.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.bytes() / PAGE_BYTES
    }

    /// Gives a file a size in blocks. Anything else has to be as large already, and stays as it is.
    pub(super) fn set_blocks(&self, blocks: u64) -> Result<(), VolumeError> {
        let wanted = blocks * PAGE_BYTES;
        let (what, found) = match &self.kind {
            Kind::File(file) if file.is_regular() => return file.set_bytes(wanted),
            Kind::File(file) => ("the block device", file.bytes()),
            Kind::Ssd(device) => ("the emulated SSD", device.size()),
            Kind::Zoned(device) => ("the emulated SSD", zones::blocks(device) * PAGE_BYTES),
            Kind::Layer(volume) => ("the volume below", volume.size()),
        };
        if wanted <= found { Ok(()) } else { Err(VolumeError::FixedSize { what, found, wanted }) }
    }

    pub(crate) fn read(&self, at: u64, bytes: &mut [u8]) -> Result<(), IoFailed> {
        self.read_now(at, bytes).map(wait)
    }

    /// The same without waiting for an emulated SSD, which may be asked for more meanwhile.
    fn read_now(&self, at: u64, bytes: &mut [u8]) -> Result<Due, IoFailed> {
        match &self.kind {
            Kind::File(file) => file.read(at * PAGE_BYTES, bytes).map(|()| None),
            Kind::Ssd(device) => device.read(at * PAGE_BYTES, bytes).map_err(to_layer_above),
            Kind::Zoned(device) => zones::judge("read", device.read(at, bytes)).map(|()| None),
            Kind::Layer(volume) => volume.read(at * PAGE_BYTES, bytes).map_err(to_layer_above),
        }
    }

    /// Reads pieces, all at once where there is `io_uring`.
    pub(super) fn read_all(&self, pieces: &[Piece]) -> Vec<Result<Buffer, IoFailed>> {
        let bytes = |piece: &Piece| index(piece.blocks) * index64(PAGE_BYTES);
        let mut buffers: Vec<Buffer> =
            pieces.iter().map(|piece| Buffer::new(bytes(piece))).collect();
        let offsets: Vec<u64> = pieces.iter().map(|piece| piece.at * PAGE_BYTES).collect();
        let full = match self.as_file() {
            Some(file) if pieces.len() > 1 => kernel::read_all(file, &offsets, &mut buffers),
            _ => vec![false; pieces.len()],
        };
        let each = buffers.into_iter().zip(pieces).zip(full).map(|((mut buffer, piece), full)| {
            // What came short or not at all is read the usual way, which says what is wrong.
            if !full {
                self.read(piece.at, buffer.bytes_mut())?;
            } else if self.as_file().is_some_and(|file| file.is_to_fail()) {
                return Err(IoFailed::Error);
            }
            Ok(buffer)
        });
        each.collect()
    }

    pub(crate) fn write(&self, at: u64, bytes: &[u8]) -> Result<(), IoFailed> {
        self.write_to_stream(at, bytes, 0)
    }

    /// The same in a stream, which an emulated SSD with several of them places apart.
    pub(super) fn write_to_stream(
        &self,
        at: u64,
        bytes: &[u8],
        stream: u16,
    ) -> Result<(), IoFailed> {
        match &self.kind {
            Kind::Zoned(device) => zones::judge("write", device.write(at, bytes, false)),
            Kind::Ssd(device) => device
                .write_to_stream(at * PAGE_BYTES, bytes, stream)
                .map(wait)
                .map_err(to_layer_above),
            Kind::File(_) | Kind::Layer(_) => self.put(at * PAGE_BYTES, bytes),
        }?;
        if let Some(log) = &self.log {
            log.wrote(at * PAGE_BYTES, bytes, false);
        }
        Ok(())
    }

    /// Writes bytes that need not be whole blocks, which zones cannot take.
    pub(super) fn put(&self, offset: u64, bytes: &[u8]) -> Result<(), IoFailed> {
        match &self.kind {
            Kind::File(file) => file.write(offset, bytes),
            Kind::Ssd(device) => {
                device.write(offset, bytes, false).map(wait).map_err(to_layer_above)
            }
            Kind::Layer(volume) => {
                volume.write(offset, bytes, false).map(wait).map_err(to_layer_above)
            }
            Kind::Zoned(_) => Err(IoFailed::Error),
        }
    }

    /// Makes bytes read as zeroes, which those of zones do not.
    pub(super) fn clear(&self, offset: u64, len: u64) -> Result<(), IoFailed> {
        match &self.kind {
            Kind::File(file) => file.zero(offset, len),
            Kind::Ssd(device) => device.trim(offset, len).map(wait).map_err(to_layer_above),
            Kind::Layer(volume) => volume.trim(offset, len).map(wait).map_err(to_layer_above),
            Kind::Zoned(_) => Err(IoFailed::Error),
        }
    }

    pub(crate) fn flush(&self) -> Result<(), IoFailed> {
        let covered = self.log.as_ref().map(|log| (log, log.covered()));
        let flushed = match &self.kind {
            Kind::File(file) => file.flush(),
            Kind::Ssd(device) => device.flush().map(wait).map_err(to_layer_above),
            Kind::Layer(volume) => volume.flush().map(wait).map_err(to_layer_above),
            Kind::Zoned(device) => zones::judge("flush", device.flush()),
        };
        match covered {
            Some((log, covered)) if flushed.is_ok() => log.flushed(covered),
            Some((log, covered)) => log.unflushed(covered),
            None => {}
        }
        flushed
    }

    pub(super) fn trim(&self, at: u64, blocks: u64) -> Result<(), IoFailed> {
        let (offset, len) = (at * PAGE_BYTES, blocks * PAGE_BYTES);
        match &self.kind {
            Kind::File(file) => file.trim(offset, len),
            Kind::Ssd(device) => device.trim(offset, len).map(wait).map_err(to_layer_above),
            Kind::Layer(volume) => volume.trim(offset, len).map(wait).map_err(to_layer_above),
            // Of conventional zones alone: others are reset as a whole.
            Kind::Zoned(device) => zones::judge("trim", device.deallocate(at, narrow(blocks))),
        }?;
        if let Some(log) = &self.log {
            log.trimmed(offset, len);
        }
        Ok(())
    }

    /// What the backing says of its zones now; `None` if it has none.
    pub(crate) fn zones(&self) -> Result<Option<ZoneReport>, IoFailed> {
        match &self.kind {
            Kind::File(file) => file.zones(),
            Kind::Ssd(_) | Kind::Layer(_) => Ok(None),
            Kind::Zoned(device) => zones::report(device).map(Some),
        }
    }

    /// The same of one zone.
    pub(super) fn zone(&self, zone: ZoneId) -> Result<ZoneStatus, IoFailed> {
        match &self.kind {
            Kind::File(file) => file.zone(zone),
            Kind::Ssd(_) | Kind::Layer(_) => Err(IoFailed::Error),
            Kind::Zoned(device) => zones::status(device, zone),
        }
    }

    pub(crate) fn reset(&self, zone: ZoneId) -> Result<(), IoFailed> {
        match &self.kind {
            Kind::File(file) => file.reset(zone),
            Kind::Ssd(_) | Kind::Layer(_) => Err(IoFailed::Error),
            Kind::Zoned(device) => zones::reset(device, zone),
        }
    }

    pub(super) fn finish(&self, zone: ZoneId) -> Result<(), IoFailed> {
        match &self.kind {
            Kind::File(file) => file.finish(zone),
            Kind::Ssd(_) | Kind::Layer(_) => Err(IoFailed::Error),
            Kind::Zoned(device) => zones::finish(device, zone),
        }
    }

    /// Whether it can let single blocks hold what others hold. An emulated SSD can if it has a log of remaps; then it also
    /// knows atomic ones. A log of writes has no words for that.
    pub(super) fn remaps(&self) -> bool {
        let (Kind::Ssd(device), None) = (&self.kind, &self.log) else { return false };
        Client::new(device.clone()).caps().is_ok_and(|caps| {
            u64::from(caps.granularity_bytes) == PAGE_BYTES
                && caps.modes.contains(RemapFlags::ATOMIC)
        })
    }

    /// Lets blocks hold what others hold. What the device would have to copy it is to leave to the volume.
    pub(super) fn remap(&self, list: &[Relocation]) -> Result<(), IoFailed> {
        let Kind::Ssd(device) = &self.kind else { return Err(IoFailed::Error) };
        let mut client = Client::new(device.clone());
        let range = |one: &Relocation| VectorRange {
            dst: one.to.raw().into(),
            src: one.from.raw().into(),
            len: one.blocks,
        };
        let ranges: Vec<_> = list.iter().map(range).collect();
        let mut remap = |part: &[VectorRange]| {
            // Once more does no harm, so it needs no number.
            let done = client.remap(RemapFlags::NO_FALLBACK, Some(0), part)?;
            Ok::<_, MailboxError>(done.results.iter().all(|result| result.skipped == 0))
        };
        for part in ranges.chunks(REMAP_RANGES_MAX) {
            match remap(part) {
                Ok(true) => {}
                Ok(false) => return Err(IoFailed::Error),
                Err(error) => {
                    tracing::warn!(%error, "the cleaner copies what could not be remapped");
                    return Err(IoFailed::Error);
                }
            }
        }
        Ok(())
    }

    /// Reads the runs of a plan into the buffer of its request. Gives the number of blocks that stay damaged.
    pub(super) fn fetch(&self, plan: &ReadPlan, buffer: &mut [u8]) -> Result<(), u32> {
        let block = index64(PAGE_BYTES);
        for attempt in 0..2 {
            let (mut failed, mut due) = (0, None);
            for run in plan.runs() {
                let bytes =
                    &mut buffer[index(run.block) * block..index(run.block + run.blocks) * block];
                match self.read_now(run.at.raw().into(), bytes) {
                    Ok(one) => due = due.max(one),
                    Err(_) => failed += 1,
                }
            }
            wait(due);
            let damaged = u32_from(plan.complete(buffer).len());
            if failed == 0 && damaged == 0 {
                return Ok(());
            }
            if attempt == 1 {
                return Err(damaged.max(failed));
            }
        }
        Ok(())
    }

    /// Ends what lies below in good order.
    ///
    /// # Errors
    /// The image could not be closed cleanly; it recovers when it is opened again. Or not all that was written is in the log.
    pub fn close(&self) -> Result<(), VolumeError> {
        match &self.kind {
            Kind::File(file) => {
                file.unlock();
                Ok(())
            }
            Kind::Ssd(device) => device.close().map_err(VolumeError::Ssd),
            Kind::Zoned(device) => device.close().map_err(VolumeError::Ssd),
            Kind::Layer(volume) => volume.close(),
        }?;
        match &self.log {
            Some(log) => Ok(log.finish().map(drop)?),
            None => Ok(()),
        }
    }
}
