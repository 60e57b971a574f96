//! Shared memory of an aligned WAL.
//!
//! The VFS below names the shared memory after the database: `DB-shm`. There a SQLite without the extension would find an index
//! into frames that are not where it looks for them. So connections with an aligned WAL have their shared memory in
//! `DB-wal-shm`: that of the WAL, opened as if it were a database. Nobody locks or reads it through this handle.

use std::ffi::{CStr, c_char, c_int};

use super::abi::{File, OPEN_MAIN_DB, OPEN_READWRITE, Vfs};
use super::real::Real;
use crate::code::Code;

/// A handle on the WAL for its shared memory.
#[derive(Debug)]
pub(super) struct Companion {
    real: Real,
    /// Memory of the file, and its name in the form of SQLite; both stay where they are.
    _memory: Vec<u64>,
    _name: Vec<u8>,
}

impl Companion {
    /// Opens it on the WAL of that path, which exists.
    pub(super) fn open(below: *mut Vfs, wal: &CStr) -> Result<Self, Code> {
        let name = filename(wal);
        // SAFETY: the VFS below was registered, and SQLite keeps those.
        let vfs = unsafe { &*below };
        let bytes = usize::try_from(vfs.os_file_bytes).map_err(|_| Code::CANTOPEN)?;
        let mut memory = vec![0_u64; bytes.div_ceil(size_of::<u64>())];
        let file: *mut File = memory.as_mut_ptr().cast();
        let path: *const c_char = name[PREFIX.len()..].as_ptr().cast();
        let mut flags: c_int = 0;
        let wanted = OPEN_MAIN_DB | OPEN_READWRITE;
        // SAFETY: the memory has the size that the VFS asks for, and lives with the name until the file is closed.
        let code = unsafe { (vfs.open)(below, path, file, wanted, &raw mut flags) };
        // SAFETY: the VFS was asked to open this file.
        match unsafe { Real::new(file) } {
            Some(real) if code == Code::OK => Ok(Self { real, _memory: memory, _name: name }),
            Some(real) => {
                real.close();
                Err(Code(code))
            }
            None if code == Code::OK => Err(Code::CANTOPEN),
            None => Err(Code(code)),
        }
    }

    pub(super) const fn real(&self) -> Real {
        self.real
    }
}

impl Drop for Companion {
    fn drop(&mut self) {
        self.real.close();
    }
}

/// What SQLite expects before the name of a database.
const PREFIX: [u8; 4] = [0; 4];

/// A name as SQLite passes it to a VFS: four zeroes before; behind, no parameters and no names of journal and WAL.
fn filename(path: &CStr) -> Vec<u8> {
    [PREFIX.as_slice(), path.to_bytes_with_nul(), [0; 4].as_slice()].concat()
}
