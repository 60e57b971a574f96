//! How members come and go: asked for by the owner, carried out by checkpoints (`crate::snapshots`, invariants 2 and 3).

use onefold_format::volume::{PAGE_GONE_BIRTH, VolumeName};
use onefold_units::Location;

use crate::io::IoFailed;
use crate::snapshots::{Family, FamilyError, Kin, Life, MemberId, MemberInfo, Wish};
use crate::volume::Volume;

impl Volume {
    /// The members of the family, the device first.
    pub fn members(&self) -> impl Iterator<Item = MemberInfo> + '_ {
        let come = |kin: &&Kin| !matches!(kin.life, Life::Coming { .. });
        self.family.all().filter(come).map(|kin| MemberInfo {
            id: MemberId::new(kin.id),
            parent: MemberId::new(kin.parent),
            name: kin.name.as_str().to_owned(),
            writable: !kin.read_only,
            deleted: kin.life != Life::Here,
            seq: kin.seq,
            blocks: kin.blocks,
        })
    }

    /// The snapshot or clone of a name.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<MemberInfo> {
        self.members()
            .find(|info| info.id != MemberId::DEVICE && !info.deleted && info.name == name)
    }

    /// Makes a snapshot of a member as it is now: what was reported done is in it. Reported under `tag` when it is
    /// durable and can be read. It takes a checkpoint, and memory for the slots of its pages (32 B per 4 MiB).
    ///
    /// # Errors
    /// Nothing was done then.
    pub fn make_snapshot(
        &mut self,
        tag: u64,
        of: MemberId,
        name: &VolumeName,
    ) -> Result<(), FamilyError> {
        self.wish(tag, of, name, true)
    }

    /// Makes a clone of a member, which can be written. As [`Volume::make_snapshot`].
    ///
    /// # Errors
    /// Nothing was done then.
    pub fn make_clone(
        &mut self,
        tag: u64,
        of: MemberId,
        name: &VolumeName,
    ) -> Result<(), FamilyError> {
        self.wish(tag, of, name, false)
    }

    fn check_family(&self) -> Result<(), FamilyError> {
        if self.frozen.is_some() || self.checkpoint.is_closing() {
            return Err(FamilyError::ReadOnly);
        }
        // A member has the size of its parent; and what recovery has to count would be of other members as well, or of fewer.
        if self.is_counted() && !self.is_resizing() { Ok(()) } else { Err(FamilyError::Busy) }
    }

    fn wish(
        &mut self,
        tag: u64,
        of: MemberId,
        name: &VolumeName,
        read_only: bool,
    ) -> Result<(), FamilyError> {
        self.check_family()?;
        let family = &self.family;
        if family.awaits_member() || family.is_one_coming() {
            return Err(FamilyError::Busy);
        }
        if name.as_str().is_empty() {
            return Err(FamilyError::Nameless);
        }
        let taken = |kin: &Kin| kin.name == *name && kin.life == Life::Here && kin.id != 0;
        if family.slot_where(taken).is_some() {
            return Err(FamilyError::Exists);
        }
        let (found, max) = (family.all().count(), Family::most(&self.options));
        if found >= max {
            return Err(FamilyError::TooMany { found, max });
        }
        if family.next_id() >= PAGE_GONE_BIRTH {
            return Err(FamilyError::UsedUp);
        }
        let parent = family.slot_of(of).ok_or(FamilyError::Missing)?;
        self.family.set_wish(Some(Wish { tag, parent, read_only, name: name.clone() }));
        if let Err(refusal) = self.need_space_for_member() {
            self.family.set_wish(None);
            return Err(refusal);
        }
        // Nothing comes between that takes its room.
        self.measure_capacity();
        self.checkpoint.want();
        Ok(())
    }

    /// Deletes a snapshot or clone. Nothing of it can be read or written from now on; reported under `tag` when that is
    /// durable. Its space is freed in the background.
    ///
    /// # Errors
    /// Nothing was done then.
    pub fn delete_member(&mut self, tag: u64, id: MemberId) -> Result<(), FamilyError> {
        self.check_family()?;
        if id == MemberId::DEVICE {
            return Err(FamilyError::Device);
        }
        let slot = self.family.slot_of(id).ok_or(FamilyError::Missing)?;
        if self.family.wish().is_some_and(|wish| wish.parent == slot) {
            return Err(FamilyError::Busy);
        }
        self.family.of_mut(slot).life = Life::Doomed { tag };
        self.checkpoint.want();
        Ok(())
    }

    /// Members that a checkpoint which begins now says are deleted, or leaves out. Gives what the one before points to
    /// because of those alone.
    pub(crate) fn let_members_go(&mut self) -> Vec<Location> {
        let mut alone = Vec::new();
        for slot in self.family.slots().collect::<Vec<_>>() {
            match self.family.of(slot).life {
                Life::Doomed { tag } => self.family.of_mut(slot).life = Life::Marking { tag },
                Life::Deleted { next }
                    if next == self.map.pages_of(slot)
                        && self.family.of(slot).unread.is_empty() =>
                {
                    if self.loads.reads(self.map.keys_of(slot)) {
                        // It goes with the next one, which nobody else may ask for.
                        self.checkpoint.want();
                    } else {
                        self.family.of_mut(slot).life = Life::Going;
                        self.family.named_by_it_alone(&self.map, slot, &mut alone);
                    }
                }
                _ => {}
            }
        }
        alone
    }

    /// Adds the member that was asked for to those of the checkpoint that begins now. Gives its place and its parent's.
    pub(crate) fn welcome_member(&mut self) -> Option<(usize, usize)> {
        let (seq, epoch) = (self.log.seq(), self.segments.next_epoch());
        let (slot, parent) = self.family.welcome(seq, epoch)?;
        self.map.add_member(slot, self.map.pages_of(parent), Some(parent));
        for run in self.checkpoint.runs_mut() {
            run.members |= (run.members >> parent & 1) << slot;
        }
        Some((slot, parent))
    }

    /// The checkpoint that members came and went with counts.
    pub(crate) fn settle_family(&mut self) {
        let (tags, gone) = self.family.settle();
        for tag in tags {
            self.report(tag, Ok(()));
        }
        for slot in gone {
            self.forget_member(slot);
        }
        self.fit_pages();
        self.measure_capacity();
    }

    /// The checkpoint that members were to come and go with came to nothing. The next one tries again.
    pub(crate) fn restore_family(&mut self) {
        for slot in self.family.undo() {
            self.forget_member(slot);
        }
    }

    /// A member is gone, or did not come. Nothing that is known of its pages may be taken for what another one has that gets its place.
    fn forget_member(&mut self, slot: usize) {
        for key in self.map.keys_of(slot) {
            self.loads.forget(key);
        }
        self.checkpoint.forget_unread(self.map.keys_of(slot));
        self.map.drop_member(slot);
        self.family.remove(slot);
        for run in self.checkpoint.runs_mut() {
            run.members &= !(1 << slot);
        }
    }

    /// Nothing changes any more: who waits for a change of the family waits in vain.
    pub(crate) fn fail_family(&mut self) {
        for tag in self.family.give_up() {
            self.report(tag, Err(IoFailed::Error));
        }
    }
}
