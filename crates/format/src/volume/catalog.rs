//! The body of a checkpoint of the modes `sung` and `han`, in body blocks: number of the next image 8 | number of
//! partitions 4 | partitions of 13 B: slot of the image 1 (0: no entry, else 1 or 2), entries 4, number of the
//! image 8 | number of free regions 4 | extents of 8 B, in order of use.

use super::BlockError;
use super::extent::Extent;
use super::fields::Fields;
use super::fields::put_count;

/// Where the table of a partition lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TablePlace {
    /// Which of its two slots, 1 or 2; 0: the table is empty.
    pub slot: u8,
    /// Its entries.
    pub entries: u32,
    /// Number of the image.
    pub image: u64,
}

impl TablePlace {
    const BYTES: usize = 13;

    fn read(fields: &mut Fields<'_>) -> Result<Self, BlockError> {
        let place = Self { slot: fields.u8()?, entries: fields.u32()?, image: fields.u64()? };
        let empty = place.slot == 0 && place.entries == 0;
        let malformed = BlockError::Malformed("the table of a partition is in no slot");
        if empty || matches!(place.slot, 1 | 2) { Ok(place) } else { Err(malformed) }
    }
}

/// The body of a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalog {
    /// Number of the next image.
    pub next_image: u64,
    /// The tables, by partition.
    pub tables: Vec<TablePlace>,
    /// Space for new data, in order of use.
    pub regions: Vec<Extent>,
}

impl Catalog {
    /// Bytes for so many partitions and regions.
    #[must_use]
    pub const fn bytes(partitions: usize, regions: usize) -> usize {
        16 + TablePlace::BYTES * partitions + Extent::BYTES * regions
    }

    /// The stream. Panics if a region is not valid.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::bytes(self.tables.len(), self.regions.len()));
        bytes.extend(self.next_image.to_le_bytes());
        put_count(&mut bytes, self.tables.len());
        for place in &self.tables {
            bytes.push(place.slot);
            bytes.extend(place.entries.to_le_bytes());
            bytes.extend(place.image.to_le_bytes());
        }
        put_count(&mut bytes, self.regions.len());
        for region in &self.regions {
            bytes.extend(region.to_bytes());
        }
        bytes
    }

    /// Reads the stream.
    ///
    /// # Errors
    /// [`BlockError::Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, BlockError> {
        let mut fields = Fields::new(bytes);
        let next_image = fields.u64()?;
        let tables = fields.counted_list(TablePlace::BYTES, TablePlace::read)?;
        let regions = fields.counted_list(Extent::BYTES, Extent::read)?;
        fields.end()?;
        Ok(Self { next_image, tables, regions })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::content;
    use super::{Catalog, Extent, TablePlace};
    use onefold_units::Location;
    use proptest::prelude::{prop_assert_eq, proptest};

    fn catalog() -> Catalog {
        let place = TablePlace { slot: 2, entries: 0x0403_0201, image: 5 };
        Catalog {
            next_image: 6,
            tables: vec![TablePlace::default(), place],
            regions: vec![Extent { location: Location::new(7), blocks: 8 }],
        }
    }

    #[test]
    fn golden_there_and_back() {
        let bytes = catalog().encode();
        assert_eq!(bytes.len(), Catalog::bytes(2, 1));
        assert_eq!(bytes[..12], [6, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0]);
        assert_eq!(bytes[25..38], [2, 1, 2, 3, 4, 5, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[38..], [1, 0, 0, 0, 7, 0, 0, 0, 8, 0, 0, 0]);
        assert_eq!(Catalog::decode(&bytes), Ok(catalog()));
    }

    #[test]
    fn content_that_is_no_catalog_is_refused() {
        let bytes = catalog().encode();
        for cut in 0..bytes.len() {
            assert!(Catalog::decode(&bytes[..cut]).is_err(), "{cut} bytes");
        }
        for (at, value) in [(12, 1), (12, 3), (25, 3), (8, 255), (38, 2), (46, 0)] {
            let mut wrong = bytes.clone();
            wrong[at] = value;
            let accepted = Catalog::decode(&wrong).is_ok();
            assert_eq!(accepted, (at, value) == (12, 1), "{value} at {at}");
        }
        assert!(Catalog::decode(&[&bytes[..], &[0]].concat()).is_err());
    }

    proptest! {
        #[test]
        fn any_content_is_a_catalog_or_refused(content in content(200)) {
            if let Ok(catalog) = Catalog::decode(&content) {
                prop_assert_eq!(Catalog::decode(&catalog.encode()), Ok(catalog));
            }
        }
    }
}
