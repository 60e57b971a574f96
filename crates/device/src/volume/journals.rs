//! Journals of file systems on a volume: whether they are looked for, and the detector that does
//! it.

use std::collections::VecDeque;

use onefold_format::volume::{VolumeLabel, VolumeMode};
use onefold_journal::{Detector, Output, Range, Remark, Setting};
use onefold_units::{Lba, Nanos};
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

/// The detector of a volume.
pub(super) struct Watch {
    pub(super) detector: Detector,
    pub(super) setting: Setting,
    pub(super) blocks: u64,
    /// Blocks that it asked for.
    pub(super) wanted: VecDeque<Lba>,
    /// Until when the thread sleeps if nothing comes; `None`: for as long as it takes.
    pub(super) until: Option<Nanos>,
}

impl Watch {
    pub(super) fn new(blocks: u64, setting: Setting) -> Self {
        let detector = Detector::new(blocks, setting.clone(), Nanos::ZERO);
        Self { detector, setting, blocks, wanted: VecDeque::new(), until: None }
    }

    pub(super) fn details(&self, volume: &Volume) -> JournalDetails {
        JournalDetails {
            ranges: self.detector.ranges().to_vec(),
            remarks: self.detector.remarks().to_vec(),
            segments: volume.journal_segments(),
        }
    }

    /// Takes what the detector has to say. Whether the thread has something to do sooner than it
    /// knows.
    pub(super) fn listen(&mut self, volume: Option<&mut Volume>) -> bool {
        let mut is_changed = false;
        while let Some(output) = self.detector.poll_output() {
            match output {
                Output::Read(lba) => self.wanted.push_back(lba),
                Output::Changed => is_changed = true,
            }
        }
        if let Some(volume) = volume.filter(|_| is_changed) {
            volume.set_journal(self.detector.ranges());
        }
        let due = self.detector.poll_timeout();
        let sooner = due.is_some_and(|due| self.until.is_none_or(|until| due < until));
        sooner || !self.wanted.is_empty()
    }
}
