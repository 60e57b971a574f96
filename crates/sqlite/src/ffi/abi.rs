//! The structures of SQLite's interface that a VFS needs, as `sqlite3.h` and `sqlite3ext.h` have them. SQLite only ever appends
//! to them.

use std::ffi::{c_char, c_int, c_void};

/// `sqlite3_file`.
#[repr(C)]
pub(super) struct File {
    pub(super) methods: *const IoMethods,
}

type Amount = c_int;
type Offset = i64;

/// `sqlite3_io_methods`, version 3.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct IoMethods {
    pub(super) version: c_int,
    pub(super) close: unsafe extern "C" fn(*mut File) -> c_int,
    pub(super) read: unsafe extern "C" fn(*mut File, *mut c_void, Amount, Offset) -> c_int,
    pub(super) write: unsafe extern "C" fn(*mut File, *const c_void, Amount, Offset) -> c_int,
    pub(super) truncate: unsafe extern "C" fn(*mut File, Offset) -> c_int,
    pub(super) sync: unsafe extern "C" fn(*mut File, c_int) -> c_int,
    pub(super) file_size: unsafe extern "C" fn(*mut File, *mut i64) -> c_int,
    pub(super) lock: unsafe extern "C" fn(*mut File, c_int) -> c_int,
    pub(super) unlock: unsafe extern "C" fn(*mut File, c_int) -> c_int,
    pub(super) check_reserved_lock: unsafe extern "C" fn(*mut File, *mut c_int) -> c_int,
    pub(super) file_control: unsafe extern "C" fn(*mut File, c_int, *mut c_void) -> c_int,
    pub(super) sector_size: unsafe extern "C" fn(*mut File) -> c_int,
    pub(super) device_characteristics: unsafe extern "C" fn(*mut File) -> c_int,
    pub(super) shm_map: Option<ShmMap>,
    pub(super) shm_lock: Option<unsafe extern "C" fn(*mut File, c_int, c_int, c_int) -> c_int>,
    pub(super) shm_barrier: Option<unsafe extern "C" fn(*mut File)>,
    pub(super) shm_unmap: Option<unsafe extern "C" fn(*mut File, c_int) -> c_int>,
    pub(super) fetch:
        Option<unsafe extern "C" fn(*mut File, Offset, Amount, *mut *mut c_void) -> c_int>,
    pub(super) unfetch: Option<unsafe extern "C" fn(*mut File, Offset, *mut c_void) -> c_int>,
}

pub(super) type ShmMap =
    unsafe extern "C" fn(*mut File, c_int, c_int, c_int, *mut *mut c_void) -> c_int;

/// A system call of a VFS; never called here.
pub(super) type Syscall = Option<unsafe extern "C" fn()>;

/// `sqlite3_vfs`, version 3.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Vfs {
    pub(super) version: c_int,
    pub(super) os_file_bytes: c_int,
    pub(super) max_pathname: c_int,
    pub(super) next: *mut Self,
    pub(super) name: *const c_char,
    pub(super) app_data: *mut c_void,
    pub(super) open:
        unsafe extern "C" fn(*mut Self, *const c_char, *mut File, c_int, *mut c_int) -> c_int,
    pub(super) delete: unsafe extern "C" fn(*mut Self, *const c_char, c_int) -> c_int,
    pub(super) access: unsafe extern "C" fn(*mut Self, *const c_char, c_int, *mut c_int) -> c_int,
    pub(super) full_pathname:
        unsafe extern "C" fn(*mut Self, *const c_char, c_int, *mut c_char) -> c_int,
    pub(super) dl_open: unsafe extern "C" fn(*mut Self, *const c_char) -> *mut c_void,
    pub(super) dl_error: unsafe extern "C" fn(*mut Self, c_int, *mut c_char),
    pub(super) dl_sym: unsafe extern "C" fn(*mut Self, *mut c_void, *const c_char) -> Syscall,
    pub(super) dl_close: unsafe extern "C" fn(*mut Self, *mut c_void),
    pub(super) randomness: unsafe extern "C" fn(*mut Self, c_int, *mut c_char) -> c_int,
    pub(super) sleep: unsafe extern "C" fn(*mut Self, c_int) -> c_int,
    pub(super) current_time: unsafe extern "C" fn(*mut Self, *mut f64) -> c_int,
    pub(super) last_error: unsafe extern "C" fn(*mut Self, c_int, *mut c_char) -> c_int,
    pub(super) current_time_int64: unsafe extern "C" fn(*mut Self, *mut i64) -> c_int,
    pub(super) set_system_call: unsafe extern "C" fn(*mut Self, *const c_char, Syscall) -> c_int,
    pub(super) system_call: unsafe extern "C" fn(*mut Self, *const c_char) -> Syscall,
    pub(super) next_system_call: unsafe extern "C" fn(*mut Self, *const c_char) -> *const c_char,
}

/// Places of functions in `sqlite3_api_routines`.
pub(super) mod routine {
    pub(in crate::ffi) const LIBVERSION_NUMBER: usize = 67;
    pub(in crate::ffi) const VFS_FIND: usize = 141;
    pub(in crate::ffi) const VFS_REGISTER: usize = 142;
    pub(in crate::ffi) const MALLOC64: usize = 197;
    pub(in crate::ffi) const DATABASE_FILE_OBJECT: usize = 251;
}

pub(super) type LibversionNumber = unsafe extern "C" fn() -> c_int;
pub(super) type VfsFind = unsafe extern "C" fn(*const c_char) -> *mut Vfs;
pub(super) type VfsRegister = unsafe extern "C" fn(*mut Vfs, c_int) -> c_int;
pub(super) type Malloc64 = unsafe extern "C" fn(u64) -> *mut c_void;
pub(super) type DatabaseFileObject = unsafe extern "C" fn(*const c_char) -> *mut File;

pub(super) const OPEN_READONLY: c_int = 0x1;
pub(super) const OPEN_READWRITE: c_int = 0x2;
pub(super) const OPEN_MAIN_DB: c_int = 0x100;
pub(super) const OPEN_WAL: c_int = 0x8_0000;
pub(super) const SHM_UNLOCK: c_int = 1;
pub(super) const POWERSAFE_OVERWRITE: c_int = 0x1000;

pub(super) const FCNTL_SIZE_HINT: c_int = 5;
pub(super) const FCNTL_PERSIST_WAL: c_int = 10;
pub(super) const FCNTL_VFSNAME: c_int = 12;
pub(super) const FCNTL_PRAGMA: c_int = 14;
pub(super) const FCNTL_LOCK_TIMEOUT: c_int = 34;
pub(super) const FCNTL_CKPT_DONE: c_int = 37;
pub(super) const FCNTL_CKPT_START: c_int = 39;
pub(super) const FCNTL_EXTERNAL_READER: c_int = 40;
