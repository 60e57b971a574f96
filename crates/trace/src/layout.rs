//! Several devices in one address space.

use onefold_units::convert::index;

/// Each device starts at a multiple of 1 GiB.
pub const DEVICE_ALIGN_BYTES: u64 = 1 << 30;

/// Where each device of a trace starts if they are laid one after another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    bases: Vec<u64>,
    total: u64,
}

impl Layout {
    /// Lays out devices that end at these bytes. `None` if they do not fit 64-bit addresses.
    #[must_use]
    pub fn new(end_bytes: &[u64]) -> Option<Self> {
        let mut layout = Self::default();
        // A single device is not rounded up: it may be as large as the address space.
        let mut used = end_bytes.iter().filter(|end| **end > 0);
        if let (only, None) = (used.next(), used.next()) {
            let total = only.copied().unwrap_or(0);
            return Some(Self { bases: vec![0; end_bytes.len()], total });
        }
        for end in end_bytes {
            layout.bases.push(layout.total);
            let rounded = end.checked_next_multiple_of(DEVICE_ALIGN_BYTES)?;
            layout.total = layout.total.checked_add(rounded)?;
        }
        Some(layout)
    }

    /// The first byte of device `dev`.
    #[must_use]
    #[inline]
    pub fn base(&self, dev: u16) -> u64 {
        self.bases.get(index(u32::from(dev))).copied().unwrap_or(0)
    }

    /// Bytes of the whole address space.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::Layout;

    #[test]
    fn devices_never_overlap() {
        let gib = 1_u64 << 30;
        let layout = Layout::new(&[1, 0, gib, gib + 1]).unwrap();
        assert_eq!([0, 1, 2, 3].map(|dev| layout.base(dev)), [0, gib, gib, 2 * gib]);
        assert_eq!(layout.total(), 4 * gib);
        assert_eq!(Layout::new(&[u64::MAX]).map(|layout| layout.total()), Some(u64::MAX));
        assert_eq!(Layout::new(&[u64::MAX, 1]), None);
    }
}
