//! How members come and go: asked for by the owner, carried out by checkpoints (`crate::snapshots`, invariants 2 and 3).

use onefold_format::volume::{PAGE_GONE_BIRTH, VolumeName};
use onefold_units::Location;

use crate::io::IoFailed;
use crate::snapshots::{Life, MemberId, MemberInfo, MemberState, Members, SnapshotError, Wish};
use crate::volume::Volume;

impl Volume {
    /// The members, the device first.
    pub fn members(&self) -> impl Iterator<Item = MemberInfo> + '_ {
        let come = |member: &&MemberState| !matches!(member.life, Life::Coming { .. });
        self.members.all().filter(come).map(|member| MemberInfo {
            id: MemberId::new(member.id),
            parent: MemberId::new(member.parent),
            name: member.name.as_str().to_owned(),
            writable: !member.read_only,
            deleted: member.life != Life::Here,
            seq: member.seq,
            blocks: member.blocks,
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
    ) -> Result<(), SnapshotError> {
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
    ) -> Result<(), SnapshotError> {
        self.wish(tag, of, name, false)
    }

    fn check_members(&self) -> Result<(), SnapshotError> {
        if self.frozen.is_some() || self.checkpoint.is_closing() {
            return Err(SnapshotError::ReadOnly);
        }
        // A member has the size of its parent; and what recovery has to count would be of other members as well, or of fewer.
        if self.is_counted() && !self.is_resizing() { Ok(()) } else { Err(SnapshotError::Busy) }
    }

    fn wish(
        &mut self,
        tag: u64,
        of: MemberId,
        name: &VolumeName,
        read_only: bool,
    ) -> Result<(), SnapshotError> {
        self.check_members()?;
        let members = &self.members;
        if members.awaits_member() || members.is_one_coming() {
            return Err(SnapshotError::Busy);
        }
        if name.as_str().is_empty() {
            return Err(SnapshotError::Nameless);
        }
        let taken = |member: &MemberState| {
            member.name == *name && member.life == Life::Here && member.id != 0
        };
        if members.slot_where(taken).is_some() {
            return Err(SnapshotError::Exists);
        }
        let (found, max) = (members.all().count(), Members::most(&self.options));
        if found >= max {
            return Err(SnapshotError::TooMany { found, max });
        }
        if members.next_id() >= PAGE_GONE_BIRTH {
            return Err(SnapshotError::UsedUp);
        }
        let parent = members.slot_of(of).ok_or(SnapshotError::Missing)?;
        self.members.set_wish(Some(Wish { tag, parent, read_only, name: name.clone() }));
        if let Err(refusal) = self.need_space_for_member() {
            self.members.set_wish(None);
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
    pub fn delete_member(&mut self, tag: u64, id: MemberId) -> Result<(), SnapshotError> {
        self.check_members()?;
        if id == MemberId::DEVICE {
            return Err(SnapshotError::Device);
        }
        let slot = self.members.slot_of(id).ok_or(SnapshotError::Missing)?;
        if self.members.wish().is_some_and(|wish| wish.parent == slot) {
            return Err(SnapshotError::Busy);
        }
        self.members.of_mut(slot).life = Life::Doomed { tag };
        self.checkpoint.want();
        Ok(())
    }

    /// Members that a checkpoint which begins now says are deleted, or leaves out. Gives what the one before points to
    /// because of those alone.
    pub(crate) fn let_members_go(&mut self) -> Vec<Location> {
        let mut alone = Vec::new();
        for slot in self.members.slots().collect::<Vec<_>>() {
            match self.members.of(slot).life {
                Life::Doomed { tag } => self.members.of_mut(slot).life = Life::Marking { tag },
                Life::Deleted { next }
                    if next == self.map.pages_of(slot)
                        && self.members.of(slot).unread.is_empty() =>
                {
                    if self.loads.reads(self.map.keys_of(slot)) {
                        // It goes with the next one, which nobody else may ask for.
                        self.checkpoint.want();
                    } else {
                        self.members.of_mut(slot).life = Life::Going;
                        self.members.named_by_it_alone(&self.map, slot, &mut alone);
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
        let (slot, parent) = self.members.welcome(seq, epoch)?;
        self.map.add_member(slot, self.map.pages_of(parent), Some(parent));
        for run in self.checkpoint.runs_mut() {
            run.members |= (run.members >> parent & 1) << slot;
        }
        Some((slot, parent))
    }

    /// The checkpoint that members came and went with counts.
    pub(crate) fn members_settled(&mut self) {
        let (tags, gone) = self.members.commit();
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
    pub(crate) fn undo_members(&mut self) {
        for slot in self.members.undo() {
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
        self.members.remove(slot);
        for run in self.checkpoint.runs_mut() {
            run.members &= !(1 << slot);
        }
    }

    /// Nothing changes any more: who waits for a change of the members waits in vain.
    pub(crate) fn fail_members(&mut self) {
        for tag in self.members.give_up() {
            self.report(tag, Err(IoFailed::Error));
        }
    }
}
