//! How the blocks of a batch are packed (`crate::packs`).

use onefold_format::volume::{
    BatchRecords, Codec, Pack, PackEntry, Packing, Place, Slot, TrimRecord, quarters_of,
    records_room,
};
use onefold_units::convert::{index, low8, u32_from, u64_from};

use crate::limits::BLOCK;
use crate::log::{Batch, Stream};
use crate::packs::{deflate, inflate, unpack};

/// A compressed block of a batch.
struct Small {
    /// Which.
    at: usize,
    codec: Codec,
    bytes: Vec<u8>,
}

/// How the blocks of a batch lie that was packed.
#[derive(Debug)]
pub(crate) struct Packed {
    /// Where each lies, in the order in which they were put into it.
    pub(crate) places: Vec<Place>,
    /// Blocks behind the header that hold something.
    pub(crate) stored: u32,
    /// The pack in the header, if it has one.
    pub(crate) inside: Option<Pack>,
}

/// Packs that a batch is to have.
struct Packs {
    inside: Pack,
    /// Those behind the blocks that stay as they are.
    behind: Vec<Pack>,
    /// Slots of blocks that are packed, with their pack: 0 for the one in the header.
    slots: Vec<Option<(usize, Slot)>>,
}

impl Packs {
    /// Of compressed blocks by their quarters, the first of which take one. Those of four fit a header at most.
    fn of(blocks: usize, room: usize, mut sizes: [Vec<Small>; 4]) -> Self {
        let mut packs =
            Self { inside: Pack::new(room), behind: Vec::new(), slots: vec![None; blocks] };
        // Those that save most of a block of their own go first.
        for quarters in (1..=4).rev() {
            let list = &mut sizes[index(quarters) - 1];
            let mut at = 0;
            while at < list.len() {
                match packs.inside.slot_for(quarters, list[at].bytes.len()) {
                    Some(slot) => packs.put(0, slot, &list.remove(at)),
                    None => at += 1,
                }
            }
        }
        let [ones, twos, threes, _] = &mut sizes;
        while !threes.is_empty() && !ones.is_empty() {
            packs.put_together([(3, threes, 1), (1, ones, 1)]);
        }
        while twos.len() > 1 {
            packs.put_together([(2, twos, 2), (1, ones, 0)]);
        }
        while twos.len() + ones.len() > 1 {
            let halves = twos.len();
            packs.put_together([(2, twos, halves), (1, ones, 4 - 2 * halves)]);
        }
        packs
    }

    /// One more pack, of the last ones of some lists.
    fn put_together(&mut self, of: [(u32, &mut Vec<Small>, usize); 2]) {
        self.behind.push(Pack::new(BLOCK));
        for (quarters, list, most) in of {
            let from = list.len().saturating_sub(most);
            for small in list.drain(from..) {
                let pack =
                    self.behind.last().and_then(|pack| pack.slot_for(quarters, small.bytes.len()));
                self.put(self.behind.len(), pack.expect("quarters fit"), &small);
            }
        }
    }

    fn put(&mut self, pack: usize, slot: Slot, small: &Small) {
        let into = match pack {
            0 => &mut self.inside,
            behind => &mut self.behind[behind - 1],
        };
        into.push(slot, PackEntry { codec: small.codec, bytes: &small.bytes });
        self.slots[small.at] = Some((pack, slot));
    }

    /// Where each block lies: first those that are not packed, in order, then the packs.
    fn places(&self) -> Vec<Place> {
        let whole = self.slots.iter().filter(|slot| slot.is_none()).count();
        let mut next = 0;
        let place = |of: &Option<(usize, Slot)>| match *of {
            None => {
                next += 1;
                Place { offset: low8(next), slot: Slot::WHOLE }
            }
            Some((0, slot)) => Place { offset: 0, slot },
            Some((pack, slot)) => Place { offset: low8(u64_from(whole + pack)), slot },
        };
        self.slots.iter().map(place).collect()
    }
}

