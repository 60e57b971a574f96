//! Methods of a database.

use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use onefold_units::convert::index64;

use super::abi::{
    FCNTL_CKPT_DONE, FCNTL_CKPT_START, FCNTL_EXTERNAL_READER, FCNTL_LOCK_TIMEOUT,
    FCNTL_PERSIST_WAL, FCNTL_PRAGMA, FCNTL_VFSNAME, File, IoMethods, Vfs,
};
use super::api::Api;
use super::companion::Companion;
use super::file::{Shared, Wrapped, lock};
use super::os;
use super::real::Real;
use crate::checkpoint::{Bounds, Run, Step};
use crate::code::Code;
use crate::connection::{Connection, OpenWal};

/// A database of a connection.
pub(super) struct Database {
    shared: Shared,
    /// The VFS below, for the companion.
    below: *mut Vfs,
    path: PathBuf,
    wal_name: CString,
    /// Holder of the shared memory of an aligned WAL, from its first use until it is unmapped.
    companion: Option<Companion>,
    /// First region of the shared memory of an aligned WAL, while it is mapped.
    index: Option<*const u32>,
}

impl Database {
    pub(super) fn new(below: *mut Vfs, name: &CStr) -> Self {
        let path = PathBuf::from(OsStr::from_bytes(name.to_bytes()));
        // A name that came as a C string has no zero inside.
        let wal_name = CString::new([name.to_bytes(), b"-wal"].concat()).unwrap_or_default();
        let shared = Arc::new(Mutex::new(Connection::default()));
        Self { shared, below, path, wal_name, companion: None, index: None }
    }

    /// Who has the shared memory.
    fn memory(&mut self, real: Real) -> Result<Real, Code> {
        if lock(&self.shared).wal.is_none() {
            return Ok(real);
        }
        if self.companion.is_none() {
            self.companion = Some(Companion::open(self.below, &self.wal_name)?);
        }
        self.companion.as_ref().map(Companion::real).ok_or(Code::SHM_OPEN)
    }

    /// What the index says about the checkpoint that runs (the WAL-index format of SQLite, sections 2 and 3).
    fn bounds(&self) -> Option<Bounds> {
        let index = self.index?;
        let word = |at: usize| {
            // SAFETY: SQLite has mapped at least 32 KiB there and has not unmapped them; others may write, so it is volatile.
            unsafe { index.wrapping_add(at / size_of::<u32>()).read_volatile() }
        };
        Some(Bounds { pages: word(20), copied_frames: word(96), safe_frames: word(128) })
    }
}

/// The file below and the connection of a database, if this VFS has opened it.
///
/// # Safety
/// `file` is null or a file that is open.
pub(super) unsafe fn connection(file: *mut File) -> Option<(Real, Shared)> {
    // SAFETY: the caller promises it.
    let methods = unsafe { file.as_ref() }?.methods;
    if !std::ptr::eq(methods, &raw const METHODS) {
        return None;
    }
    // SAFETY: only files that were filled with the state of a database have these methods.
    let (database, real) = unsafe { Wrapped::<Database>::parts(file) };
    Some((real, Arc::clone(&database.shared)))
}

pub(super) static METHODS: IoMethods = IoMethods {
    version: 3,
    close,
    read,
    write,
    truncate,
    sync,
    file_size,
    lock: lock_file,
    unlock,
    check_reserved_lock,
    file_control,
    sector_size,
    device_characteristics,
    shm_map: Some(shm_map),
    shm_lock: Some(shm_lock),
    shm_barrier: Some(shm_barrier),
    shm_unmap: Some(shm_unmap),
    fetch: Some(fetch),
    unfetch: Some(unfetch),
};

unsafe extern "C" fn close(file: *mut File) -> c_int {
    // SAFETY: SQLite closes a file that was opened, once.
    let (_, real) = unsafe { Wrapped::<Database>::parts(file) };
    // SAFETY: the same, and nobody has the state any more.
    unsafe { Wrapped::<Database>::empty(file) };
    real.close()
}

unsafe extern "C" fn write(file: *mut File, data: *const c_void, bytes: c_int, at: i64) -> c_int {
    // SAFETY: SQLite writes a file that is open.
    let (database, real) = unsafe { Wrapped::<Database>::parts(file) };
    let mut connection = lock(&database.shared);
    if connection.checkpoint.is_some()
        && let (Ok(count), Ok(offset)) = (usize::try_from(bytes), u64::try_from(at))
    {
        // SAFETY: SQLite passes a buffer of that many bytes, which nobody writes meanwhile.
        let data = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), count) };
        if is_cloned(&mut connection, real, database, data, offset) {
            return Code::OK;
        }
    }
    // SAFETY: the file below is open, and the arguments are those of SQLite.
    unsafe { (real.methods().write)(real.as_ptr(), data, bytes, at) }
}

