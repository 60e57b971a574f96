//! The members of a volume: the device it exports, snapshots of it, and clones (volume.md, section 5.8).
//!
//! Each member has slots of its own in the map and a directory of its own. As long as they do not differ, members share
//! data, images of map pages, blocks of the directory, and runs.
//!
//! 1. A block of data is live while the entry of its LBA in any member points at it. An LBA of one member never points at
//!    what another LBA wrote, so one entry per member has to be looked at ([`crate::Volume::unlink`]).
//! 2. A member comes with a checkpoint, as a copy of its parent's slots at X; it is there when the root counts. A snapshot
//!    changes no entry after that but where the cleaner moves a block.
//! 3. A member that is deleted is marked so by a checkpoint. When that counts, its pages are unmapped one after the other,
//!    like a trim. When all of them are, the next checkpoint leaves it out.
//! 4. Of what was written after two members parted, neither sees what the other one has. Log segments that the host filled
//!    say when that was: by the number of their use ([`crate::Volume::may_share`]).

pub(crate) mod share;
pub(crate) mod space;

use std::collections::BTreeSet;

use onefold_format::volume::{
    DIRECTORY_ENTRIES, DirectoryPlace, MEMBER_DELETED, MEMBER_READ_ONLY, MEMBERS_MAX, Member,
    VolumeName,
};
use onefold_units::convert::index64;
use onefold_units::{Lba, Location, Seq};
use thiserror::Error;

use crate::config::Options;
use crate::map::page::PAGE_ENTRIES_U64;
use space::Capacity;

pub(crate) use share::Held;

pub use space::Usage;

/// Names a member for ever: numbers are not given out twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemberId(u32);

impl MemberId {
    /// The device that the volume was made for.
    pub const DEVICE: Self = Self(0);

    pub(crate) const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn raw(self) -> u32 {
        self.0
    }
}

/// What is known of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberInfo {
    /// Its number.
    pub id: MemberId,
    /// The member it was made of.
    pub parent: MemberId,
    /// Its name; that of the device is empty.
    pub name: String,
    /// Whether it can be written.
    pub writable: bool,
    /// It was deleted, and its space is being freed.
    pub deleted: bool,
    /// It has what the batches up to this one left.
    pub seq: u64,
    /// Its blocks.
    pub blocks: u64,
}

/// Why a snapshot or clone cannot be made or deleted. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// Not now: try again after the next completion or timeout.
    #[error("a snapshot or clone is being made or deleted; try again")]
    Busy,
    /// The volume takes no changes.
    #[error("the volume takes no changes")]
    ReadOnly,
    /// The name is taken.
    #[error("there is a snapshot or clone of that name; delete it or choose another name")]
    Exists,
    /// Names tell members apart.
    #[error("an empty name; expected 1 to 32 bytes")]
    Nameless,
    /// There is no such member.
    #[error("there is no snapshot or clone of that name")]
    Missing,
    /// The device itself stays.
    #[error("the device of the volume cannot be deleted")]
    Device,
    /// No more fit.
    #[error(
        "{found} members, the device included; expected at most {max} ({})",
        if *max == MEMBERS_MAX { "the limit of the format" } else { "a quarter of the map pages in memory" }
    )]
    TooMany {
        /// Members there are.
        found: usize,
        /// Most members.
        max: usize,
    },
    /// What its map may take is not there.
    #[error(
        "the members have {data} blocks of 4 KiB, and beside the map of one more there would be room for {capacity}; trim some, or delete a snapshot or clone"
    )]
    NoSpace {
        /// Blocks of data that some member has.
        data: u64,
        /// Most of them with one member more.
        capacity: u64,
    },
    /// Numbers of members have been used up.
    #[error("the volume had 2^24 - 2 members, which is the limit of the format")]
    UsedUp,
}

/// Where a member is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// It comes with the checkpoint under way.
    Coming {
        tag: u64,
    },
    Here,
    /// It was deleted; the next checkpoint says so.
    Doomed {
        tag: u64,
    },
    /// The checkpoint under way says that it was deleted.
    Marking {
        tag: u64,
    },
    /// Its pages are being unmapped, this one next.
    Deleted {
        next: usize,
    },
    /// The checkpoint under way leaves it out.
    Going,
}

