//! What a backing holds: blocks that are shared between copies until they change.

use std::collections::BTreeMap;
use std::rc::Rc;

use onefold_format::checksum;
use onefold_units::convert::index64;

use super::stamp::BLOCK;
use super::zones::Zones;

pub(crate) type Block = Rc<[u8; BLOCK]>;

/// Changes over a base before they are put into a base of their own.
const OVER_MAX: usize = 4096;

/// The blocks of a backing. Cheap to copy.
#[derive(Clone)]
pub(crate) struct Image {
    base: Rc<Vec<Block>>,
    over: BTreeMap<u64, Block>,
    /// Where its zones are, if it has any.
    pub(crate) zones: Option<Zones>,
}

pub(crate) fn block(bytes: &[u8]) -> Block {
    Rc::new(bytes.try_into().expect("4096 bytes"))
}

impl Image {
    /// Blocks of the same garbage.
    pub(crate) fn new(blocks: u64) -> Self {
        let garbage = Rc::new([0xEE; BLOCK]);
        Self { base: Rc::new(vec![garbage; index64(blocks)]), over: BTreeMap::new(), zones: None }
    }

    pub(crate) fn blocks(&self) -> u64 {
        onefold_units::convert::u64_from(self.base.len())
    }

    pub(crate) fn get(&self, at: u64) -> &Block {
        self.over.get(&at).unwrap_or_else(|| &self.base[index64(at)])
    }

    pub(crate) fn set(&mut self, at: u64, block: Block) {
        self.over.insert(at, block);
        if self.over.len() > OVER_MAX {
            self.settle();
        }
    }

    /// Makes what it holds now its base.
    pub(crate) fn settle(&mut self) {
        let mut base = (*self.base).clone();
        for (at, block) in std::mem::take(&mut self.over) {
            base[index64(at)] = block;
        }
        self.base = Rc::new(base);
    }

    /// Flips one bit.
    pub(crate) fn flip(&mut self, at: u64, bit: usize) {
        let mut bytes = **self.get(at);
        bytes[bit / 8 % BLOCK] ^= 1 << (bit % 8);
        self.set(at, Rc::new(bytes));
    }

    /// Blocks that are not as in its base.
    pub(crate) fn changed(&self) -> impl Iterator<Item = (u64, &Block)> {
        let differs = |at: u64, block: &Block| {
            !Rc::ptr_eq(block, self.of_base(at)) && block != self.of_base(at)
        };
        self.over
            .iter()
            .map(|(at, block)| (*at, block))
            .filter(move |(at, block)| differs(*at, block))
    }

    /// What its base has.
    pub(crate) fn of_base(&self, at: u64) -> &Block {
        &self.base[index64(at)]
    }

    /// Tells images over one base apart.
    pub(crate) fn digest(&self) -> u64 {
        // Many blocks in a row are one, where there was a trim.
        let mut last: Option<(&Block, u32)> = None;
        let zones = self.zones.as_ref().map_or(0, Zones::digest);
        self.changed().fold(zones, |digest: u64, (at, block)| {
            let known = last.filter(|(other, _)| Rc::ptr_eq(other, block));
            let sum = known.map_or_else(|| checksum(&block[..]), |(_, sum)| sum);
            last = Some((block, sum));
            let one = (at << 32 | u64::from(sum)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            digest.wrapping_add(one ^ one >> 29)
        })
    }
}