/// Clones the page of a checkpoint, unless it has to be written.
fn is_cloned(
    connection: &mut Connection,
    real: Real,
    database: &Database,
    bytes: &[u8],
    offset: u64,
) -> bool {
    let Some(checkpoint) = &mut connection.checkpoint else { return false };
    let step = if connection.is_plain { Step::Write } else { checkpoint.step(bytes, offset) };
    let run = match step {
        Step::Cloned => {
            connection.cloned_pages += 1;
            return true;
        }
        Step::Clone(run) => Some(run),
        Step::Write => None,
    };
    let is_done = run.is_some_and(|run| try_clone(connection, real, database, run));
    if !is_done {
        connection.written_pages += 1;
    }
    if let Some(checkpoint) = &mut connection.checkpoint {
        checkpoint.note(run.filter(|_| is_done));
    }
    is_done
}

/// Clones a run, or says in the connection why it cannot be.
fn try_clone(connection: &mut Connection, real: Real, database: &Database, run: Run) -> bool {
    let Some(OpenWal { view, file }) = &connection.wal else { return false };
    let Some(layout) = view.layout() else { return false };
    let Some(descriptor) = os::descriptor(&real, &database.path) else {
        connection.note_refused(rustix::io::Errno::BADF);
        return false;
    };
    let page_bytes = layout.page_bytes();
    let source = layout.page_at(u64::from(run.frame));
    let target = u64::from(run.page - 1) * page_bytes;
    match os::clone_range(file, source, u64::from(run.pages) * page_bytes, descriptor, target) {
        Ok(()) => {
            connection.clone_calls += 1;
            connection.cloned_pages += 1;
            true
        }
        Err(error) => {
            connection.note_refused(error);
            false
        }
    }
}

unsafe extern "C" fn file_control(file: *mut File, op: c_int, argument: *mut c_void) -> c_int {
    // SAFETY: SQLite calls with a file that is open.
    let (database, real) = unsafe { Wrapped::<Database>::parts(file) };
    match op {
        FCNTL_PRAGMA => {
            // SAFETY: SQLite passes four pointers with this operation.
            match unsafe { pragma(database, argument.cast()) } {
                Some(code) => return code,
                None => return real.file_control(op, argument),
            }
        }
        // A WAL that stays behind a clean close would be an aligned one.
        FCNTL_PERSIST_WAL => {
            // SAFETY: SQLite passes a number with this operation.
            unsafe { argument.cast::<c_int>().write(0) };
            return Code::OK;
        }
        FCNTL_CKPT_START => {
            let bounds = database.bounds();
            lock(&database.shared).begin_checkpoint(bounds);
        }
        FCNTL_CKPT_DONE => lock(&database.shared).checkpoint = None,
        FCNTL_EXTERNAL_READER => {
            return database
                .memory(real)
                .map_or_else(|Code(code)| code, |memory| memory.file_control(op, argument));
        }
        FCNTL_LOCK_TIMEOUT => {
            if let Some(companion) = &database.companion {
                companion.real().file_control(op, argument);
            }
        }
        FCNTL_VFSNAME => {
            if let Some(api) = Api::loaded() {
                // SAFETY: SQLite passes a place for a text with this operation.
                unsafe { argument.cast::<*mut c_char>().write(api.text("onefold/unix")) };
                return Code::OK;
            }
        }
        _ => {}
    }
    real.file_control(op, argument)
}

/// Answers `PRAGMA onefold`; `None` for any other pragma.
///
/// # Safety
/// `texts` are the four of `SQLITE_FCNTL_PRAGMA`: answer, name, value or null.
unsafe fn pragma(database: &Database, texts: *mut *mut c_char) -> Option<c_int> {
    let text = |at: usize| {
        // SAFETY: the caller promises them.
        let text = unsafe { texts.wrapping_add(at).read() };
        // SAFETY: texts of SQLite end with a zero.
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
    };
    if !text(1)?.to_bytes().eq_ignore_ascii_case(b"onefold") {
        return None;
    }
    let api = Api::loaded()?;
    let (code, answer) = if text(2).is_some() {
        (Code::ERROR.0, "PRAGMA onefold takes no value: it only tells what is done".to_owned())
    } else {
        (Code::OK, lock(&database.shared).to_string())
    };
    // SAFETY: the first place is for the answer, which SQLite frees.
    unsafe { texts.write(api.text(&answer)) };
    Some(code)
}

