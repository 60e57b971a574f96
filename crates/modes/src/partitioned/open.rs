//! Making and opening volumes of the modes `sung` and `han`.
//!
//! Opening reads the newest root, its catalog and tables, and applies the log blocks behind it in
//! order (`replay.rs`). It ends with a checkpoint (V10); before that counts the backing is as it
//! was, so an opening that is cut is begun again with the same result.

use onefold_format::volume::{
    BLOCK_BYTES, BlockError, BodyBlock, Catalog, Root, TABLE_BLOCK_ENTRIES, TableBlock, TableEntry,
    VolumeLabel,
};
use onefold_units::convert::{index, u32_from};
use onefold_units::{Location, Nanos};
use onefold_volume::parts::{damaged, fetch, locations, newest_in_slots};
use onefold_volume::{
    Backing, Engine, Frozen, IoFailed, MountError, Options, Recovery, Stats, ZoneError, settle,
};

use super::PartitionedVolume;
use super::area::Areas;
use super::regions::Regions;
use super::replay::{READ_BLOCKS, read_each};
use super::table::Table;

/// Makes an empty volume. What the backing held is lost.
pub(crate) fn format(backing: &mut dyn Backing, label: &VolumeLabel) -> Result<(), MountError> {
    let areas = Areas::of(label)?;
    if backing.zones().is_ok_and(|zones| zones.is_some()) {
        return Err(ZoneError::Mode { mode: label.mode }.into());
    }
    let failed = |_: IoFailed| MountError::Backing("its old labels and roots were cleared");
    for at in areas.labels().iter().chain(areas.roots()) {
        backing.write(*at, &[0; BLOCK_BYTES]).map_err(failed)?;
    }
    backing.flush().map_err(failed)?;
    let mut volume = PartitionedVolume::blank(areas, Options::default(), label.uuid);
    volume.close();
    if !settle(&mut volume, backing, Nanos::ZERO) {
        return Err(MountError::Backing("the first checkpoint was written"));
    }
    let failed = |_: IoFailed| MountError::Backing("the labels were written");
    for at in volume.areas.labels() {
        backing.write(*at, &label.encode(*at)[..]).map_err(failed)?;
    }
    backing.flush().map_err(failed)
}

/// Opens a volume.
pub(crate) fn mount(
    backing: &mut dyn Backing,
    blocks: u64,
    label: &VolumeLabel,
    options: Options,
) -> Result<(PartitionedVolume, Recovery), MountError> {
    let (mut volume, recovery, durable) = find_state(backing, blocks, label, options)?;
    if recovery.seq < durable {
        return Err(MountError::Lost { missing: recovery.seq + 1, last: recovery.seq });
    }
    volume.incarnation += 1;
    volume.want_checkpoint();
    if !settle(&mut volume, backing, Nanos::ZERO) {
        return Err(MountError::Backing("the checkpoint of the opening was written"));
    }
    volume.stats = Stats::default();
    volume.tables.probes = 0;
    Ok((volume, recovery))
}

/// Opens a volume for reading only, up to what is missing; gives the number of the last transaction
/// that was durable.
pub(crate) fn mount_read_only(
    backing: &mut dyn Backing,
    blocks: u64,
    label: &VolumeLabel,
    options: Options,
) -> Result<(PartitionedVolume, Recovery, u64), MountError> {
    let (mut volume, recovery, durable) = find_state(backing, blocks, label, options)?;
    volume.freeze(Frozen::ReadOnly);
    Ok((volume, recovery, durable))
}

fn find_state(
    backing: &mut dyn Backing,
    blocks: u64,
    label: &VolumeLabel,
    options: Options,
) -> Result<(PartitionedVolume, Recovery, u64), MountError> {
    // Those that other modes know mean nothing here.
    if label.incompat != 0 {
        return Err(MountError::Label(BlockError::Features { unknown: label.incompat }));
    }
    let areas = Areas::of(label)?;
    let expected = areas.backing_blocks();
    if blocks < expected {
        return Err(MountError::Shrunk { found: blocks, expected });
    }
    let root = newest_in_slots(backing, areas.roots(), &label.uuid)?;
    let mut volume = PartitionedVolume::blank(areas, options, label.uuid);
    volume.incarnation = root.incarnation;
    volume.checkpoint.generation = root.generation;
    let catalog_at = volume.load_catalog(backing, &root)?;
    volume.load_tables(backing)?;
    volume.check_entries(catalog_at)?;
    let mut recovery = Recovery { clean: root.clean, ..Recovery::default() };
    let durable = volume.replay(backing, root.seq.raw(), &mut recovery)?;
    Ok((volume, recovery, durable))
}

