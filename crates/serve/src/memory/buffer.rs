//! Zeroed bytes that go back to the system as soon as they are not needed.

use std::ops::{Deref, DerefMut};

use super::mapping::Mapping;

/// From this size on a buffer is a mapping of its own. An allocator keeps the room of large blocks that
/// threads free: after slow readers that was more than the limit on what they held.
const MAPPED_FROM: usize = 128 << 10;

/// Bytes.
#[derive(Debug)]
pub(crate) struct Buffer(Kind);

#[derive(Debug)]
enum Kind {
    Small(Vec<u8>),
    Mapped(Mapping),
}

impl Buffer {
    /// `len` bytes of zeroes.
    pub(crate) fn new(len: usize) -> Self {
        let mapping = if len >= MAPPED_FROM { Mapping::new(len) } else { None };
        Self(mapping.map_or_else(|| Kind::Small(vec![0; len]), Kind::Mapped))
    }
}

impl Default for Buffer {
    fn default() -> Self {
        Self::new(0)
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Kind::Small(bytes) => bytes,
            Kind::Mapped(mapping) => mapping.bytes(),
        }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.0 {
            Kind::Small(bytes) => bytes,
            Kind::Mapped(mapping) => mapping.bytes_mut(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Buffer, MAPPED_FROM};

    #[test]
    fn buffers_of_any_size_are_zeroes_that_can_be_written() {
        for len in [0, 1, MAPPED_FROM - 1, MAPPED_FROM, MAPPED_FROM + 1, 3 << 20] {
            let mut buffer = Buffer::new(len);
            assert!(buffer.len() == len && buffer.iter().all(|byte| *byte == 0));
            buffer.fill(7);
            let buffer = std::thread::spawn(move || buffer).join().unwrap();
            assert!(buffer.iter().all(|byte| *byte == 7));
        }
    }
}
