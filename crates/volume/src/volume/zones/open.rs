//! Taking over what the backing says of its zones at an opening.

use onefold_format::volume::SegmentState;
use onefold_units::{LogSegmentId, ZoneState};

use crate::backing::Backing;
use crate::error::MountError;
use crate::io::IoFailed;
use crate::volume::Volume;
use crate::zones::{ZoneError, ZoneReport};

impl Volume {
    /// Takes over what the backing says of its zones.
    pub(crate) fn meet_zones(&mut self, report: &ZoneReport) -> Result<(), MountError> {
        let mut leaving = Vec::new();
        for (zone, status) in report.iter() {
            let id = LogSegmentId::new(zone.raw());
            if id.raw() >= self.layout.segments() {
                break;
            }
            let segment = *self.segments.of(id);
            self.segments.of_mut(id).gone = status.state == ZoneState::Offline;
            let holds = segment.live() > 0 && segment.state != SegmentState::Fixed;
            match status.state {
                ZoneState::Offline if holds => self.segments.set_aside(id),
                // One that was set aside before was given up then.
                ZoneState::Empty if holds && segment.is_sound() => {
                    if !self.options.give_up_zones {
                        let (found, expected) = (0, segment.live());
                        return Err(ZoneError::WritePointer { zone, found, expected }.into());
                    }
                    self.segments.set_aside(id);
                }
                _ => {}
            }
            if !status.is_writable() && segment.state != SegmentState::Fixed {
                leaving.push(id);
            }
        }
        self.segments.leave(&leaving);
        Ok(())
    }

    /// Finishes zones that nobody goes on writing, and resets those that are free. Where that fails it is tried again while the volume runs: an
    /// error here costs no zone.
    pub(crate) fn tidy_zones(&mut self, backing: &mut dyn Backing, report: &ZoneReport) {
        let mut stuck = Vec::new();
        for (zone, status) in report.iter() {
            let id = LogSegmentId::new(zone.raw());
            if id.raw() >= self.layout.segments() {
                break;
            }
            match self.segments.of(id).state {
                SegmentState::Free if status.has_to_be_reset() => {
                    stuck.extend(backing.reset(zone).err().map(|_: IoFailed| id));
                }
                SegmentState::Fixed if self.checkpoint.roots().is_in(zone) => {}
                // The other zone of roots as well: one that was left half full may not have been finished before a power cut.
                _ if status.state.is_active() => {
                    let result = backing.finish(zone);
                    self.note_finish(id, result);
                }
                _ => {}
            }
        }
        self.segments.keep_back(&stuck);
        for id in stuck {
            self.trims.again(id, self.now);
        }
    }
}
