//! Which metadata counts when a volume is opened: every block as its checksum says, from whichever set has it.
//!
//! 1. The set with the highest generation counts. A block of it that is not as its checksum says is taken from the other set, if
//!    that has it.
//! 2. If it is in neither, and the other set is one generation older and whole, that one counts: a flush was cut off between the
//!    two, so nobody was told that the newer one is durable, and no zone that the older one names was used again.
//! 3. Without checksums, which is how the kernel target writes a set, it is believed.

use onefold_format::{DMZ_BLOCK_BYTES, DMZ_BLOCK_SUMS, DmzRoot, DmzSums, checksum};
use onefold_units::convert::{index, u32_from};

use crate::backing::Backing;
use crate::error::MountError;
use crate::geometry::Geometry;
use crate::layout::Layout;
use crate::meta::{Identity, Stored};
use crate::opening_io::{flush, read, read_set, write};
use crate::roots::Roots;
use crate::sums::{Block, Sums};

/// The metadata that counts.
pub(crate) struct Chosen {
    /// The set whose root record counts.
    pub(crate) set: u32,
    pub(crate) layout: Layout,
    pub(crate) root: DmzRoot,
    /// Its blocks, the root record left blank, and those of the journal block map.
    pub(crate) bytes: Vec<u8>,
    /// Blocks that were damaged, and are in the other set.
    pub(crate) healed: u64,
    /// Blocks that are damaged in both.
    pub(crate) lost: Vec<u32>,
}

impl Chosen {
    /// What neither set has says nothing from now on: chunks without zones, zones without valid blocks, no journal zone set.
    pub(crate) fn give_up(&mut self) {
        let Layout { map_blocks, metadata_blocks, .. } = self.layout;
        for block in &self.lost {
            let blank = if *block <= map_blocks { 0xFF } else { 0 };
            self.bytes[index(*block) * DMZ_BLOCK_BYTES..][..DMZ_BLOCK_BYTES].fill(blank);
        }
        if self.lost.last().is_some_and(|block| *block >= metadata_blocks) {
            self.bytes.truncate(index(metadata_blocks) * DMZ_BLOCK_BYTES);
        }
    }

    /// The checksums of its blocks.
    pub(crate) fn sums(&self, geometry: &Geometry) -> Sums {
        let at = self.layout.sums_at(geometry);
        Sums::of(at, &self.bytes, self.root.sums.is_none() || !self.lost.is_empty())
    }
}

/// The metadata that counts.
///
/// # Errors
/// A device cannot be read.
pub(crate) fn choose(
    backing: &mut dyn Backing,
    geometry: &Geometry,
    roots: &Roots,
) -> Result<Chosen, MountError> {
    let (set, layout, root) = roots.newest();
    let newest = gather(backing, geometry, (set, layout, root))?;
    let older = roots
        .of(1 - set)
        .filter(|(_, root)| root.sums.is_some() && root.generation + 1 == newest.root.generation);
    if let Some((layout, root)) = older.filter(|_| !newest.lost.is_empty()) {
        let older = gather(backing, geometry, (1 - set, layout, root))?;
        if older.lost.is_empty() {
            return Ok(older);
        }
    }
    Ok(newest)
}

fn gather(
    backing: &mut dyn Backing,
    geometry: &Geometry,
    (set, layout, root): (u32, Layout, DmzRoot),
) -> Result<Chosen, MountError> {
    let count = layout.metadata_blocks + root.journal_blocks;
    let fits = |sums: &&DmzSums| {
        let tables = u32_from(sums.tables.len());
        sums.first == layout.sums_at(geometry)
            && tables == count.div_ceil(DMZ_BLOCK_SUMS)
            && count <= sums.first
    };
    let (at, other) = (layout.set_block(geometry, set), layout.set_block(geometry, 1 - set));
    let Some(sums) = root.sums.as_ref().filter(fits) else {
        let bytes = read_set(backing, at, count)?;
        return Ok(Chosen { set, layout, root, bytes, healed: 0, lost: Vec::new() });
    };
    let mut found = Found { places: [at, other], healed: 0 };
    let together = read_set(backing, at, count).unwrap_or_default();
    let mut bytes = vec![0; index(count) * DMZ_BLOCK_BYTES];
    let mut lost = Vec::new();
    for (at, sum) in (0..).zip(&sums.tables) {
        let table = found.block(backing, sums.first + at, *sum);
        let blocks = at * DMZ_BLOCK_SUMS..count.min((at + 1) * DMZ_BLOCK_SUMS);
        for block in blocks.filter(|block| *block > 0) {
            let entry = index(block % DMZ_BLOCK_SUMS) * 4;
            let sum = table.as_ref().and_then(|table| table[entry..].first_chunk());
            let place = index(block) * DMZ_BLOCK_BYTES;
            let whole = sum.and_then(|sum| {
                let sum = u32::from_le_bytes(*sum);
                let here = together.get(place..place + DMZ_BLOCK_BYTES);
                let here = here.filter(|here| checksum(here) == sum).map(<[u8]>::to_vec);
                here.or_else(|| found.block(backing, block, sum))
            });
            match whole {
                Some(whole) => bytes[place..place + DMZ_BLOCK_BYTES].copy_from_slice(&whole),
                None => lost.push(block),
            }
        }
    }
    let healed = found.healed;
    Ok(Chosen { set, layout, root, bytes, healed, lost })
}