impl Batch {
    /// Bytes that its header leaves.
    pub(crate) fn header_room(&self) -> usize {
        let kind =
            if self.stream == Stream::Clean { BatchRecords::Clean } else { BatchRecords::Data };
        let (records, moved) = match kind {
            BatchRecords::Clean => (self.records.clean.len(), 0),
            _ => (self.records.data.len(), self.records.clean.len()),
        };
        let packed = self.packed.as_ref().map_or(0, |packed| {
            packed.places.len() * Place::BYTES + packed.inside.as_ref().map_or(0, Pack::len)
        });
        let taken = self.records.trims.len() * TrimRecord::BYTES + packed;
        records_room(kind, records, moved).saturating_sub(taken)
    }

    /// The packs that save room; `None` if there are none.
    fn packs(&self, codec: Codec, kept: usize) -> Option<Packs> {
        let blocks = index(self.records.blocks());
        let room = self.header_room().checked_sub(blocks * Place::BYTES + kept)?;
        let mut sizes = [const { Vec::new() }; 4];
        for at in 0..blocks {
            let bytes = deflate(codec, self.block(at));
            if let Some(list) = sizes.get_mut(index(quarters_of(bytes.len())) - 1) {
                list.push(Small { at, codec, bytes });
            }
        }
        let packs = Packs::of(blocks, room, sizes);
        packs.slots.iter().any(Option::is_some).then_some(packs)
    }

    /// Compresses its blocks where that saves room, and lays them out anew; `kept` bytes of its header stay free. Says how many blocks are in
    /// packs; `None` if it stays as it is.
    pub(crate) fn pack(&mut self, codec: Codec, kept: usize) -> Option<usize> {
        let packs = self.packs(codec, kept)?;
        let packed = packs.slots.iter().filter(|slot| slot.is_some()).count();
        self.lay_out(packs);
        Some(packed)
    }

    /// Lays its blocks out anew.
    fn lay_out(&mut self, packs: Packs) {
        let places = packs.places();
        let whole = packs.slots.iter().filter(|slot| slot.is_none()).count();
        // Blocks move to the front only.
        for (at, place) in places.iter().enumerate().filter(|(_, place)| !place.slot.is_packed()) {
            let (from, to) = ((at + 1) * BLOCK, place.block() * BLOCK);
            self.buffer.bytes_mut().copy_within(from..from + BLOCK, to);
        }
        for (at, pack) in packs.behind.iter().enumerate() {
            pack.write(self.block_mut(whole + at));
        }
        let stored = u32_from(whole + packs.behind.len());
        let inside = Some(packs.inside).filter(|pack| !pack.is_empty());
        self.packed = Some(Packed { places, stored, inside });
    }

    /// What its header says of that.
    pub(crate) fn packing(&self) -> Option<Packing<'_>> {
        let Packed { places, stored, inside } = self.packed.as_ref()?;
        Some(Packing { places, stored: *stored, inside: inside.as_ref() })
    }

    /// Where a block lies that was put into it.
    pub(crate) fn place(&self, at: usize) -> Place {
        let behind = Place { offset: low8(u64_from(at + 1)), slot: Slot::WHOLE };
        self.packed.as_ref().map_or(behind, |packed| packed.places[at])
    }

    /// One more block is put behind what it has, which stays as it is.
    pub(crate) fn add_whole(&mut self) {
        if let Some(packed) = &mut self.packed {
            packed.stored += 1;
            packed.places.push(Place { offset: low8(packed.stored.into()), slot: Slot::WHOLE });
        }
    }

    /// Puts the block that was put into it as number `at` into `out`.
    pub(crate) fn copy_block(&self, at: usize, out: &mut [u8]) {
        let place = self.place(at);
        let inside = self.packed.as_ref().and_then(|packed| packed.inside.as_ref());
        let inside = inside.filter(|_| place.block() == 0);
        let there = match inside {
            Some(pack) => pack.entry(place.slot).is_some_and(|entry| inflate(entry, out)),
            None => unpack(self.block(place.block() - 1), place.slot, out),
        };
        assert!(there, "a pack in memory is whole");
    }
}
