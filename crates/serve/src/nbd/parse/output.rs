//! The bytes on their way to the peer.

use crate::memory::Buffer;

/// A byte queue that grows and is reused: replies are built in place at its end, and one send
/// takes everything from its front.
#[derive(Debug, Default)]
pub struct Output {
    /// Initialised memory; only `start..end` is meaningful.
    bytes: Buffer,
    start: usize,
    end: usize,
}

impl Output {
    /// Nothing, with room for so many bytes.
    pub(crate) fn with_room(bytes: usize) -> Self {
        Self { bytes: Buffer::new(bytes), start: 0, end: 0 }
    }

    /// Bytes that can be appended without more memory.
    pub(crate) fn room(&self) -> usize {
        self.bytes.len() - self.end
    }

    /// What is to be sent.
    #[must_use]
    pub fn pending(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Number of bytes to be sent.
    #[must_use]
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Whether nothing is to be sent.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Bytes of memory held.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.bytes.len()
    }

    /// Drops `count` bytes from the front: they were sent.
    pub fn sent(&mut self, count: usize) {
        self.start += count.min(self.len());
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        }
    }

    /// Appends `count` bytes of any content and returns them to be filled.
    pub fn extend(&mut self, count: usize) -> &mut [u8] {
        let from = self.end;
        let to = from + count;
        if to > self.bytes.len() {
            self.grow(to);
        }
        self.end = to;
        &mut self.bytes[from..to]
    }

    fn grow(&mut self, least: usize) {
        let size = least.max(2 * self.bytes.len()).max(16 << 10);
        let mut grown = Buffer::new(size);
        grown[self.start..self.end].copy_from_slice(&self.bytes[self.start..self.end]);
        self.bytes = grown;
    }

    /// Appends bytes.
    pub fn put(&mut self, bytes: &[u8]) {
        self.extend(bytes.len()).copy_from_slice(bytes);
    }

    /// A position to come back to with [`Output::truncate`] or [`Output::since`].
    #[must_use]
    pub fn mark(&self) -> Mark {
        Mark(self.len())
    }

    /// Forgets what was appended since `mark`.
    pub fn truncate(&mut self, mark: Mark) {
        self.end = self.end.min(self.start + mark.0);
    }

    /// Keeps the first `count` bytes of what was appended since `mark`.
    pub(crate) fn shorten(&mut self, mark: Mark, count: usize) {
        self.end = self.end.min(self.start + mark.0 + count);
    }

    /// What was appended since `mark`.
    #[must_use]
    pub fn since(&self, mark: Mark) -> &[u8] {
        &self.bytes[(self.start + mark.0).min(self.end)..self.end]
    }

    /// What was appended since `mark`, to be changed.
    pub fn since_mut(&mut self, mark: Mark) -> &mut [u8] {
        let from = (self.start + mark.0).min(self.end);
        &mut self.bytes[from..self.end]
    }
}

/// A position in an [`Output`], valid until something is sent.
#[derive(Clone, Copy, Debug)]
pub struct Mark(usize);

#[cfg(test)]
mod tests {
    use super::Output;

    #[test]
    fn what_is_put_in_comes_out_in_order_across_growth_and_truncation() {
        let mut output = Output::default();
        output.put(b"abc");
        output.sent(1);
        let mark = output.mark();
        output.extend(40_000).fill(b'x');
        assert_eq!(output.since(mark).len(), 40_000);
        output.truncate(mark);
        output.put(b"d");
        assert_eq!(output.pending(), b"bcd");
        output.sent(99);
        assert!(output.is_empty());
    }
}
