//! Journals of file systems on a volume: whether they are looked for, and what is known of them.

use onefold_format::volume::{VolumeLabel, VolumeMode};
use onefold_journal::{Detector, Range, Remark, Setting};
use onefold_volume::{JournalStreams, Volume};

use super::error::VolumeError;

/// What becomes of the journals of file systems on a volume of mode `log`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Journals {
    /// On zones they have log segments of their own, and are found by reading and watching; else
    /// they are data.
    #[default]
    OnZones,
    /// They are data.
    Off,
    /// They have log segments of their own.
    Set(Setting),
}

impl Journals {
    /// Where to look on a volume; `None`: nowhere.
    pub(super) fn setting(&self, label: &VolumeLabel) -> Result<Option<Setting>, VolumeError> {
        let is_log = label.mode == VolumeMode::Log;
        let zoned = label.devices.iter().any(|device| device.zone_blocks > 0);
        match self {
            Self::OnZones => Ok((zoned && is_log).then_some(Setting::Detect)),
            Self::Off => Ok(None),
            Self::Set(setting) if is_log => Ok(Some(setting.clone())),
            Self::Set(_) => {
                let what = "has no log segments of their own for journals: leave out --journal";
                Err(VolumeError::Mode { mode: label.mode.name(), what })
            }
        }
    }
}

/// How an engine runs whose journals are looked for, or not.
pub(super) const fn streams(setting: Option<&Setting>) -> JournalStreams {
    match setting {
        Some(_) => JournalStreams::Apart,
        None => JournalStreams::Off,
    }
}

/// What is known of journals on a served volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalDetails {
    /// What the detector found.
    pub ranges: Vec<Range>,
    /// What it found that gives no range.
    pub remarks: Vec<Remark>,
    /// Log segments of the journal set.
    pub segments: u32,
}

impl JournalDetails {
    pub(super) fn of(detector: &Detector, volume: &Volume) -> Self {
        Self {
            ranges: detector.ranges().to_vec(),
            remarks: detector.remarks().to_vec(),
            segments: volume.journal_segments(),
        }
    }
}
