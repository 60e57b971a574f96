//! Image files: making them, opening them, their label.
//!
//! 1. A file without a whole label is no image: the label is written last when an image is made.
//! 2. The two copies of the label are written in turn, so that one of them is whole at any time.
//! 3. Before a device takes its first request its label says that it was not shut down cleanly. The
//!    flag only tells what to expect: recovery runs in any case.

mod error;
mod kind;
mod layout;
mod learnt;
mod lifetime;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use onefold_format::{
    FEATURE_CONVENTIONAL, FEATURE_ZONES, ImageError, ImageLabel, LABEL_BYTES, Lifetime,
};
use onefold_units::convert::u64_from;

use crate::backing::{self, Access, Backing};
pub use error::DeviceError;
pub use kind::DeviceKind;
pub(crate) use layout::FileLayout;
pub use lifetime::KeptLifetime;
pub(crate) use lifetime::{Counting, FlashCounts, Ledger};
use lifetime::{Found, from_now};

/// An open and locked image file.
#[derive(Debug)]
pub struct Image {
    path: PathBuf,
    label: ImageLabel,
    layout: FileLayout,
    backing: Arc<Backing>,
    lifetime: Found,
}

impl Image {
    /// Makes an image of a blank device. `config` is what the device is built from, `text` the
    /// canonical form of the same configuration, which the label carries.
    ///
    /// # Errors
    /// Whatever is at `path` already stays as it is. After any other error no file is left.
    pub fn create(
        path: &Path,
        config: &impl DeviceKind,
        text: String,
    ) -> Result<Self, DeviceError> {
        let label = blank_label(path, config, text)?;
        let layout = FileLayout::new(&label).ok_or(DeviceError::TooLarge)?;
        let backing = Backing::create_new(path).map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => DeviceError::Exists { path: path.to_owned() },
            _ => io_error(path, "create")(source),
        })?;
        let mut image = Self {
            path: path.to_owned(),
            label,
            layout,
            backing: backing.into(),
            lifetime: Found::NOTHING,
        };
        let made = image.write_blank();
        if made.is_err() {
            // Only what was made here goes; the first error is what counts.
            let _ = std::fs::remove_file(path);
        }
        made.map(|()| image)
    }

    /// Whether an image of `config` could be made.
    ///
    /// # Errors
    /// What does not fit together.
    pub fn can_create(path: &Path, config: &impl DeviceKind) -> Result<(), DeviceError> {
        config.describe(path).map(drop)
    }

    fn write_blank(&mut self) -> Result<(), DeviceError> {
        let failed = |action| io_error(&self.path, action);
        self.backing.try_lock(Access::Exclusive).map_err(failed("lock"))?;
        // Holes read as zeroes, which is what an erased device is on file.
        self.backing.set_size(self.layout.bytes).map_err(failed("size"))?;
        self.backing.sync().map_err(failed("write"))?;
        backing::sync_directory_of(&self.path).map_err(failed("write the directory of"))?;
        // Made durable by what comes before the label.
        self.ledger().save(&from_now()).map_err(failed("write"))?;
        // Both copies, so that one whole label is left if the first update is cut.
        self.write_label(true)?;
        self.write_label(true)
    }

    /// Opens an image and locks it.
    ///
    /// # Errors
    /// It is in use, no image, from another version, damaged or truncated. Nothing is changed.
    pub fn open(path: &Path, access: Access) -> Result<Self, DeviceError> {
        let backing = Backing::open(path, access).map_err(io_error(path, "open"))?;
        if !backing.try_lock(access).map_err(io_error(path, "lock"))? {
            return Err(DeviceError::Busy { path: path.to_owned() });
        }
        // With the lock: whoever makes the image has it while it grows, and it would pass for truncated.
        let size = backing.size().map_err(io_error(path, "open"))?;
        let Some(found) = size else {
            return Err(DeviceError::NotAFile { path: path.to_owned() });
        };
        let label = read_label(path, &backing)?;
        let damaged = || DeviceError::Labels { path: path.to_owned() };
        let layout = FileLayout::new(&label).ok_or_else(damaged)?;
        let expected = if label.counts { layout.bytes } else { layout.lifetime };
        if found < expected {
            return Err(DeviceError::Truncated { path: path.to_owned(), found, expected });
        }
        let lifetime = Found::read(&backing, &layout, &label).map_err(io_error(path, "read"))?;
        Ok(Self { path: path.to_owned(), label, layout, backing: backing.into(), lifetime })
    }

    /// The lifetime counters of an image that somebody has open, as they were saved last.
    ///
    /// # Errors
    /// The file cannot be read, or is no image.
    pub fn saved_lifetime(path: &Path) -> Result<KeptLifetime, DeviceError> {
        let backing = Backing::open(path, Access::ReadOnly).map_err(io_error(path, "open"))?;
        let label = read_label(path, &backing)?;
        let damaged = || DeviceError::Labels { path: path.to_owned() };
        let layout = FileLayout::new(&label).ok_or_else(damaged)?;
        let found = Found::read(&backing, &layout, &label).map_err(io_error(path, "read"))?;
        Ok(found.kept)
    }

    /// Where the image is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The label; [`ImageLabel::config`] is the configuration to build the device from.
    #[must_use]
    pub const fn label(&self) -> &ImageLabel {
        &self.label
    }

    /// The lifetime counters as they were found.
    #[must_use]
    pub const fn lifetime(&self) -> KeptLifetime {
        self.lifetime.kept
    }

    /// Size of the file in bytes, once it was opened for writing.
    #[must_use]
    pub const fn file_bytes(&self) -> u64 {
        self.layout.bytes
    }

    /// Bytes the file takes on disk.
    pub fn allocated_bytes(&self) -> Result<u64, DeviceError> {
        self.backing.allocated().map_err(io_error(&self.path, "read"))
    }

    pub(crate) const fn layout(&self) -> &FileLayout {
        &self.layout
    }

    pub(crate) fn backing(&self) -> Arc<Backing> {
        Arc::clone(&self.backing)
    }

    /// Checks that a device built from `config` is the one the label describes.
    pub(crate) fn expect(&self, config: &impl DeviceKind) -> Result<(), DeviceError> {
        let expected = config.describe(&self.path)?;
        let label = &self.label;
        let has = |features: u32, one: u32| u64::from(features & one > 0);
        let (found, made) = (label.features, expected.features);
        let pairs = [
            ("zoned namespaces", has(found, FEATURE_ZONES), has(made, FEATURE_ZONES)),
            (
                "groups of conventional zones",
                has(found, FEATURE_CONVENTIONAL),
                has(made, FEATURE_CONVENTIONAL),
            ),
            ("B per mapping unit", label.unit_bytes.into(), expected.unit_bytes.into()),
            ("superblocks", label.superblocks.into(), expected.superblocks.into()),
            ("slots per superblock", label.slots.into(), expected.slots.into()),
            ("B of NVRAM", label.nvram_bytes, expected.nvram_bytes),
            ("B of logical capacity", label.logical_bytes, expected.logical_bytes),
        ];
        match pairs.into_iter().find(|(_, label, config)| label != config) {
            None => Ok(()),
            Some((what, label, config)) => {
                Err(DeviceError::Mismatch { path: self.path.clone(), what, label, config })
            }
        }
    }

    fn ledger(&self) -> Ledger {
        Ledger::new(self.backing(), &self.layout, &self.label, self.lifetime)
    }

    /// Writes that the device is in use, and the features that it may have from now on. Those that are new
    /// are in both copies then: a build that does not know them would take the copy without. The lifetime counters have
    /// this opening then.
    pub(crate) fn begin_use(
        &mut self,
        config: &impl DeviceKind,
    ) -> Result<(Counting, Ledger), DeviceError> {
        let features = config.features();
        let knows = self.label.features & features == features;
        if self.lifetime.kept == KeptLifetime::Damaged {
            let path = self.path.display();
            tracing::warn!(
                "{path}: both copies of the lifetime counters are damaged; they start anew at zero"
            );
        }
        let counting = Counting::begin(self.lifetime.kept, self.label.clean);
        let mut ledger = self.ledger();
        self.make_long_enough()?;
        // A host that takes no record leaves the counters as they were, and what keeps it from that matters elsewhere.
        let _ = ledger.save(&counting.total(FlashCounts::default()));
        (self.label.features, self.label.counts) = (self.label.features | features, true);
        self.write_label(false)?;
        ledger.synced();
        if !knows {
            self.write_label(false)?;
        }
        Ok((counting, ledger))
    }

    /// An image of a build without lifetime counters ends before them.
    fn make_long_enough(&self) -> Result<(), DeviceError> {
        let failed = |action| io_error(&self.path, action);
        let size = self.backing.size().map_err(failed("read"))?;
        if size.is_some_and(|bytes| bytes < self.layout.bytes) {
            self.backing.set_size(self.layout.bytes).map_err(failed("size"))?;
        }
        Ok(())
    }

    /// Writes that the device is not in use any more, and was left in good order.
    pub(crate) fn end_use(
        &mut self,
        ledger: &mut Ledger,
        counters: &Lifetime,
    ) -> Result<(), DeviceError> {
        let saved = ledger.save(counters);
        self.write_label(true)?;
        saved.map_err(io_error(&self.path, "write the lifetime counters of"))
    }

    /// Writes the next generation of the label and makes it durable, after everything before it.
    fn write_label(&mut self, clean: bool) -> Result<(), DeviceError> {
        let generation = self.label.generation + 1;
        let label = ImageLabel { generation, clean, ..self.label.clone() };
        let bytes = label.encode().ok_or_else(|| long_config(&label.config))?;
        let offset = (generation % 2) * u64_from(LABEL_BYTES);
        let write = || {
            self.backing.sync_for_good()?;
            self.backing.write_at(offset, &bytes)?;
            self.backing.sync_for_good()
        };
        write().map_err(io_error(&self.path, "write the label of"))?;
        self.label = label;
        Ok(())
    }
}