/// Blocks of a set, looked for in both.
struct Found {
    /// Where they begin, the one that counts first.
    places: [u64; 2],
    healed: u64,
}

impl Found {
    /// A block with such a checksum. A set that cannot be read there does not have it.
    fn block(&mut self, backing: &mut dyn Backing, block: u32, sum: u32) -> Option<Vec<u8>> {
        let mut bytes = vec![0; DMZ_BLOCK_BYTES];
        for (at, place) in self.places.into_iter().enumerate() {
            let is_read = read(backing, 0, place + u64::from(block), &mut bytes).is_ok();
            if is_read && checksum(&bytes) == sum {
                self.healed += u64::from(at > 0);
                return Some(bytes);
            }
        }
        None
    }
}

/// Makes both metadata sets what counts. Gives how many blocks of the other one differed.
pub(crate) fn make_equal(
    backing: &mut dyn Backing,
    geometry: &Geometry,
    chosen: &Chosen,
    (identity, sums): (&Identity, &Sums),
    roots: &Roots,
) -> Result<u64, MountError> {
    let Chosen { set, layout, root, bytes, .. } = chosen;
    // What the device has no checksums of yet gets them with the next flush.
    let tables: Vec<Block> = sums.tables().filter(|_| !sums.is_new()).collect();
    let mut differed = 0;
    for set in [*set, 1 - *set] {
        let at = layout.set_block(geometry, set);
        differed = copy_set(backing, at, bytes)?;
        for (block, wanted) in &tables {
            let mut found = vec![0; DMZ_BLOCK_BYTES];
            let at = at + u64::from(*block);
            if backing.read(0, at, &mut found).is_err() || found != *wanted {
                write(backing, 0, at, wanted)?;
                differed += 1;
            }
        }
    }
    let other = 1 - set;
    if differed > 0 || chosen.healed > 0 || !roots.is_current(other, root.generation) {
        flush(backing, 0)?;
        let record = identity.root(geometry, layout, other, Stored::of(root)).encode();
        write(backing, 0, layout.set_block(geometry, other), &record[..])?;
        flush(backing, 0)?;
    }
    Ok(differed)
}

/// The blocks in which two metadata sets differ, root records aside, with their bytes in the first one.
pub(crate) fn differing<'a>(
    set: &'a [u8],
    other: &'a [u8],
) -> impl Iterator<Item = (u64, &'a [u8])> {
    let blocks = set.chunks(DMZ_BLOCK_BYTES).zip(other.chunks(DMZ_BLOCK_BYTES));
    (0..).zip(blocks).skip(1).filter(|(_, (new, old))| new != old).map(|(at, (new, _))| (at, new))
}

/// Makes the metadata set at a block equal to `set`, but for the root record. Gives how many blocks differed.
fn copy_set(backing: &mut dyn Backing, at: u64, set: &[u8]) -> Result<u64, MountError> {
    // What cannot be read is written.
    let found = read_set(backing, at, u32_from(set.len() / DMZ_BLOCK_BYTES))
        .unwrap_or_else(|_| set.iter().map(|byte| !byte).collect());
    let mut repaired = 0;
    for (block, new) in differing(set, &found) {
        write(backing, 0, at + block, new)?;
        repaired += 1;
    }
    Ok(repaired)
}
