//! Which pages were touched, how often and when each was written.

use std::collections::BTreeMap;

use onefold_units::convert::{index, index64, low32, u32_from, u64_from};

use super::gaps::Gaps;

/// Pages per group: small enough that scattered pages waste little, one word of bits.
const GROUP: u64 = 64;

/// Groups per entry of the map.
const ROW: u64 = 256;

#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    writes: u32,
    /// Time of the last write, split so that a cell has 12 bytes.
    last_low: u32,
    last_high: u32,
}

#[derive(Clone, Debug, Default)]
struct Group {
    touched: u64,
    cells: Option<Box<[Cell; 64]>>,
}

/// Pages of one device.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageTable {
    /// By group number / 256: places of 256 neighbouring groups, plus 1; 0 is none. Two levels,
    /// because a map of single groups is several times slower on scattered addresses.
    places: BTreeMap<u64, Box<[u32; 256]>>,
    groups: Vec<Group>,
    /// The group used last: neighbours are common.
    recent: Option<(u64, u32)>,
    touched: u64,
    written: u64,
}

impl PageTable {
    /// Distinct pages.
    pub(crate) const fn touched(&self) -> u64 {
        self.touched
    }

    /// Distinct pages written.
    pub(crate) const fn written(&self) -> u64 {
        self.written
    }

    pub(crate) fn read(&mut self, first: u64, count: u64) {
        for_each_group(first, count, |number, from, len| {
            self.touch(number, from, len);
        });
    }

    pub(crate) fn write(&mut self, first: u64, count: u64, t_ns: u64, gaps: &mut Gaps) {
        for_each_group(first, count, |number, from, len| {
            let place = self.touch(number, from, len);
            let Some(group) = self.groups.get_mut(index(place)) else { return };
            let cells = group.cells.get_or_insert_with(|| Box::new([Cell::default(); 64]));
            let mut new = 0;
            for cell in cells.iter_mut().skip(index64(from)).take(index64(len)) {
                if cell.writes == 0 {
                    new += 1;
                } else {
                    let last = u64::from(cell.last_high) << 32 | u64::from(cell.last_low);
                    gaps.add(t_ns.saturating_sub(last));
                }
                cell.writes = cell.writes.saturating_add(1);
                (cell.last_low, cell.last_high) = (low32(t_ns), low32(t_ns >> 32));
            }
            self.written += new;
        });
    }

    /// Marks `len` pages from `from` of a group; returns the place of the group.
    fn touch(&mut self, number: u64, from: u64, len: u64) -> u32 {
        let place = match self.recent {
            Some((recent, place)) if recent == number => place,
            _ => self.find(number),
        };
        self.recent = Some((number, place));
        let ones = if len == GROUP { u64::MAX } else { (1 << len) - 1 };
        if let Some(group) = self.groups.get_mut(index(place)) {
            let mask = ones << from;
            self.touched += u64::from((mask & !group.touched).count_ones());
            group.touched |= mask;
        }
        place
    }

    /// The place of a group, which is made if it is new.
    fn find(&mut self, number: u64) -> u32 {
        let row = self.places.entry(number / ROW).or_insert_with(|| Box::new([0; 256]));
        let Some(place) = row.get_mut(index64(number % ROW)) else { return 0 };
        if *place == 0 {
            self.groups.push(Group::default());
            *place = u32_from(self.groups.len());
        }
        *place - 1
    }

    /// Adds to `by_count` how many pages were written how often.
    pub(crate) fn count_writes(&self, by_count: &mut BTreeMap<u32, u64>) {
        // Most pages have few writes: count those without the map.
        let mut few = [0_u64; 64];
        for cell in self.groups.iter().filter_map(|group| group.cells.as_deref()).flatten() {
            match few.get_mut(index(cell.writes)) {
                Some(count) => *count += 1,
                None => *by_count.entry(cell.writes).or_default() += 1,
            }
        }
        for (writes, pages) in few.iter().enumerate().skip(1).filter(|(_, pages)| **pages > 0) {
            *by_count.entry(low32(u64_from(writes))).or_default() += pages;
        }
    }
}

/// Cuts pages at the borders of groups: group number, first page in it, pages.
fn for_each_group(first: u64, count: u64, mut visit: impl FnMut(u64, u64, u64)) {
    let mut page = first;
    let mut left = count;
    while left > 0 {
        let from = page % GROUP;
        let len = left.min(GROUP - from);
        visit(page / GROUP, from, len);
        page += len;
        left -= len;
    }
}

#[cfg(test)]
mod tests {
    use super::{Gaps, PageTable};
    use onefold_units::convert::u64_from;
    use std::collections::BTreeMap;

    #[test]
    fn distinct_pages_match_a_model() {
        let mut table = PageTable::default();
        let mut gaps = Gaps::default();
        let mut touched = std::collections::BTreeSet::new();
        let mut writes: BTreeMap<u64, u64> = BTreeMap::new();
        let mut rng = onefold_units::Rng::new(1);
        for t in 0..2_000 {
            let (first, count) = (rng.below(5_000), 1 + rng.below(200));
            touched.extend(first..first + count);
            if t % 3 == 0 {
                table.read(first, count);
            } else {
                table.write(first, count, t, &mut gaps);
                for page in first..first + count {
                    *writes.entry(page).or_default() += 1;
                }
            }
        }
        assert_eq!(table.touched(), u64_from(touched.len()));
        assert_eq!(table.written(), u64_from(writes.len()));
        let mut by_count = BTreeMap::new();
        table.count_writes(&mut by_count);
        let total: u64 = by_count.iter().map(|(count, pages)| u64::from(*count) * pages).sum();
        assert_eq!(total, writes.values().sum::<u64>());
    }
}
