//! Files of the VFS below.

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;

use super::abi::{File, IoMethods};
use crate::code::Code;
use crate::wal::Medium;

/// An open file of the VFS below.
#[derive(Debug, Clone, Copy)]
pub(super) struct Real(NonNull<File>);

impl Real {
    /// The file at `file`, if its VFS has opened it.
    ///
    /// # Safety
    /// `file` points to memory of a file that its VFS has opened or left closed, and stays valid as long as the value is used.
    pub(super) unsafe fn new(file: *mut File) -> Option<Self> {
        let file = NonNull::new(file)?;
        // SAFETY: the caller promises that the memory is that of a file.
        let methods = unsafe { file.as_ref() }.methods;
        (!methods.is_null()).then_some(Self(file))
    }

    pub(super) const fn as_ptr(self) -> *mut File {
        self.0.as_ptr()
    }

    pub(super) fn methods(&self) -> &IoMethods {
        // SAFETY: the file is open, as `new` saw, and its owner keeps it.
        let methods = unsafe { self.0.as_ref() }.methods;
        // SAFETY: the table of methods of an open file is static.
        unsafe { &*methods }
    }

    pub(super) fn close(self) -> c_int {
        // SAFETY: the file is open; its owner does not use it any more.
        unsafe { (self.methods().close)(self.as_ptr()) }
    }

    pub(super) fn file_control(self, op: c_int, argument: *mut c_void) -> c_int {
        // SAFETY: the file is open; the argument is what SQLite passed with this operation.
        unsafe { (self.methods().file_control)(self.as_ptr(), op, argument) }
    }

    pub(super) fn device_characteristics(self) -> c_int {
        // SAFETY: the file is open.
        unsafe { (self.methods().device_characteristics)(self.as_ptr()) }
    }
}

impl Medium for Real {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> Result<bool, Code> {
        let (bytes, at) = range(buffer.len(), at).ok_or(Code::READ)?;
        let read = self.methods().read;
        // SAFETY: the file is open and the buffer has that many bytes.
        match unsafe { read(self.as_ptr(), buffer.as_mut_ptr().cast(), bytes, at) } {
            Code::OK => Ok(true),
            code if code == Code::SHORT_READ.0 => Ok(false),
            code => Err(Code(code)),
        }
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> Result<(), Code> {
        let (count, at) = range(bytes.len(), at).ok_or(Code::WRITE)?;
        let write = self.methods().write;
        // SAFETY: the file is open and the buffer has that many bytes.
        result(unsafe { write(self.as_ptr(), bytes.as_ptr().cast(), count, at) })
    }

    fn truncate(&self, bytes: u64) -> Result<(), Code> {
        let bytes = i64::try_from(bytes).map_err(|_| Code::WRITE)?;
        // SAFETY: the file is open.
        result(unsafe { (self.methods().truncate)(self.as_ptr(), bytes) })
    }

    fn bytes(&self) -> Result<u64, Code> {
        let mut bytes = 0;
        // SAFETY: the file is open, and the number outlives the call.
        result(unsafe { (self.methods().file_size)(self.as_ptr(), &raw mut bytes) })?;
        u64::try_from(bytes).map_err(|_| Code::READ)
    }
}

fn range(bytes: usize, at: u64) -> Option<(c_int, i64)> {
    Some((c_int::try_from(bytes).ok()?, i64::try_from(at).ok()?))
}

pub(super) const fn result(code: c_int) -> Result<(), Code> {
    if code == Code::OK { Ok(()) } else { Err(Code(code)) }
}
