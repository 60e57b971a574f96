//! Mending what a scrub found.

use onefold_format::volume::{DIRECTORY_ENTRIES, MetaKind};
use onefold_units::Location;
use onefold_units::convert::index64;

use crate::map::{Map, Ready};
use crate::scrub::mend::What;
use crate::scrub::{Phase, ScrubState};
use crate::volume::Volume;

impl Volume {
    /// Has the next damaged block written anew. `false` if that takes a checkpoint.
    pub(super) fn step_mend(&mut self) -> bool {
        self.scrub.set_phase(Phase::Mend);
        let Some(mut mend) = self.scrub.pop_mend() else {
            self.end_scrub(ScrubState::Done);
            return true;
        };
        let waits = mend.waits_for(self.checkpoint.committed());
        if self.checkpoint.is_running() || waits {
            self.scrub.push_mend(mend);
            return false;
        }
        if !self.is_in_use(mend.what()) {
            self.note_mended(mend.place());
            return true;
        }
        if mend.is_hopeless() || self.frozen.is_some() || !self.aim_at(mend.what()) {
            return true;
        }
        mend.ask(self.checkpoint.next_number());
        self.checkpoint.want();
        self.scrub.push_mend(mend);
        false
    }

    /// Whether the volume still needs the damaged block.
    fn is_in_use(&self, what: What) -> bool {
        match what {
            What::Root { generation } => self.checkpoint.generation() == generation,
            What::Meta { at, object, kind } => self.is_meta_live(object, kind, at),
        }
    }

    /// Whether a block of a checkpoint is needed: what the last root leads to is.
    pub(super) fn is_meta_live(&self, object: u64, kind: MetaKind, at: Location) -> bool {
        let object = index64(object);
        match kind {
            MetaKind::Page | MetaKind::Sums => {
                self.members.keys_at(&self.map, object, at).next().is_some()
            }
            MetaKind::Directory => self.members.has_directory_at(object, at).is_some(),
            MetaKind::Run | MetaKind::RunIndex | MetaKind::Body => {
                self.checkpoint.places().any(|place| place == at)
            }
        }
    }

    /// Makes the next checkpoint write a block anew. `false` if what it says is not in memory.
    fn aim_at(&mut self, what: What) -> bool {
        let What::Meta { at, object, kind } = what else { return true };
        let object = index64(object);
        let keys: Vec<usize> = match kind {
            MetaKind::Body => return true,
            // The records are nowhere else.
            MetaKind::Run | MetaKind::RunIndex => return false,
            MetaKind::Page | MetaKind::Sums => {
                let keys: Vec<usize> = self.members.keys_at(&self.map, object, at).collect();
                if keys.iter().any(|key| self.map.ready(*key) != Ready::Yes) {
                    return false;
                }
                keys
            }
            // A block of the directory comes with any of its pages.
            MetaKind::Directory => {
                let Some(slot) = self.members.has_directory_at(object, at) else { return false };
                let pages = object * DIRECTORY_ENTRIES..self.map.pages_of(slot);
                let mut keys = pages.take(DIRECTORY_ENTRIES).map(|page| Map::key(slot, page));
                keys.find(|key| self.map.image(*key).page.is_block()).into_iter().collect()
            }
        };
        let Some(page) = keys.first().map(|key| Map::of_key(*key).1) else { return false };
        let number = self.checkpoint.next_number();
        for key in keys {
            self.map.write_anew(key);
            self.map.keep(key, number);
        }
        self.checkpoint.sweep_from(page);
        true
    }
}
