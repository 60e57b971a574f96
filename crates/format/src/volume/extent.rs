//! Extent, 8 B: location 4 | blocks 4.

use onefold_units::Location;

use super::BlockError;
use super::fields::Fields;

/// Consecutive blocks of the backing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The first block.
    pub location: Location,
    /// How many, at least 1.
    pub blocks: u32,
}

impl Extent {
    pub(super) const BYTES: usize = 8;

    /// Whether there is a block, and all are places of the backing.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        let end = self.location.checked_add(self.blocks);
        self.blocks > 0 && end.is_some_and(|end| end <= Location::LOST)
    }

    /// Panics if it is not valid.
    pub(super) fn to_bytes(self) -> [u8; Self::BYTES] {
        assert!(self.is_valid(), "{self:?} is no extent of a backing");
        let packed = u64::from(self.location.raw()) | u64::from(self.blocks) << 32;
        packed.to_le_bytes()
    }

    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Self, BlockError> {
        let extent = Self { location: fields.location()?, blocks: fields.u32()? };
        let malformed = BlockError::Malformed("an extent is empty or ends past the backing");
        if extent.is_valid() { Ok(extent) } else { Err(malformed) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fields::Fields;
    use super::Extent;
    use onefold_units::Location;

    #[test]
    fn an_extent_lies_on_the_backing() {
        let extent = |location, blocks| Extent { location: Location::new(location), blocks };
        let last = u32::MAX - 2;
        for good in [extent(0x0403_0201, 0x0807_0605), extent(0, last + 1), extent(last, 1)] {
            let bytes = good.to_bytes();
            assert_eq!(Extent::read(&mut Fields::new(&bytes)), Ok(good));
        }
        assert_eq!(extent(0x0403_0201, 0x0807_0605).to_bytes(), [1, 2, 3, 4, 5, 6, 7, 8]);
        for bad in [extent(5, 0), extent(0, last + 2), extent(last, 2), extent(u32::MAX, 1)] {
            assert!(!bad.is_valid(), "{bad:?}");
            let bytes = [bad.location.raw().to_le_bytes(), bad.blocks.to_le_bytes()].concat();
            assert!(Extent::read(&mut Fields::new(&bytes)).is_err(), "{bad:?}");
        }
    }
}
