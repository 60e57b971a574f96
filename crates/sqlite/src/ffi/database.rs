//! Methods of a database.

use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use onefold_units::convert::index64;
use rustix::io::Errno;

use super::abi::{
    FCNTL_CKPT_DONE, FCNTL_CKPT_START, FCNTL_EXTERNAL_READER, FCNTL_LOCK_TIMEOUT,
    FCNTL_PERSIST_WAL, FCNTL_PRAGMA, FCNTL_SIZE_HINT, FCNTL_VFSNAME, File, IoMethods, SHM_UNLOCK,
    Vfs,
};
use super::api::Api;
use super::companion::Companion;
use super::file::{Shared, Wrapped, code, lock, put_size};
use super::os;
use super::real::Real;
use crate::backing::WalFile;
use crate::checkpoint::{Bounds, Run, Step};
use crate::code::Code;
use crate::connection::{Connection, OpenWal};
use crate::device::Device;
use crate::header::Salts;
use crate::layout::Layout;
use crate::wal::Medium;

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
    pub(super) fn new(below: *mut Vfs, name: &CStr, device: Option<Arc<Device>>) -> Self {
        let path = PathBuf::from(OsStr::from_bytes(name.to_bytes()));
        // A name that came as a C string has no zero inside.
        let wal_name = CString::new([name.to_bytes(), b"-wal"].concat()).unwrap_or_default();
        let shared = Arc::new(Mutex::new(Connection { device, ..Connection::default() }));
        Self { shared, below, path, wal_name, companion: None, index: None }
    }

    /// The device, if the file names one.
    fn device(&self) -> Option<Arc<Device>> {
        lock(&self.shared).device.clone()
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
        let [pages, copied_frames, safe_frames] = self.words([20, 96, 128])?;
        Some(Bounds { copied_frames, safe_frames, pages })
    }

    /// The salts of the WAL that the index belongs to, as bytes of the header have them.
    fn salts(&self) -> Option<Salts> {
        let [first, second] = self.words([32, 36])?.map(u32::to_ne_bytes);
        let mut salts = Salts::default();
        salts[..4].copy_from_slice(&first);
        salts[4..].copy_from_slice(&second);
        Some(salts)
    }

    /// Words of the index at these bytes.
    fn words<const N: usize>(&self, at: [usize; N]) -> Option<[u32; N]> {
        let index = self.index?;
        Some(at.map(|at| {
            // SAFETY: SQLite has mapped at least 32 KiB there and has not unmapped them; others may write, so it is volatile.
            unsafe { index.wrapping_add(at / size_of::<u32>()).read_volatile() }
        }))
    }

    /// The connection gives the lock of the writer back.
    fn end_writing(&self) -> std::io::Result<()> {
        let mut connection = lock(&self.shared);
        if let (Some(OpenWal { view, .. }), Some([committed])) =
            (&mut connection.wal, self.words([16]))
        {
            view.end_writing(committed);
        }
        connection.device.as_ref().map_or(Ok(()), |device| device.settle())
    }

    /// A lock on the shared memory was taken: what the index says of the WAL stays, or SQLite asks for the lock again.
    fn follow_index(&self) {
        if let Some(salts) = self.salts()
            && let Some(OpenWal { view, .. }) = &mut lock(&self.shared).wal
        {
            view.follow(salts);
        }
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
    if let Some(device) = connection.device.clone() {
        drop(connection);
        let (Ok(count), Ok(at)) = (usize::try_from(bytes), u64::try_from(at)) else {
            return Code::WRITE.0;
        };
        // SAFETY: SQLite passes a buffer of that many bytes, which nobody writes meanwhile.
        let data = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), count) };
        return code(device.database().write_at(data, at));
    }
    // SAFETY: the file below is open, and the arguments are those of SQLite.
    unsafe { (real.methods().write)(real.as_ptr(), data, bytes, at) }
}

unsafe extern "C" fn read(file: *mut File, buffer: *mut c_void, bytes: c_int, at: i64) -> c_int {
    // SAFETY: SQLite reads a file that is open.
    let (database, real) = unsafe { Wrapped::<Database>::parts(file) };
    let Some(device) = database.device() else {
        // SAFETY: the file below is open, and the arguments are those of SQLite.
        return unsafe { (real.methods().read)(real.as_ptr(), buffer, bytes, at) };
    };
    let (Ok(count), Ok(at)) = (usize::try_from(bytes), u64::try_from(at)) else {
        return Code::READ.0;
    };
    // SAFETY: SQLite passes a buffer of that many bytes, into which nobody else writes.
    let buffer = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), count) };
    match device.database().read_at(buffer, at) {
        Ok(true) => Code::OK,
        Ok(false) => Code::SHORT_READ.0,
        Err(Code(code)) => code,
    }
}

