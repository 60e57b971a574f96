//! What the kernel says about a block device (sysfs-block of the kernel's ABI documents).

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

/// Attributes of `queue`, as they are shown.
const ATTRIBUTES: [&str; 10] = [
    "logical_block_size",
    "physical_block_size",
    "minimum_io_size",
    "optimal_io_size",
    "discard_granularity",
    "discard_max_bytes",
    "write_cache",
    "rotational",
    "zoned",
    "chunk_sectors",
];

/// What is known of the device that a path names or lies on.
#[derive(Clone, Debug, Default)]
pub(super) struct Hints {
    /// Name of the device, such as `nvme0n1`.
    pub(super) device: Option<String>,
    pub(super) queue: Map<String, Value>,
}

impl Hints {
    pub(super) fn of(path: &Path) -> Self {
        let Some(queue) = queue_of(path) else { return Self::default() };
        let device = queue.parent().and_then(|device| device.file_name());
        let read = |name: &&str| {
            let text = fs::read_to_string(queue.join(name)).ok()?;
            let text = text.trim();
            let value = text.parse::<u64>().map_or_else(|_| text.into(), Value::from);
            Some(((*name).to_owned(), value))
        };
        Self {
            device: device.map(|name| name.to_string_lossy().into_owned()),
            queue: ATTRIBUTES.iter().filter_map(read).collect(),
        }
    }

    pub(super) fn is_zoned(&self) -> bool {
        self.queue.get("zoned").and_then(Value::as_str).is_some_and(|zoned| zoned != "none")
    }

    pub(super) fn is_rotational(&self) -> bool {
        self.queue.get("rotational") == Some(&1.into())
    }

    /// The smallest write that is not slow, as the device says (NPWG of NVMe); 512 or 4096 says nothing.
    pub(super) fn preferred_write(&self) -> Option<u64> {
        let size = self.queue.get("minimum_io_size")?.as_u64()?;
        (size > 4096).then_some(size)
    }
}

/// The queue of the disk that a block device is or is a part of, or that a file lies on.
fn queue_of(path: &Path) -> Option<PathBuf> {
    let metadata = fs::metadata(path).ok()?;
    let number =
        if metadata.file_type().is_block_device() { metadata.rdev() } else { metadata.dev() };
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let device = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()?;
    // A partition lies in the folder of its disk.
    let candidates = [device.clone(), device.parent()?.to_owned()];
    candidates.into_iter().map(|device| device.join("queue")).find(|queue| queue.is_dir())
}
