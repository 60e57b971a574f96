//! Two bits per logical unit (LR-bitmap of remap.md section 1).

use onefold_units::convert::{index, u32_from};

/// Which units are mapped by a remap rather than by a write, and where the log entry of those is.
#[derive(Clone, Debug)]
pub(crate) struct RemappedUnits {
    /// Interleaved: bit 2n is `by_remap` of unit n, bit 2n + 1 is `in_flash`.
    words: Vec<u64>,
    count: u32,
}

onefold_units::keep!(RemappedUnits { words, count });

impl RemappedUnits {
    pub(crate) fn new(units: u32) -> Self {
        Self { words: vec![0; index(units.div_ceil(32))], count: 0 }
    }

    #[inline]
    const fn place(lpn: u32) -> (usize, u32) {
        (index(lpn / 32), lpn % 32 * 2)
    }

    /// Whether a unit is mapped by a remap.
    #[inline]
    pub(crate) fn has(&self, lpn: u32) -> bool {
        let (word, shift) = Self::place(lpn);
        self.words[word] >> shift & 1 != 0
    }

    /// Whether the entry of a remapped unit is on flash.
    #[inline]
    pub(crate) fn is_in_flash(&self, lpn: u32) -> bool {
        let (word, shift) = Self::place(lpn);
        self.words[word] >> shift & 2 != 0
    }

    /// A unit is mapped by a remap whose entry is in NVRAM, or on flash.
    #[inline]
    pub(crate) fn set(&mut self, lpn: u32, in_flash: bool) {
        let (word, shift) = Self::place(lpn);
        let old = self.words[word];
        self.count += u32::from(old >> shift & 1 == 0);
        self.words[word] = old & !(3 << shift) | (1 | u64::from(in_flash) << 1) << shift;
    }

    /// A unit is not mapped by a remap any more. Returns where its entry is, if it was: on flash, or in
    /// NVRAM.
    #[inline]
    pub(crate) fn take(&mut self, lpn: u32) -> Option<bool> {
        let in_flash = self.has(lpn).then(|| self.is_in_flash(lpn));
        self.clear(lpn);
        in_flash
    }

    /// A unit is not mapped by a remap any more.
    #[inline]
    pub(crate) fn clear(&mut self, lpn: u32) {
        let (word, shift) = Self::place(lpn);
        let old = self.words[word];
        self.count -= u32_from(usize::from(old >> shift & 1 != 0));
        self.words[word] = old & !(3 << shift);
    }

    /// Remapped units (`N_rp` of remap.md section 6).
    pub(crate) const fn count(&self) -> u32 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::RemappedUnits;

    #[test]
    fn neighbours_are_apart() {
        let mut units = RemappedUnits::new(70);
        units.set(31, true);
        units.set(32, false);
        units.set(32, false);
        assert_eq!(units.count(), 2);
        assert!(units.has(31) && units.is_in_flash(31) && units.has(32));
        assert!(!units.is_in_flash(32) && !units.has(30) && !units.has(33));
        units.set(31, false);
        assert!(!units.is_in_flash(31));
        units.clear(31);
        units.clear(31);
        assert_eq!(units.count(), 1);
        assert!(!units.has(31) && units.has(32));
    }
}