fn blank_label(
    path: &Path,
    config: &impl DeviceKind,
    text: String,
) -> Result<ImageLabel, DeviceError> {
    // Tells everything that does not fit together before there is a file.
    config.check(path)?;
    let mut uuid = [0; 16];
    rustix::rand::getrandom(&mut uuid[..], rustix::rand::GetRandomFlags::empty())
        .map_err(|error| io_error(path, "find a random identity for")(error.into()))?;
    // Version 4, variant 1 of RFC 9562.
    uuid[6] = uuid[6] & 0x0F | 0x40;
    uuid[8] = uuid[8] & 0x3F | 0x80;
    let label = ImageLabel { uuid, clean: true, config: text, ..config.describe(path)? };
    if label.encode().is_none() {
        return Err(long_config(&label.config));
    }
    Ok(label)
}

fn long_config(config: &str) -> DeviceError {
    DeviceError::LongConfig { bytes: config.len(), max: LABEL_BYTES - 80 }
}

/// The newest whole copy of the label. A whole one with features that this build does not know counts
/// as newest: the other is from before them.
fn read_label(path: &Path, backing: &Backing) -> Result<ImageLabel, DeviceError> {
    let copies = [0, 1].map(|copy| read_copy(backing, copy));
    match copies {
        [Err(LabelError::Format(source @ ImageError::Features { .. })), _]
        | [_, Err(LabelError::Format(source @ ImageError::Features { .. }))] => {
            Err(DeviceError::Label { path: path.to_owned(), source })
        }
        [Ok(first), Ok(second)] if second.generation > first.generation => Ok(second),
        [Ok(whole), _] | [_, Ok(whole)] => Ok(whole),
        [Err(first), Err(second)] => Err(refusal(path, first, second)),
    }
}

