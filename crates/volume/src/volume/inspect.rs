//! Looking at a volume without changing it: every copy of what there are several of, what the newest root points to, each
//! entry of the map, and the data if asked for.

use std::collections::BTreeMap;

use onefold_format::volume::{Root, SegmentState, VolumeLabel};
use onefold_units::convert::{index64, u64_from};
use onefold_units::{Lba, Location, LogSegmentId, Nanos, ZoneId};

use crate::backing::{Backing, drive, read_block};
use crate::config::Options;
use crate::error::MountError;
use crate::findings::{Finding, Findings, Inspection};
use crate::limits::BLOCK;
use crate::map::page::PAGE_ENTRIES_U64;
use crate::map::{Map, Ready};
use crate::range::Range;
use crate::snapshots::{MemberId, Spot};
use crate::volume::Volume;
use crate::volume::recovery::{layout_of, mount_read_only, read_label};
use crate::zones::layout_on;

/// Looks at the volume of mode `log` on a backing of so many blocks; at all its data with `data`.
///
/// # Errors
/// There is no volume of this mode that could be opened.
pub fn inspect(
    backing: &mut dyn Backing,
    blocks: u64,
    data: bool,
) -> Result<Inspection, MountError> {
    let label = read_label(backing, blocks)?;
    let (layout, _) = layout_on(backing, layout_of(&label)?)?;
    let mut list = Findings::default();
    // Where roots are appended, opening looks at the last one.
    let slots = if layout.has_root_slots() { layout.roots() } else { &[][..] };
    check_copies(backing, layout.labels(), slots, &label.uuid, &mut list);
    let (mut volume, recovery, durable) = mount_read_only(backing, blocks, Options::default())?;
    if let Some(error) = volume.lost_map() {
        return Err(error.into());
    }
    if recovery.seq < durable {
        list.push(Finding::Lost { last: recovery.seq, durable });
    }
    volume.load_all(backing, &mut list);
    let mapped = volume.check_entries(&mut list);
    let given_up = volume.members.lost_blocks(&volume.map);
    for wrong in volume.recount().unwrap_or_default() {
        list.push(Finding::Miscount(wrong));
    }
    let checked = if data { volume.check_data(backing, &mut list) } else { 0 };
    let members = volume.members().collect();
    Ok(Inspection {
        members,
        lost: given_up,
        faulty: volume.faulty(),
        ..list.into_inspection(label, recovery, mapped, checked)
    })
}

/// Looks at every copy of label and root.
pub fn check_copies(
    backing: &mut dyn Backing,
    labels: &[u64],
    roots: &[u64],
    uuid: &[u8; 16],
    list: &mut Findings,
) {
    for at in labels {
        let whole = read_block(backing, *at)
            .is_ok_and(|block| VolumeLabel::decode(&block[..], *at).is_ok());
        if !whole {
            list.push(Finding::Label { at: *at });
        }
    }
    for at in roots {
        let block = read_block(backing, *at).ok();
        let blank = block.as_ref().is_some_and(|block| block.iter().all(|byte| *byte == 0));
        if !blank && block.is_none_or(|block| Root::decode(&block[..], uuid, *at).is_err()) {
            list.push(Finding::Root { at: *at });
        }
    }
}

impl Volume {
    /// Reads all of the map, whatever the limit of pages in memory is: who looks at all of it needs them together.
    pub(crate) fn load_all(&mut self, backing: &mut dyn Backing, list: &mut Findings) {
        for slot in self.members.slots().collect::<Vec<_>>() {
            let member = self.members.id_of(slot);
            for page in 0..self.map.pages_of(slot) {
                let key = Map::key(slot, page);
                if self.map.ready(key) == Ready::Missing {
                    self.load_pages(&[key], false);
                    drive(self, backing, Nanos::ZERO);
                }
                if self.map.ready(key) == Ready::Damaged {
                    let lba = Lba::new(u64_from(page) * PAGE_ENTRIES_U64);
                    list.push(Finding::Page { member, lba });
                }
            }
        }
        self.all_counted();
    }

    /// Every mapped block lies in a log segment that holds data, and no other block lies there.
    fn check_entries(&mut self, list: &mut Findings) -> u64 {
        let mut taken = vec![0_u8; index64(self.layout.geometry().backing_blocks)];
        let mut offline: BTreeMap<LogSegmentId, u64> = BTreeMap::new();
        let mut mapped = 0;
        for lba in (0..self.members.largest()).map(Lba::new) {
            for (at, (member, _)) in self.members.entries_of(&self.map, lba) {
                mapped += 1;
                let segment = self.layout.segment_of(at);
                let data = segment.raw() < self.layout.segments()
                    && !matches!(
                        self.segments.of(segment).state,
                        SegmentState::Free | SegmentState::Fixed
                    );
                if !data {
                    list.push(Finding::Outside { member, lba, at });
                    continue;
                }
                let (block, slot) = self.layout.split(at);
                let quarters = &mut taken[block.index()];
                let shared = *quarters & slot.mask() != 0;
                *quarters |= slot.mask();
                if shared {
                    list.push(Finding::Shared { member, lba, at });
                } else if self.segments.of(segment).gone {
                    *offline.entry(segment).or_default() += 1;
                }
            }
        }
        for (segment, blocks) in offline {
            list.push(Finding::Offline { zone: ZoneId::new(segment.raw()), blocks });
        }
        mapped
    }

    fn check_data(&mut self, backing: &mut dyn Backing, list: &mut Findings) -> u64 {
        let mut checked = 0;
        let mut block = [0; BLOCK];
        for lba in (0..self.members.largest()).map(Lba::new) {
            for (at, (member, crc)) in self.members.entries_of(&self.map, lba) {
                checked += 1;
                let read = backing.read(self.layout.block_of(at).raw().into(), &mut block);
                if read.is_err() || !self.layout.is_in(at, &block, crc) {
                    list.push(Finding::Data { member, lba, at });
                }
            }
        }
        checked
    }

    /// Where a block of a member lies and its checksum, for those who look closely. The page is read if need be.
    pub fn look_up(
        &mut self,
        backing: &mut dyn Backing,
        member: MemberId,
        lba: Lba,
    ) -> Option<(Location, u32)> {
        for _ in 0..3 {
            if self.mapped_of(member, Range { lba, blocks: 1 }).is_ok() {
                let slot = self.members.slot_of(member)?;
                let entry = self.map.peek(Spot { slot, lba }.in_map());
                return Some((entry.at, entry.crc));
            }
            drive(self, backing, Nanos::ZERO);
        }
        None
    }
}
