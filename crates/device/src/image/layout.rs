//! Where the parts of an image file lie (docs/spec.md, section 2).

use onefold_format::{ImageLabel, LABEL_BYTES};
use onefold_nand::{HEAD_BYTES, SPARE_BYTES};
use onefold_units::convert::u64_from;
use onefold_units::{Ppn, SuperblockId};

/// Parts other than the labels and the data begin at a multiple of this.
const BLOCK: u64 = 4096;
/// The data begins at a multiple of this, so that units do not straddle blocks of any file system.
const DATA_ALIGN: u64 = 1 << 20;

/// Offsets in an image file, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileLayout {
    pub(crate) nvram: u64,
    pub(crate) nvram_bytes: u64,
    pub(crate) heads: u64,
    pub(crate) spares: u64,
    pub(crate) data: u64,
    pub(crate) unit_bytes: u64,
    pub(crate) slots: u64,
    /// Where the data ends and the lifetime counters begin.
    pub(crate) lifetime: u64,
    /// Size of the whole file.
    pub(crate) bytes: u64,
}

impl FileLayout {
    /// The layout of the device that a label describes. `None` if its numbers make no file.
    pub(crate) fn new(label: &ImageLabel) -> Option<Self> {
        let aligned = |bytes: u64, to: u64| bytes.checked_next_multiple_of(to);
        let superblocks = u64::from(label.superblocks);
        let slots = u64::from(label.slots);
        let total = superblocks.checked_mul(slots)?;
        let nvram = 2 * u64_from(LABEL_BYTES);
        let heads = aligned(nvram.checked_add(label.nvram_bytes)?, BLOCK)?;
        let spares = aligned(heads.checked_add(superblocks * u64_from(HEAD_BYTES))?, BLOCK)?;
        let spare_bytes = total.checked_mul(u64_from(SPARE_BYTES))?;
        let data = aligned(spares.checked_add(spare_bytes)?, DATA_ALIGN)?;
        let unit_bytes = u64::from(label.unit_bytes);
        let lifetime = data.checked_add(total.checked_mul(unit_bytes)?)?;
        let bytes = lifetime.checked_add(2 * BLOCK)?;
        // A file offset is signed.
        i64::try_from(bytes).ok()?;
        let nvram_bytes = label.nvram_bytes;
        Some(Self { nvram, nvram_bytes, heads, spares, data, unit_bytes, slots, lifetime, bytes })
    }

    /// The layout of a part of the device: its superblocks from `first` on, and `bytes` of its NVRAM from `nvram_at` on.
    pub(crate) fn part(&self, first: SuperblockId, nvram_at: u64, bytes: u64) -> Self {
        let slots = u64::from(first.raw()) * self.slots;
        Self {
            nvram: self.nvram + nvram_at,
            nvram_bytes: bytes,
            heads: self.head(first),
            spares: self.spares + slots * u64_from(SPARE_BYTES),
            data: self.data + slots * self.unit_bytes,
            ..*self
        }
    }

    /// Where one of the two copies of the lifetime counters is: a block each, so that a host never writes both at once.
    pub(crate) const fn lifetime_copy(&self, copy: usize) -> u64 {
        if copy == 0 { self.lifetime } else { self.lifetime + BLOCK }
    }

    pub(crate) fn head(&self, superblock: SuperblockId) -> u64 {
        self.heads + u64::from(superblock.raw()) * u64_from(HEAD_BYTES)
    }

    pub(crate) fn spare(&self, ppn: Ppn) -> u64 {
        self.spares + u64::from(ppn.raw()) * u64_from(SPARE_BYTES)
    }

    pub(crate) fn unit(&self, ppn: Ppn) -> u64 {
        self.data + u64::from(ppn.raw()) * self.unit_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::FileLayout;
    use onefold_format::ImageLabel;
    use onefold_units::{Ppn, SuperblockId};

    fn label() -> ImageLabel {
        ImageLabel {
            features: 0,
            uuid: [0; 16],
            generation: 1,
            clean: true,
            counts: true,
            unit_bytes: 4096,
            superblocks: 100,
            slots: 256,
            nvram_bytes: 20_480,
            logical_bytes: 1 << 20,
            config: String::new(),
        }
    }

    /// The numbers of the example in docs/spec.md.
    #[test]
    fn parts_lie_where_the_specification_says() {
        let layout = FileLayout::new(&label()).unwrap();
        assert_eq!(layout.nvram, 131_072);
        assert_eq!(layout.heads, 151_552);
        assert_eq!(layout.spares, 159_744);
        assert_eq!(layout.data, 1_048_576);
        assert_eq!(layout.lifetime_copy(0), 1_048_576 + 100 * 256 * 4096);
        assert_eq!(layout.lifetime_copy(1), 105_910_272);
        assert_eq!(layout.bytes, 105_914_368);
        assert_eq!(layout.head(SuperblockId::new(3)), 151_552 + 192);
        assert_eq!(layout.spare(Ppn::new(5)), 159_744 + 120);
        assert_eq!(layout.unit(Ppn::new(2)), 1_048_576 + 8192);
    }

    #[test]
    fn a_part_begins_at_its_superblock() {
        let layout = FileLayout::new(&label()).unwrap();
        let part = layout.part(SuperblockId::new(3), 4096, 8192);
        assert_eq!((part.nvram, part.nvram_bytes), (131_072 + 4096, 8192));
        assert_eq!(part.head(SuperblockId::new(2)), layout.head(SuperblockId::new(5)));
        let (slot, behind) = (Ppn::new(7), Ppn::new(3 * 256 + 7));
        assert_eq!(part.spare(slot), layout.spare(behind));
        assert_eq!(part.unit(slot), layout.unit(behind));
    }

    #[test]
    fn numbers_beyond_any_file_are_refused() {
        let huge =
            ImageLabel { superblocks: u32::MAX, slots: u32::MAX, unit_bytes: u32::MAX, ..label() };
        assert_eq!(FileLayout::new(&huge), None);
        assert_eq!(FileLayout::new(&ImageLabel { nvram_bytes: u64::MAX, ..label() }), None);
    }
}