unsafe extern "C" fn truncate(file: *mut File, bytes: i64) -> c_int {
    // SAFETY: SQLite cuts a file that is open.
    let (database, real) = unsafe { Wrapped::<Database>::parts(file) };
    let Ok(bytes) = u64::try_from(bytes) else { return Code::WRITE.0 };
    code(match database.device() {
        Some(device) => device.database().truncate(bytes),
        None => real.truncate(bytes),
    })
}

unsafe extern "C" fn sync(file: *mut File, flags: c_int) -> c_int {
    // SAFETY: SQLite syncs a file that is open.
    let (database, real) = unsafe { Wrapped::<Database>::parts(file) };
    match database.device() {
        Some(device) => code(device.sync().map_err(|_| Code::SYNC)),
        // SAFETY: the file below is open, and the flags are those of SQLite.
        None => unsafe { (real.methods().sync)(real.as_ptr(), flags) },
    }
}

unsafe extern "C" fn file_size(file: *mut File, size: *mut i64) -> c_int {
    // SAFETY: SQLite asks about a file that is open.
    let (database, real) = unsafe { Wrapped::<Database>::parts(file) };
    let bytes = match database.device() {
        Some(device) => device.database().bytes(),
        None => real.bytes(),
    };
    // SAFETY: SQLite passes a place for the number.
    code(bytes.and_then(|bytes| unsafe { put_size(bytes, size) }))
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
    let runs = match step {
        Step::Cloned => {
            connection.cloned_pages += 1;
            return true;
        }
        Step::Clone(runs) => runs,
        Step::Write => Vec::new(),
    };
    let is_done = !runs.is_empty() && try_clone(connection, real, database, &runs, bytes);
    if !is_done {
        connection.written_pages += 1;
    }
    if let Some(checkpoint) = &mut connection.checkpoint {
        checkpoint.note(if is_done { runs } else { Vec::new() });
    }
    is_done
}

/// Clones runs, or says in the connection why that cannot be. `bytes` are those of the first page.
fn try_clone(
    connection: &mut Connection,
    real: Real,
    database: &Database,
    runs: &[Run],
    bytes: &[u8],
) -> bool {
    let Some(OpenWal { view, file }) = &connection.wal else { return false };
    let (Some(layout), Some(first)) = (view.layout(), runs.first()) else { return false };
    let cloned = match &connection.device {
        Some(device) => device
            .clone_runs(layout, runs, bytes)
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::NOTSUP)),
        None => clone_range(layout, file, real, database, first),
    };
    match cloned {
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

/// Has the file system clone a run.
fn clone_range(
    layout: Layout,
    wal: &WalFile,
    real: Real,
    database: &Database,
    run: &Run,
) -> Result<(), Errno> {
    let descriptor = os::descriptor(&real, &database.path).ok_or(Errno::BADF)?;
    let page_bytes = layout.page_bytes();
    let source = layout.page_at(u64::from(run.frame));
    let target = u64::from(run.page - 1) * page_bytes;
    os::clone_range(wal, source, u64::from(run.pages) * page_bytes, descriptor, target)
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
        // The file below is a pointer, and must not grow.
        FCNTL_SIZE_HINT if let Some(device) = database.device() => {
            // SAFETY: SQLite passes a number with this operation.
            let bytes = unsafe { argument.cast::<i64>().read() };
            return code(device.grow(u64::try_from(bytes).unwrap_or(0)));
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

/// The lock of whoever writes to the WAL.
const WRITE_LOCK: c_int = 0;

unsafe extern "C" fn shm_lock(file: *mut File, offset: c_int, n: c_int, flags: c_int) -> c_int {
    // SAFETY: SQLite calls with a file that is open.
    let (database, real) = unsafe { Wrapped::<Database>::parts(file) };
    let holder = match database.memory(real) {
        Ok(holder) => holder,
        Err(Code(code)) => return code,
    };
    if flags & SHM_UNLOCK != 0 && offset == WRITE_LOCK && database.end_writing().is_err() {
        return Code::WRITE.0;
    }
    let Some(lock) = holder.methods().shm_lock else { return Code::LOCK.0 };
    // SAFETY: the file is open, and the arguments are those of SQLite.
    let code = unsafe { lock(holder.as_ptr(), offset, n, flags) };
    if code == Code::OK && flags & SHM_UNLOCK == 0 {
        database.follow_index();
    }
    code
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
    let (database, real) = unsafe { Wrapped::<Database>::parts(file) };
    if database.device().is_some() {
        // SAFETY: SQLite passes a place for an address; none means that it has to read.
        unsafe { memory.write(std::ptr::null_mut()) };
        return Code::OK;
    }
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
