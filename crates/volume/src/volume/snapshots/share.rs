//! Which members have a block in common, and when it is live.

use onefold_units::convert::index64;
use onefold_units::{Lba, Location};

use crate::io::Refusal;
use crate::log::Stream;
use crate::map::page::PAGE_ENTRIES_U64;
use crate::map::{Map, Ready};
use crate::range::Range;
use crate::snapshots::share::Held;
use crate::snapshots::{Life, Spot};
use crate::volume::Volume;

impl Volume {
    /// The use of the log segment of a block if the host filled it. What the cleaner filled may be of any age.
    fn host_epoch(&self, at: Location) -> Option<u64> {
        let segment = self.segments.of(self.layout.segment_of(at));
        segment.stream.is_user().then_some(segment.epoch)
    }

    /// Whether two members may have a block in common (`crate::snapshots`, invariant 4).
    fn may_share(&self, one: usize, other: usize, at: Location) -> bool {
        let parted = self.members.of(one).epoch.max(self.members.of(other).epoch);
        self.host_epoch(at).is_none_or(|epoch| epoch < parted)
    }

    /// Whether the block that a member's entry points at, or pointed at, is that of another member as well.
    /// [`Volume::need_sharers`] said that this can be looked up.
    fn is_shared(&self, here: Spot, at: Location) -> Held {
        if self.members.is_alone()
            || self.host_epoch(at).is_some_and(|e| e >= self.members.newest())
        {
            return Held::No;
        }
        let page = index64(here.lba.raw() / PAGE_ENTRIES_U64);
        let mut shared = Held::No;
        for other in self.members.others(here.slot) {
            let key = Map::key(other, page);
            if !self.may_share(here.slot, other, at) {
                continue;
            }
            match self.map.ready(key) {
                Ready::Damaged => shared = Held::Unread,
                Ready::Yes if self.map.peek(Map::lba_of(other, here.lba)).at == at => {
                    return Held::Yes;
                }
                Ready::Yes | Ready::Empty => {}
                Ready::Missing | Ready::Loading => panic!("page {key} was not asked for"),
            }
        }
        shared
    }

    /// A member's entry points at a block no more: it is dead unless another member has it (`crate::snapshots`, invariant 1). What cannot be
    /// read may have it (`crate::volume::map::doubts`).
    pub(crate) fn unlink(&mut self, here: Spot, at: Location) {
        if !at.is_block() {
            return;
        }
        match self.is_shared(here, at) {
            Held::Yes => {}
            Held::Unread => self.segments.doubt(self.layout.segment_of(at)),
            Held::No => {
                self.forget_copy(at);
                self.lose(at);
            }
        }
    }

    /// A copy of the cleaner that was not sent yet is dead already. Its batch may get a higher number than what replaced it,
    /// so its record says that it does not count, for who has only the numbers to go by (`crate::volume::recovery::rebuild`).
    fn forget_copy(&mut self, at: Location) {
        if let Some(id) = self.batch_of(at)
            && self.log.batch(id).seq.is_none()
            && self.log.batch(id).stream == Stream::Clean
        {
            let batch = self.log.batch_mut(id);
            let index = batch.index_of(at);
            batch.records.clean[index].source = Location::UNMAPPED;
        }
    }

    /// Makes sure that it can be looked up who shares the blocks of a member's range; asks for pages that are missing.
    /// The pages of the member itself are there.
    pub(crate) fn need_sharers(&mut self, slot: usize, range: Range) -> Result<(), Refusal> {
        if self.members.is_alone() {
            return Ok(());
        }
        let first = range.lba.raw() / PAGE_ENTRIES_U64;
        let last = (range.lba.raw() + range.blocks - 1) / PAGE_ENTRIES_U64;
        let mut missing = Vec::new();
        for other in self.members.others(slot).collect::<Vec<_>>() {
            for page in first..=last {
                let key = Map::key(other, index64(page));
                let absent = matches!(self.map.ready(key), Ready::Missing | Ready::Loading);
                let from = range.lba.raw().max(page * PAGE_ENTRIES_U64);
                let end = (range.lba.raw() + range.blocks).min((page + 1) * PAGE_ENTRIES_U64);
                if absent && (from..end).any(|lba| self.may_be_of(other, slot, Lba::new(lba))) {
                    missing.push((other, key));
                }
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let number = self.checkpoint.committed() + 1;
        for page in first..=last {
            for slot in self.members.slots().collect::<Vec<_>>() {
                self.map.keep(Map::key(slot, index64(page)), number);
            }
        }
        for (other, key) in missing {
            self.load_of(other, key);
        }
        Err(Refusal::Busy)
    }

    /// Whether what an entry of `slot` points at may be of another member as well.
    fn may_be_of(&self, other: usize, slot: usize, lba: Lba) -> bool {
        let at = self.map.peek(Map::lba_of(slot, lba)).at;
        at.is_block() && self.may_share(slot, other, at)
    }

    /// Asks for a page of a member. One that is coming is there when the checkpoint under way counts.
    pub(crate) fn load_of(&mut self, slot: usize, key: usize) {
        if !self.is_coming(slot) && self.map.ready(key) == Ready::Missing {
            self.load_page(key);
        }
    }

    /// Whether the checkpoint under way makes this member.
    pub(crate) fn is_coming(&self, slot: usize) -> bool {
        matches!(self.members.of(slot).life, Life::Coming { .. })
    }

    /// Whether the entry of an LBA in some member points at a block of a log segment that is cleaned, if all pages that this
    /// takes are there; asks for those that are not. `birth` is that of who wrote the block.
    pub(crate) fn is_held(&mut self, lba: Lba, birth: u32, at: Location) -> Option<Held> {
        let missing = match self.look_who_holds(lba, birth, at) {
            Ok(held) => return Some(held),
            Err(missing) => missing,
        };
        // Those that are there stay: where memory is short, each would make room for the next one for ever.
        let (page, number) = (Map::place(lba).0, self.checkpoint.committed() + 1);
        for slot in self.members.slots().collect::<Vec<_>>() {
            self.map.keep(Map::key(slot, page), number);
        }
        for slot in missing {
            self.load_of(slot, Map::key(slot, page));
        }
        None
    }

    /// The same, or the places of the members whose pages are missing. It asks for none, so no other one leaves memory for it.
    pub(crate) fn look_who_holds(
        &mut self,
        lba: Lba,
        birth: u32,
        at: Location,
    ) -> Result<Held, Vec<usize>> {
        let page = Map::place(lba).0;
        if page >= self.map.pages() {
            return Ok(Held::No);
        }
        let (mut held, mut missing) = (Held::No, Vec::new());
        let epoch = self.host_epoch(at);
        for slot in 0..self.members.places() {
            if !self.members.may_hold(slot, birth, epoch) {
                continue;
            }
            match self.map.ready(Map::key(slot, page)) {
                Ready::Missing | Ready::Loading => missing.push(slot),
                // It may have the block, and cannot be told to point elsewhere: the block stays.
                Ready::Damaged => return Ok(Held::Unread),
                Ready::Yes if self.map.get(Map::lba_of(slot, lba)).at == at => held = Held::Yes,
                Ready::Yes | Ready::Empty => {}
            }
        }
        if missing.is_empty() { Ok(held) } else { Err(missing) }
    }
}
