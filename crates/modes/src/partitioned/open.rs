//! Making and opening volumes of the modes `sung` and `han`.
//!
//! Opening reads the newest root, its catalog and tables, and applies the log blocks behind it in
//! order, as long as Begin, Commit and checksum agree (Sung 2022, sec. III-E). It ends with a
//! checkpoint (V10); before that counts the backing is as it was, so an opening that is cut is
//! begun again with the same result.

use onefold_format::volume::{
    BLOCK_BYTES, BlockError, BodyBlock, Catalog, Root, TABLE_BLOCK_ENTRIES, TableBlock, TableEntry,
    Transaction, VolumeLabel,
};
use onefold_units::convert::{index, u32_from};
use onefold_units::{Location, Nanos, Seq};
use onefold_volume::parts::{damaged, fetch, locations, newest_in_slots, read_block};
use onefold_volume::{
    Backing, Engine, Frozen, IoFailed, MountError, Options, Recovery, Stats, ZoneError, settle,
};

use super::PartitionedVolume;
use super::area::Areas;
use super::regions::Regions;
use super::table::Table;
use super::tables::Change;

/// Blocks side by side that were lost to discarded transactions and are worth being a region.
const GAP_BLOCKS_MIN: u32 = 64;

/// Makes an empty volume. What the backing held is lost.
pub(crate) fn format<B: Backing>(backing: &mut B, label: &VolumeLabel) -> Result<(), MountError> {
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
pub(crate) fn mount<B: Backing>(
    backing: &mut B,
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
pub(crate) fn mount_read_only<B: Backing>(
    backing: &mut B,
    blocks: u64,
    label: &VolumeLabel,
    options: Options,
) -> Result<(PartitionedVolume, Recovery, u64), MountError> {
    let (mut volume, recovery, durable) = find_state(backing, blocks, label, options)?;
    volume.freeze(Frozen::ReadOnly);
    Ok((volume, recovery, durable))
}

fn find_state<B: Backing>(
    backing: &mut B,
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
    fn load_catalog<B: Backing>(
        &mut self,
        backing: &mut B,
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

    fn load_tables<B: Backing>(&mut self, backing: &mut B) -> Result<(), MountError> {
        for number in 0..self.tables.list.len() {
            let entries = self.load_table(backing, number)?;
            self.tables.list[number].table = Table::of(&entries);
        }
        Ok(())
    }

    fn load_table<B: Backing>(
        &self,
        backing: &mut B,
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
        for block in 0..u32_from(wanted.min(room).div_ceil(TABLE_BLOCK_ENTRIES)) {
            let at = Location::new(start + block);
            let bytes = fetch(backing, "table", at)?;
            let table = TableBlock::decode(&bytes[..], &self.uuid, at.raw().into());
            let table = table.map_err(damaged("table", at))?;
            let ours = table.image == place.image && index(table.partition.into()) == number;
            let ascend = entries.last().is_none_or(|last| table.entries.first() > Some(last));
            if !ours || !ascend {
                let why = BlockError::Malformed("it belongs to another image of the table");
                return Err(damaged("table", at)(why));
            }
            entries.extend(table.entries);
        }
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

    /// Applies the transactions behind `seq`. Gives the number of the last one that was durable.
    fn replay<B: Backing>(
        &mut self,
        backing: &mut B,
        seq: u64,
        recovery: &mut Recovery,
    ) -> Result<u64, MountError> {
        let mut found = Vec::new();
        for file in 0..self.areas.rules().files {
            self.read_file(backing, file, seq, &mut found, recovery)?;
        }
        found.sort_by_key(|transaction| transaction.seq);
        let mut last = seq;
        for transaction in &found {
            if transaction.seq.raw() != last + 1 {
                break;
            }
            last += 1;
            for pair in &transaction.pairs {
                let from = self.tables.find(pair.lba);
                let to = pair.to.raw();
                let change = if pair.to.is_block() { Change::Write { to } } else { Change::Trim };
                self.tables.apply(&self.areas, pair.lba, from, change);
                self.regions.used(to);
            }
        }
        for number in 0..self.tables.list.len() {
            self.tidy(number);
        }
        self.tables.measure();
        self.journal = super::Journal::new(last, self.options.transaction_pairs);
        self.current = self.areas.partition_written(self.regions.position());
        self.free_after_cleaning = self.regions.blocks();
        (recovery.seq, recovery.batches) = (last, last - seq);
        Ok(found.last().map_or(seq, |newest| newest.seq.raw()))
    }

    /// One entry for each block of a partition, and no space lost to transactions that were
    /// discarded: their addresses are reused (Sung 2022, sec. III-E). Short gaps are left to the
    /// cleaner.
    fn tidy(&mut self, number: usize) {
        let range = self.areas.partition(number);
        let mut taken = vec![false; index(range.end - range.start)];
        let table = &mut self.tables.list[number].table;
        let mut take = |at: u32| !std::mem::replace(&mut taken[index(at - range.start)], true);
        table.iter().filter(|entry| !entry.invalid).for_each(|entry| {
            take(entry.to.raw());
        });
        // A block that the cleaner filled still has the entry of the hole.
        table.retain_invalid(&mut take);
        for free in self.regions.pieces() {
            for at in free.start.max(range.start)..free.end.min(range.end) {
                take(at);
            }
        }
        let mut gap = range.start..range.start;
        for at in range.clone() {
            let blank = self.areas.is_data(at) && !taken[index(at - range.start)];
            if blank {
                gap.end = at + 1;
            }
            if !blank || at + 1 == range.end {
                if gap.end - gap.start >= GAP_BLOCKS_MIN {
                    self.regions.add(gap);
                }
                gap = at + 1..at + 1;
            }
        }
    }

    /// Reads a log or map file up to its end: one block that is none may be torn, what lies behind
    /// would be a gap.
    fn read_file<B: Backing>(
        &self,
        backing: &mut B,
        file: u32,
        seq: u64,
        found: &mut Vec<Transaction>,
        recovery: &mut Recovery,
    ) -> Result<(), MountError> {
        let (mut last, mut misses) = (Seq::new(seq), 0);
        for block in 0..self.areas.file_blocks() {
            let at = self.areas.file_at(file, block);
            recovery.headers += 1;
            let bytes = read_block(backing, at.into())
                .map_err(|_| MountError::Read { what: "log block", at: at.into() })?;
            let decoded = Transaction::decode(&bytes[..], &self.uuid, at).ok();
            let ours = decoded.filter(|one| {
                one.incarnation == self.incarnation
                    && u32::from(one.file) == file
                    && one.seq > last
                    && self.is_possible(one)
            });
            match ours {
                Some(transaction) => {
                    last = transaction.seq;
                    found.push(transaction);
                }
                None if misses == 1 => return Ok(()),
                None => misses += 1,
            }
        }
        Ok(())
    }

    fn is_possible(&self, transaction: &Transaction) -> bool {
        let logical = self.areas.logical_blocks();
        transaction.pairs.iter().all(|pair| {
            let placed = pair.to == Location::UNMAPPED || self.areas.is_data(pair.to.raw());
            u64::from(pair.lba) < logical && placed
        })
    }
}