/// Map pages of a member of so many blocks.
pub(crate) fn pages_of(blocks: u64) -> usize {
    index64(blocks.div_ceil(PAGE_ENTRIES_U64))
}

/// A member in memory. Its place in the list is its bit in the masks of runs and the place of its slots in the map.
#[derive(Debug)]
pub(crate) struct MemberState {
    pub(crate) id: u32,
    pub(crate) parent: u32,
    pub(crate) read_only: bool,
    pub(crate) life: Life,
    pub(crate) birth: u32,
    pub(crate) seq: u64,
    /// Number of the next use of a log segment when it came (invariant 4).
    pub(crate) epoch: u64,
    /// Its size; that of the device is what the label says.
    pub(crate) blocks: u64,
    pub(crate) name: VolumeName,
    pub(crate) directory: Vec<DirectoryPlace>,
    /// Pages that could not be read when it was deleted: what it has there alone is freed when they can be read again.
    pub(crate) unread: BTreeSet<usize>,
}

impl MemberState {
    /// The device of a new volume.
    pub(crate) fn device(blocks: u64) -> Self {
        let mut device = Self {
            id: 0,
            parent: 0,
            read_only: false,
            life: Life::Here,
            birth: 0,
            seq: 0,
            epoch: 0,
            blocks: 0,
            name: VolumeName::default(),
            directory: Vec::new(),
            unread: BTreeSet::new(),
        };
        device.resize(blocks);
        device
    }

    /// What a root said about it, with its size.
    pub(crate) fn restored(member: &Member, blocks: u64) -> Self {
        let deleted = member.flags & MEMBER_DELETED != 0;
        let mut restored = Self {
            id: member.id,
            parent: member.parent,
            read_only: member.flags & MEMBER_READ_ONLY != 0,
            life: if deleted { Life::Deleted { next: 0 } } else { Life::Here },
            birth: member.birth,
            seq: member.seq.raw(),
            epoch: member.epoch,
            blocks: 0,
            name: member.name.clone(),
            directory: member.directory.clone(),
            unread: BTreeSet::new(),
        };
        restored.resize(blocks);
        restored
    }

    /// Its map pages.
    pub(crate) fn pages(&self) -> usize {
        pages_of(self.blocks)
    }

    /// Another size. Gives the blocks of its directory that are gone.
    pub(crate) fn resize(&mut self, blocks: u64) -> Vec<DirectoryPlace> {
        self.blocks = blocks;
        let directory = self.pages().div_ceil(DIRECTORY_ENTRIES);
        let gone = self.directory.split_off(directory.min(self.directory.len()));
        self.directory.resize(directory, DirectoryPlace { location: Location::UNMAPPED, crc: 0 });
        gone
    }

    /// What a root says about it; the directory is filled in when it is written.
    pub(crate) fn describe(&self) -> Member {
        let deleted = matches!(self.life, Life::Marking { .. } | Life::Deleted { .. });
        let flags = if self.read_only { MEMBER_READ_ONLY } else { 0 }
            | if deleted { MEMBER_DELETED } else { 0 };
        Member {
            id: self.id,
            parent: self.parent,
            flags,
            birth: self.birth,
            seq: Seq::new(self.seq),
            epoch: self.epoch,
            logical_blocks: self.blocks,
            mapped: 0,
            name: self.name.clone(),
            directory: Vec::new(),
        }
    }
}

/// A member that was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    pub(crate) tag: u64,
    pub(crate) parent: usize,
    pub(crate) read_only: bool,
    pub(crate) name: VolumeName,
}

/// The members of a volume.
#[derive(Debug)]
pub(crate) struct Members {
    list: Vec<Option<MemberState>>,
    next_id: u32,
    wish: Option<Wish>,
    /// The last of all epochs (invariant 4).
    newest: u64,
    /// Pages of a deleted member can be unmapped without waiting for anything.
    deletes_on: bool,
    capacity: Capacity,
    /// A write waits for what a checkpoint may find to be room.
    waits: bool,
    /// Log segments that are kept for a checkpoint of all members beside the two for one of the device, and for what the map may grow to.
    kept_more: u32,
}

impl Members {
    pub(crate) fn new(list: Vec<MemberState>, next_id: u32) -> Self {
        let newest = list.iter().map(|member| member.epoch).max().unwrap_or(0);
        Self {
            list: list.into_iter().map(Some).collect(),
            next_id,
            wish: None,
            newest,
            deletes_on: false,
            capacity: Capacity::ANY,
            waits: false,
            kept_more: 0,
        }
    }