/// What to say if no copy can be used: what both agree on, or the one that says more than "damaged".
fn refusal(path: &Path, first: LabelError, second: LabelError) -> DeviceError {
    let path = path.to_owned();
    match (first, second) {
        (LabelError::Io(source), _) | (_, LabelError::Io(source)) => {
            DeviceError::Io { path, action: "read the label of", source }
        }
        (LabelError::Format(first), LabelError::Format(second)) => match (first, second) {
            (source @ ImageError::Version { .. }, _)
            | (_, source @ ImageError::Version { .. })
            | (source @ ImageError::NotAnImage, ImageError::NotAnImage) => {
                DeviceError::Label { path, source }
            }
            _ => DeviceError::Labels { path },
        },
    }
}

enum LabelError {
    Io(io::Error),
    Format(ImageError),
}

fn read_copy(backing: &Backing, copy: u32) -> Result<ImageLabel, LabelError> {
    let mut bytes = vec![0xFF; LABEL_BYTES];
    match backing.read_at(u64::from(copy) * u64_from(LABEL_BYTES), &mut bytes) {
        // A file that is too short holds no label.
        Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => Err(LabelError::Io(error)),
        _ => ImageLabel::decode(&bytes, copy).map_err(LabelError::Format),
    }
}

pub(crate) fn io_error(path: &Path, action: &'static str) -> impl Fn(io::Error) -> DeviceError {
    move |source| DeviceError::Io { path: path.to_owned(), action, source }
}
