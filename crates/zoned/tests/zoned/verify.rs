//! What `dmzadm --check` looks at, read from the bytes on the devices and with none of the code of the volume.

use onefold_units::convert::{index, index64, u64_from};
use onefold_zoned::{Geometry, ZoneKind};

use crate::disk::{BLOCK, Disks};

fn crc32(start: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(start, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 }
        })
    })
}

/// Both sets as the kernel target writes them: their checksums are of another generation.
pub(crate) fn forget_sums(disks: &mut Disks, set_blocks: u64) {
    for set in 0..2 {
        disks.0[0].scribble(set * set_blocks, |root| {
            root[136] ^= 1;
            root[44..48].fill(0);
            let sum = crc32(word(root, 8), root);
            root[44..48].copy_from_slice(&sum.to_le_bytes());
        });
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}

struct Set {
    blocks: Vec<u8>,
    chunks: u32,
    map_blocks: u32,
    /// Blocks in front of the journal block map.
    front: usize,
    generation: u64,
}

impl Set {
    fn read(disks: &mut Disks, zone_blocks: u32, at: u64) -> Result<Self, String> {
        let mut root = vec![0; BLOCK];
        disks.0[0].read(at, &mut root);
        let generation = u64::from(word(&root, 8)) | u64::from(word(&root, 12)) << 32;
        let (sum, start) = (word(&root, 44), word(&root, 8));
        root[44..48].fill(0);
        let journal = word(&root, 112);
        let version = if journal > 0 { 0x8000_0002 } else { 2 };
        let known = word(&root, 0) == 0x445A_4244 && word(&root, 4) == version;
        if !known || crc32(start, &root) != sum {
            return Err(format!("no valid root record at block {at}"));
        }
        if u64::from(word(&root, 16)) != at {
            return Err(format!("the root record at block {at} names another"));
        }
        let count = word(&root, 24);
        if count != 1 + word(&root, 36) + word(&root, 40) || count > 16 * zone_blocks {
            return Err("sizes that do not add up".to_owned());
        }
        let mut blocks = vec![0; index(count + journal) * BLOCK];
        disks.0[0].read(at, &mut blocks);
        let (chunks, map_blocks, front) = (word(&root, 32), word(&root, 36), index(count));
        Ok(Self { blocks, chunks, map_blocks, front, generation })
    }

    /// The zones of the journal zone set, with their slots.
    fn journal_zones(&self) -> Vec<(u32, usize)> {
        let Some(map) = self.blocks.get(self.front * BLOCK..).filter(|map| !map.is_empty()) else {
            return Vec::new();
        };
        let slots = (0..index(word(map, 4))).map(|slot| (word(map, 16 + 16 * slot), slot));
        slots.filter(|(zone, _)| *zone != u32::MAX).collect()
    }

    /// Blocks of the volume that are valid in the set.
    fn journal_blocks(&self, zone_blocks: u32) -> Vec<u32> {
        let mut found = Vec::new();
        for (zone, slot) in self.journal_zones() {
            let valid = (0..zone_blocks).filter(|block| self.is_valid(zone, *block));
            let at = |block: u32| {
                (self.front + 1) * BLOCK + (slot * index(zone_blocks) + index(block)) * 8
            };
            found.extend(valid.map(|block| word(&self.blocks, at(block))));
        }
        found
    }

    fn entry(&self, chunk: u32) -> (u32, u32) {
        let at = BLOCK + index(chunk) * 8;
        (word(&self.blocks, at), word(&self.blocks, at + 4))
    }

    fn is_valid(&self, zone: u32, block: u32) -> bool {
        let at = (1 + index(self.map_blocks) + index(zone)) * BLOCK + index(block) / 8;
        self.blocks[at] >> (block % 8) & 1 == 1
    }

    fn weight(&self, zone: u32, from: u32, to: u32) -> usize {
        (from..to).filter(|block| self.is_valid(zone, *block)).count()
    }
}

/// Checks both metadata sets of a volume that is open or was just opened, whose metadata is flushed.
pub(crate) fn verify(disks: &mut Disks, geometry: &Geometry) -> Result<(), String> {
    let mut disks = disks.clone();
    let first = Set::read(&mut disks, geometry.zone_blocks(), 0)?;
    let zones = first.front.div_ceil(index(geometry.zone_blocks()));
    let at = u64_from(zones) * u64::from(geometry.zone_blocks());
    let second = Set::read(&mut disks, geometry.zone_blocks(), at)?;
    if first.generation != second.generation || first.blocks[BLOCK..] != second.blocks[BLOCK..] {
        return Err("the metadata sets differ".to_owned());
    }
    verify_map(&first, geometry)?;
    for id in geometry.ids() {
        let zone = id.raw();
        let device = geometry.device_of(id);
        let is_sequential = geometry.kind(id) == ZoneKind::Sequential;
        let all = geometry.zone_blocks();
        let written = if is_sequential {
            let within = geometry.start(id) / u64::from(all);
            let conventional = u64::from(geometry.device(device).conventional);
            disks.0[device].written(index64(within - conventional))
        } else {
            all
        };
        let chunk = (0..first.chunks).find(|chunk| {
            let (data, buffer) = first.entry(*chunk);
            data == zone || buffer == zone
        });
        let chunk =
            chunk.or_else(|| first.journal_zones().iter().any(|one| one.0 == zone).then_some(0));
        let is_copy = device > 0 && id == geometry.first_zone(device);
        match chunk {
            None if first.weight(zone, 0, all) > 0 => {
                return Err(format!("zone {zone} is not mapped but has valid blocks"));
            }
            None if is_sequential && written > 0 && !is_copy => {
                return Err(format!("zone {zone} is not mapped but not empty"));
            }
            Some(_) if first.weight(zone, written, all) > 0 => {
                return Err(format!("zone {zone} has valid blocks behind its write pointer"));
            }
            _ => {}
        }
    }
    Ok(())
}

fn verify_map(set: &Set, geometry: &Geometry) -> Result<(), String> {
    let none = u32::MAX;
    let mut taken = vec![false; index(geometry.zones())];
    for (zone, _) in set.journal_zones() {
        if std::mem::replace(&mut taken[index(zone)], true) {
            return Err(format!("zone {zone} is twice in the journal zone set"));
        }
    }
    let mut journal = set.journal_blocks(geometry.zone_blocks());
    let blocks = journal.len();
    journal.sort_unstable();
    journal.dedup();
    if journal.len() < blocks {
        return Err("a block of the journal lies in two places".to_owned());
    }
    for lba in journal {
        let (chunk, block) = (lba / geometry.zone_blocks(), lba % geometry.zone_blocks());
        let (data, buffer) = set.entry(chunk);
        let zones = [data, buffer].into_iter().filter(|zone| *zone != none);
        if zones.into_iter().any(|zone| set.is_valid(zone, block)) {
            return Err(format!("block {lba} of the journal is valid in its chunk, too"));
        }
    }
    for chunk in 0..set.chunks {
        let (data, buffer) = set.entry(chunk);
        for zone in [data, buffer].into_iter().filter(|zone| *zone != none) {
            if zone >= geometry.zones() || std::mem::replace(&mut taken[index(zone)], true) {
                return Err(format!("chunk {chunk}: zone {zone} is another's or does not exist"));
            }
        }
        if buffer == none {
            continue;
        }
        let kind = |zone| geometry.kind(onefold_units::ZoneId::new(zone));
        if data == none
            || kind(data) != ZoneKind::Sequential
            || kind(buffer) == ZoneKind::Sequential
        {
            return Err(format!("chunk {chunk} has zones {data} and {buffer} of wrong kinds"));
        }
        let both = |block| set.is_valid(data, block) && set.is_valid(buffer, block);
        if (0..geometry.zone_blocks()).any(both) {
            return Err(format!("chunk {chunk} has blocks that are valid twice"));
        }
    }
    Ok(())
}
