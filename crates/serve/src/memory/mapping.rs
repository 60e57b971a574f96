//! Anonymous memory of the kernel. The only module of this crate with `unsafe`.

#![expect(unsafe_code, reason = "safe Rust cannot give memory back past the allocator")]

use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// A private anonymous mapping; dropping it unmaps it.
#[derive(Debug)]
pub(super) struct Mapping {
    at: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to this value alone, and nothing of it depends on the thread.
unsafe impl Send for Mapping {}

// SAFETY: a shared reference only reads.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// `len` bytes of zeroes, at least one. `None` if the kernel refuses.
    pub(super) fn new(len: usize) -> Option<Self> {
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: without MAP_FIXED the kernel chooses a place that nothing else uses.
        let at = unsafe { mmap_anonymous(std::ptr::null_mut(), len, protection, flags) }.ok()?;
        NonNull::new(at.cast()).map(|at| Self { at, len })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: `at` is the start of `len` initialised bytes that live as long as `self`, and only
        // `bytes_mut` changes them.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.len) }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `bytes`, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.at.as_ptr(), self.len) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it is mapped, and nobody borrows it any more. A failure only leaves it mapped.
        let _ = unsafe { munmap(self.at.as_ptr().cast(), self.len) };
    }
}