unsafe extern "C" fn shm_map(
    file: *mut File,
    region: c_int,
    bytes: c_int,
    extend: c_int,
    memory: *mut *mut c_void,
) -> c_int {
    // SAFETY: SQLite calls with a file that is open.
    let (database, real) = unsafe { Wrapped::<Database>::parts(file) };
    let holder = match database.memory(real) {
        Ok(holder) => holder,
        Err(Code(code)) => return code,
    };
    let Some(map) = holder.methods().shm_map else { return Code::SHM_OPEN.0 };
    // SAFETY: the file is open, and the arguments are those of SQLite.
    let code = unsafe { map(holder.as_ptr(), region, bytes, extend, memory) };
    // SAFETY: SQLite passes a place for the address, which the VFS below has filled.
    let address = unsafe { memory.read() };
    if code == Code::OK && region == 0 && index64(128 + 4) <= usize::try_from(bytes).unwrap_or(0) {
        database.index = (!address.is_null()).then_some(address.cast_const().cast());
    }
    code
}

unsafe extern "C" fn shm_lock(file: *mut File, offset: c_int, n: c_int, flags: c_int) -> c_int {
    // SAFETY: SQLite calls with a file that is open.
    let (database, real) = unsafe { Wrapped::<Database>::parts(file) };
    let holder = match database.memory(real) {
        Ok(holder) => holder,
        Err(Code(code)) => return code,
    };
    let Some(lock) = holder.methods().shm_lock else { return Code::LOCK.0 };
    // SAFETY: the file is open, and the arguments are those of SQLite.
    unsafe { lock(holder.as_ptr(), offset, n, flags) }
}

unsafe extern "C" fn shm_barrier(file: *mut File) {
    // SAFETY: SQLite calls with a file that is open.
    let (database, real) = unsafe { Wrapped::<Database>::parts(file) };
    let holder = database.companion.as_ref().map_or(real, Companion::real);
    if let Some(barrier) = holder.methods().shm_barrier {
        // SAFETY: the file is open.
        unsafe { barrier(holder.as_ptr()) };
    }
}

unsafe extern "C" fn shm_unmap(file: *mut File, delete: c_int) -> c_int {
    // SAFETY: SQLite calls with a file that is open.
    let (database, real) = unsafe { Wrapped::<Database>::parts(file) };
    database.index = None;
    let companion = database.companion.take();
    let holder = companion.as_ref().map_or(real, Companion::real);
    let Some(unmap) = holder.methods().shm_unmap else { return Code::OK };
    // SAFETY: the file is open, and the arguments are those of SQLite.
    unsafe { unmap(holder.as_ptr(), delete) }
}

/// Methods that the file below answers.
macro_rules! forward {
    ($($name:ident = $method:ident($($argument:ident: $kind:ty),*) -> $result:ty;)*) => {$(
        unsafe extern "C" fn $name(file: *mut File, $($argument: $kind),*) -> $result {
            // SAFETY: SQLite calls with a file that is open.
            let (_, real) = unsafe { Wrapped::<Database>::parts(file) };
            // SAFETY: the file below is open, and the arguments are those of SQLite.
            unsafe { (real.methods().$method)(real.as_ptr(), $($argument),*) }
        }
    )*};
}

forward! {
    read = read(buffer: *mut c_void, bytes: c_int, at: i64) -> c_int;
    truncate = truncate(bytes: i64) -> c_int;
    sync = sync(flags: c_int) -> c_int;
    file_size = file_size(size: *mut i64) -> c_int;
    lock_file = lock(level: c_int) -> c_int;
    unlock = unlock(level: c_int) -> c_int;
    check_reserved_lock = check_reserved_lock(result: *mut c_int) -> c_int;
    sector_size = sector_size() -> c_int;
    device_characteristics = device_characteristics() -> c_int;
}

unsafe extern "C" fn fetch(
    file: *mut File,
    at: i64,
    bytes: c_int,
    memory: *mut *mut c_void,
) -> c_int {
    // SAFETY: SQLite calls with a file that is open.
    let (_, real) = unsafe { Wrapped::<Database>::parts(file) };
    let Some(fetch) = real.methods().fetch else { return Code::READ.0 };
    // SAFETY: the file below is open, and the arguments are those of SQLite.
    unsafe { fetch(real.as_ptr(), at, bytes, memory) }
}

unsafe extern "C" fn unfetch(file: *mut File, at: i64, memory: *mut c_void) -> c_int {
    // SAFETY: SQLite calls with a file that is open.
    let (_, real) = unsafe { Wrapped::<Database>::parts(file) };
    let Some(unfetch) = real.methods().unfetch else { return Code::OK };
    // SAFETY: the file below is open, and the arguments are those of SQLite.
    unsafe { unfetch(real.as_ptr(), at, memory) }
}