impl PartitionedVolume {
    fn load_catalog(
        &mut self,
        backing: &mut dyn Backing,
        root: &Root,
    ) -> Result<Location, MountError> {
        let mut bytes = Vec::new();
        let places = locations(&root.body.extents);
        for at in &places {
            let block = fetch(backing, "catalog", *at)?;
            let part = BodyBlock::decode(&block[..], &self.uuid, at.raw().into());
            bytes.extend_from_slice(part.map_err(damaged("catalog", *at))?.payload);
        }
        let first = places.first().copied().unwrap_or(Location::new(0));
        root.body.verify(&bytes).map_err(damaged("catalog", first))?;
        let catalog = Catalog::decode(&bytes).map_err(damaged("catalog", first))?;
        let malformed = |why| damaged("catalog", first)(BlockError::Malformed(why));
        if catalog.tables.len() != self.tables.list.len() {
            return Err(malformed("it has another number of partitions than the label"));
        }
        let inside = |extent: &onefold_format::volume::Extent| {
            let start = extent.location.raw();
            let pieces = self.areas.data();
            pieces.iter().any(|piece| piece.contains(&start) && extent.blocks <= piece.end - start)
        };
        if !catalog.regions.iter().all(inside) {
            return Err(malformed("a free region leaves the data"));
        }
        for (partition, place) in self.tables.list.iter_mut().zip(&catalog.tables) {
            partition.place = *place;
        }
        self.checkpoint.next_image = catalog.next_image;
        self.regions = Regions::of(&catalog.regions);
        self.current = self.areas.partition_written(self.regions.position());
        Ok(first)
    }

    fn load_tables(&mut self, backing: &mut dyn Backing) -> Result<(), MountError> {
        for number in 0..self.tables.list.len() {
            let entries = self.load_table(backing, number)?;
            self.tables.list[number].table = Table::of(&entries);
        }
        Ok(())
    }

    fn load_table(
        &self,
        backing: &mut dyn Backing,
        number: usize,
    ) -> Result<Vec<TableEntry>, MountError> {
        let place = self.tables.list[number].place;
        let mut entries: Vec<TableEntry> = Vec::new();
        if place.slot == 0 {
            return Ok(entries);
        }
        let wanted = index(place.entries);
        let start = self.areas.slot_at(number, place.slot);
        let room = self.areas.slot_entries();
        let blocks = u32_from(wanted.min(room).div_ceil(TABLE_BLOCK_ENTRIES));
        read_each(backing, "table", start..start + blocks, READ_BLOCKS, |at, bytes| {
            let at = Location::new(at);
            let table = TableBlock::decode(bytes, &self.uuid, at.raw().into());
            let table = table.map_err(damaged("table", at))?;
            let ours = table.image == place.image && index(table.partition.into()) == number;
            let ascend = entries.last().is_none_or(|last| table.entries.first() > Some(last));
            if !ours || !ascend {
                let why = BlockError::Malformed("it belongs to another image of the table");
                return Err(damaged("table", at)(why));
            }
            entries.extend(table.entries);
            Ok(true)
        })?;
        if entries.len() == wanted {
            return Ok(entries);
        }
        let why = BlockError::Malformed("the table is not as long as the catalog says");
        Err(damaged("table", Location::new(start))(why))
    }

    /// Entries lie in their partition, and name blocks that there are.
    fn check_entries(&self, catalog: Location) -> Result<(), MountError> {
        for (number, partition) in self.tables.list.iter().enumerate() {
            let range = self.areas.partition(number);
            let good = |entry: &TableEntry| {
                let at = entry.to.raw();
                u64::from(entry.lba) < self.areas.logical_blocks()
                    && range.contains(&at)
                    && self.areas.is_data(at)
            };
            if !partition.table.iter().all(good) {
                let why = BlockError::Malformed("an entry of a table leaves its partition");
                return Err(damaged("catalog", catalog)(why));
            }
        }
        Ok(())
    }
}
