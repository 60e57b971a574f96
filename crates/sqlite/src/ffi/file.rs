//! The memory of a file that SQLite reserves for this VFS.

use std::ffi::c_int;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::abi::File;
use super::real::Real;
use crate::code::Code;
use crate::connection::Connection;

/// What the files of a connection share. Never contended: see the second invariant of this module.
pub(super) type Shared = Arc<Mutex<Connection>>;

pub(super) fn lock(shared: &Shared) -> MutexGuard<'_, Connection> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What SQLite is told of a result.
pub(super) const fn code(result: Result<(), Code>) -> c_int {
    match result {
        Ok(()) => Code::OK,
        Err(Code(code)) => code,
    }
}

/// Writes the size of a file to where SQLite wants it.
///
/// # Safety
/// `size` is valid for a write.
pub(super) unsafe fn put_size(bytes: u64, size: *mut i64) -> Result<(), Code> {
    let bytes = i64::try_from(bytes).map_err(|_| Code::READ)?;
    // SAFETY: the caller promises the place.
    unsafe { size.write(bytes) };
    Ok(())
}

/// A file of this VFS; that of the VFS below lies behind it.
#[repr(C)]
pub(super) struct Wrapped<State> {
    file: File,
    state: *mut State,
}

/// Bytes before the file of the VFS below. They keep the alignment of pointers.
pub(super) const OWN_BYTES: usize = size_of::<Wrapped<()>>();

/// Where the VFS below has its file.
pub(super) const fn below(file: *mut File) -> *mut File {
    file.cast::<u8>().wrapping_add(OWN_BYTES).cast()
}

impl<State> Wrapped<State> {
    /// Makes `file` a file of this VFS.
    ///
    /// # Safety
    /// `file` points to memory that SQLite has reserved for a file of this VFS, and `methods` expect that state.
    pub(super) unsafe fn fill(
        file: *mut File,
        methods: &'static super::abi::IoMethods,
        state: State,
    ) {
        let state = Box::into_raw(Box::new(state));
        // SAFETY: the caller promises the memory.
        unsafe { file.cast::<Self>().write(Self { file: File { methods }, state }) };
    }

    /// The state of a file and the file below.
    ///
    /// # Safety
    /// `file` was filled with this kind of state and not emptied; the state is used by one caller at a time.
    pub(super) unsafe fn parts<'a>(file: *mut File) -> (&'a mut State, Real) {
        // SAFETY: the caller promises that it was filled.
        let wrapped = unsafe { &*file.cast::<Self>() };
        // SAFETY: the state lives until the file is emptied.
        let state = unsafe { &mut *wrapped.state };
        // SAFETY: files are filled only after the VFS below has opened its own.
        let real = unsafe { Real::new(below(file)) };
        // Opened files keep their methods.
        (state, real.unwrap_or_else(|| unreachable!("an open file has methods")))
    }

    /// Ends the state. The file below is still open.
    ///
    /// # Safety
    /// As [`Self::parts`], and nobody has the state any more.
    pub(super) unsafe fn empty(file: *mut File) {
        // SAFETY: the caller promises that it was filled.
        let wrapped = unsafe { &mut *file.cast::<Self>() };
        wrapped.file.methods = std::ptr::null();
        // SAFETY: the state came out of a box in `fill`, and nobody has it any more.
        drop(unsafe { Box::from_raw(wrapped.state) });
    }
}
