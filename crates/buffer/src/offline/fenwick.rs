//! How many positions before another one are marked.

use onefold_units::convert::u32_from;

/// Marks on positions, counted by a Fenwick tree (Fenwick 1994): 4 B per position.
#[derive(Clone, Debug)]
pub(super) struct Marks {
    /// Element i > 0 counts the marks of as many positions up to i - 1 as its lowest one bit says.
    tree: Vec<u32>,
}

impl Marks {
    /// No marks.
    pub(super) fn new(positions: usize) -> Self {
        Self::full(0, positions)
    }

    /// Marks on the first `count` positions.
    pub(super) fn full(count: usize, positions: usize) -> Self {
        let marks = |at: usize| {
            let start = at - (at & at.wrapping_neg());
            u32_from(at.min(count) - start.min(count))
        };
        Self { tree: (0..=positions).map(marks).collect() }
    }

    /// Marks a position that is not marked.
    pub(super) fn set(&mut self, at: usize) {
        self.add(at, 1);
    }

    /// Takes the mark off a position.
    pub(super) fn clear(&mut self, at: usize) {
        self.add(at, u32::MAX);
    }

    /// Adds 1, or -1 in two's complement.
    fn add(&mut self, position: usize, by: u32) {
        let mut at = position + 1;
        while let Some(sum) = self.tree.get_mut(at) {
            *sum = sum.wrapping_add(by);
            at += at & at.wrapping_neg();
        }
    }

    /// Marks before a position.
    pub(super) fn before(&self, position: usize) -> u32 {
        let mut at = position;
        let mut sum: u32 = 0;
        while at > 0 {
            sum += self.tree[at];
            at &= at - 1;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::Marks;

    #[test]
    fn counts_marks() {
        let mut marks = Marks::full(3, 10);
        marks.set(7);
        marks.clear(1);
        let before: Vec<u32> = (0..=10).map(|position| marks.before(position)).collect();
        assert_eq!(before, [0, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3]);
        assert_eq!(Marks::new(4).before(4), 0);
    }
}