    /// Most members with so much memory: a request needs the pages of all of them at once.
    pub(crate) fn most(options: &Options) -> usize {
        MEMBERS_MAX.min(options.map_pages / 4).max(1)
    }

    /// Places of members in the list, but for those that go with the checkpoint under way.
    pub(crate) fn slots(&self) -> impl Iterator<Item = usize> + '_ {
        let there = |member: &MemberState| member.life != Life::Going;
        self.list
            .iter()
            .enumerate()
            .filter(move |(_, member)| member.as_ref().is_some_and(there))
            .map(|(slot, _)| slot)
    }

    /// Places in the list, those of nobody as well.
    pub(crate) fn places(&self) -> usize {
        self.list.len()
    }

    /// Whether a member may have a block that one with this birth wrote. `epoch` is that of the log segment if the host
    /// filled it.
    pub(crate) fn may_hold(&self, slot: usize, birth: u32, epoch: Option<u64>) -> bool {
        self.list[slot].as_ref().is_some_and(|member| {
            let later = epoch.is_none_or(|epoch| epoch < member.epoch);
            member.life != Life::Going && (member.birth == birth || later)
        })
    }

    /// Places of the other members.
    pub(crate) fn others(&self, slot: usize) -> impl Iterator<Item = usize> + '_ {
        self.slots().filter(move |other| *other != slot)
    }

    /// Whether there is none but the device.
    pub(crate) fn is_alone(&self) -> bool {
        self.list.len() == 1
    }

    /// Whether a member is about to come.
    pub(crate) const fn awaits_member(&self) -> bool {
        self.wish.is_some()
    }

    /// Whether a member comes with the checkpoint under way.
    pub(crate) fn is_one_coming(&self) -> bool {
        self.slot_where(|member| matches!(member.life, Life::Coming { .. })).is_some()
    }

    /// Blocks of the largest member.
    pub(crate) fn largest(&self) -> u64 {
        self.list.iter().flatten().map(|member| member.blocks).max().unwrap_or(0)
    }

    pub(crate) fn of(&self, slot: usize) -> &MemberState {
        self.list[slot].as_ref().expect("a member")
    }

    pub(crate) fn of_mut(&mut self, slot: usize) -> &mut MemberState {
        self.list[slot].as_mut().expect("a member")
    }

    pub(crate) fn id_of(&self, slot: usize) -> MemberId {
        MemberId(self.of(slot).id)
    }

    pub(crate) fn slot_where(&self, is: impl Fn(&MemberState) -> bool) -> Option<usize> {
        self.list.iter().position(|member| member.as_ref().is_some_and(&is))
    }

    /// The place of a member that can be used.
    pub(crate) fn slot_of(&self, id: MemberId) -> Option<usize> {
        if id == MemberId::DEVICE {
            return Some(0);
        }
        self.slot_where(|member| member.id == id.0 && member.life == Life::Here)
    }

    /// Adds a member in the first place that is free.
    fn add(&mut self, member: MemberState) -> usize {
        self.newest = self.newest.max(member.epoch);
        let slot = self.list.iter().position(Option::is_none).unwrap_or_else(|| {
            self.list.push(None);
            self.list.len() - 1
        });
        self.list[slot] = Some(member);
        slot
    }

    pub(crate) fn remove(&mut self, slot: usize) {
        self.list[slot] = None;
        while self.list.last().is_some_and(Option::is_none) {
            self.list.pop();
        }
        self.newest = self.list.iter().flatten().map(|member| member.epoch).max().unwrap_or(0);
    }

    /// Log segments that the host fills from this use on hold nothing that is shared.
    pub(crate) const fn newest(&self) -> u64 {
        self.newest
    }

    /// Which directory blocks are the same in some member.
    pub(crate) fn has_directory(&self, at: usize, place: DirectoryPlace) -> bool {
        self.slots().any(|slot| self.of(slot).directory.get(at) == Some(&place))
    }

    /// The members, also those that come or go.
    pub(crate) fn all(&self) -> impl Iterator<Item = &MemberState> + '_ {
        self.list.iter().flatten()
    }

    /// The number of the next member.
    pub(crate) const fn next_id(&self) -> u32 {
        self.next_id
    }

    /// The member that was asked for.
    pub(crate) const fn wish(&self) -> Option<&Wish> {
        self.wish.as_ref()
    }

    /// A member is asked for, or is not any more.
    pub(crate) fn set_wish(&mut self, wish: Option<Wish>) {
        self.wish = wish;
    }

    /// Adds the member that was asked for, which comes with the checkpoint that begins. Gives its place and its parent's.
    pub(crate) fn welcome(&mut self, seq: u64, epoch: u64) -> Option<(usize, usize)> {
        let Wish { tag, parent, read_only, name } = self.wish.clone()?;
        let id = self.next_id;
        let of = self.of(parent);
        let member = MemberState {
            id,
            parent: of.id,
            read_only,
            life: Life::Coming { tag },
            birth: id,
            seq,
            epoch,
            blocks: of.blocks,
            name,
            directory: of.directory.clone(),
            unread: BTreeSet::new(),
        };
        self.next_id += 1;
        Some((self.add(member), parent))
    }

    /// The checkpoint under way counts. Gives the tags of those who waited for it, and the places of members that go with it.
    pub(crate) fn commit(&mut self) -> (Vec<u64>, Vec<usize>) {
        let (mut tags, mut gone) = (Vec::new(), Vec::new());
        for (slot, member) in self.list.iter_mut().enumerate() {
            let Some(member) = member else { continue };
            match member.life {
                Life::Coming { tag } => {
                    member.life = Life::Here;
                    self.wish = None;
                    tags.push(tag);
                }
                Life::Marking { tag } => {
                    member.life = Life::Deleted { next: 0 };
                    tags.push(tag);
                }
                Life::Going => gone.push(slot),
                Life::Here | Life::Doomed { .. } | Life::Deleted { .. } => {}
            }
        }
        (tags, gone)
    }

    /// The checkpoint under way came to nothing: the next one tries again. Gives the places of members that were to come with it.
    pub(crate) fn undo(&mut self) -> Vec<usize> {
        let mut gone = Vec::new();
        for (slot, member) in self.list.iter_mut().enumerate() {
            let Some(member) = member else { continue };
            match member.life {
                Life::Coming { .. } => gone.push(slot),
                Life::Marking { tag } => member.life = Life::Doomed { tag },
                Life::Going => member.life = Life::Deleted { next: member.pages() },
                Life::Here | Life::Doomed { .. } | Life::Deleted { .. } => {}
            }
        }
        gone
    }

    /// Nothing changes any more. Gives the tags of those who wait for a change in vain.
    pub(crate) fn give_up(&mut self) -> Vec<u64> {
        let mut tags: Vec<u64> = self.wish.take().map(|wish| wish.tag).into_iter().collect();
        for member in self.list.iter_mut().flatten() {
            if let Life::Doomed { tag } | Life::Marking { tag } = member.life {
                member.life = Life::Deleted { next: 0 };
                tags.push(tag);
            }
        }
        tags
    }

    /// Whether pages of a deleted member can be unmapped without waiting for anything.
    pub(crate) const fn deletes_on(&self) -> bool {
        self.deletes_on
    }

    pub(crate) const fn set_deletes_on(&mut self, deletes_on: bool) {
        self.deletes_on = deletes_on;
    }

    /// How much data the members may have, as it was measured last.
    pub(crate) const fn capacity(&self) -> Capacity {
        self.capacity
    }

    /// Whether a write waits for what a checkpoint may find to be room.
    pub(crate) const fn waits_for_room(&self) -> bool {
        self.waits
    }

    pub(crate) const fn wait_for_room(&mut self) {
        self.waits = true;
    }

    /// Log segments that are kept for checkpoints beside those for one of the device, and for what the map may grow to.
    pub(crate) const fn kept_more(&self) -> u32 {
        self.kept_more
    }

    /// The same before it is measured.
    pub(crate) const fn keep_more(&mut self, kept_more: u32) {
        self.kept_more = kept_more;
    }

    /// It was measured how much data the members may have.
    pub(crate) const fn measured(&mut self, capacity: Capacity) {
        (self.capacity, self.waits) = (capacity, false);
    }
}

/// A block of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    pub(crate) slot: usize,
    pub(crate) lba: Lba,
}
