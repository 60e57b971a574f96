//! Methods of a WAL.

use std::ffi::{c_int, c_void};

use super::abi::{File, IoMethods};
use super::file::{Shared, Wrapped, code, lock, put_size};
use super::real::Real;
use crate::code::Code;
use crate::connection::{Connection, OpenWal};
use crate::device::Device;
use crate::layout::HEADER_BYTES;
use crate::wal::Medium;

/// A WAL of a connection, aligned if the connection says so.
pub(super) struct Wal {
    shared: Shared,
}

impl Wal {
    pub(super) const fn new(shared: Shared) -> Self {
        Self { shared }
    }
}

pub(super) static METHODS: IoMethods = IoMethods {
    version: 1,
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
    shm_map: None,
    shm_lock: None,
    shm_barrier: None,
    shm_unmap: None,
    fetch: None,
    unfetch: None,
};

unsafe extern "C" fn close(file: *mut File) -> c_int {
    // SAFETY: SQLite closes a file that was opened, once.
    let (wal, real) = unsafe { Wrapped::<Wal>::parts(file) };
    let mut connection = lock(&wal.shared);
    (connection.wal, connection.stock, connection.checkpoint) = (None, None, None);
    drop(connection);
    // SAFETY: the same, and nobody has the state any more.
    unsafe { Wrapped::<Wal>::empty(file) };
    real.close()
}

/// Does something with the bytes of a WAL, wherever they lie.
fn with_medium<T>(device: Option<&Device>, real: Real, act: impl FnOnce(&dyn Medium) -> T) -> T {
    match device {
        Some(device) => act(&device.wal()),
        None => act(&real),
    }
}

/// Reads, with what a checkpoint has to know.
fn read_into(
    connection: &mut Connection,
    real: Real,
    buffer: &mut [u8],
    offset: u64,
) -> Result<bool, Code> {
    let Connection { wal, checkpoint, device, .. } = connection;
    let Some(OpenWal { view, .. }) = wal else { return real.read_at(buffer, offset) };
    let fill = |medium: &dyn Medium| view.read(medium, buffer, offset);
    let is_whole = with_medium(device.as_deref(), real, fill)?;
    if let Some(checkpoint) = checkpoint.as_mut().filter(|_| is_whole) {
        checkpoint.note_read(buffer, offset);
    }
    Ok(is_whole)
}

unsafe extern "C" fn read(file: *mut File, buffer: *mut c_void, bytes: c_int, at: i64) -> c_int {
    // SAFETY: SQLite reads a file that is open.
    let (wal, real) = unsafe { Wrapped::<Wal>::parts(file) };
    let (Ok(bytes), Ok(at)) = (usize::try_from(bytes), u64::try_from(at)) else {
        return Code::READ.0;
    };
    // SAFETY: SQLite passes a buffer of that many bytes, into which nobody else writes.
    let buffer = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), bytes) };
    match read_into(&mut lock(&wal.shared), real, buffer, at) {
        Ok(true) => Code::OK,
        Ok(false) => Code::SHORT_READ.0,
        Err(Code(code)) => code,
    }
}

/// Writes; a header under the lock that keeps others from reading half of it.
fn write_from(
    connection: &mut Connection,
    real: Real,
    bytes: &[u8],
    offset: u64,
) -> Result<(), Code> {
    let Connection { wal, device, .. } = connection;
    let Some(OpenWal { view, file }) = wal else {
        return real.write_at(bytes, offset);
    };
    let is_header = offset < HEADER_BYTES;
    let _others_wait = is_header.then(|| file.lock()).transpose().map_err(|_| Code::LOCK)?;
    with_medium(device.as_deref(), real, |medium| view.write(medium, bytes, offset))
}

unsafe extern "C" fn write(file: *mut File, data: *const c_void, bytes: c_int, at: i64) -> c_int {
    // SAFETY: SQLite writes a file that is open.
    let (wal, real) = unsafe { Wrapped::<Wal>::parts(file) };
    let (Ok(bytes), Ok(at)) = (usize::try_from(bytes), u64::try_from(at)) else {
        return Code::WRITE.0;
    };
    // SAFETY: SQLite passes a buffer of that many bytes, which nobody writes meanwhile.
    let data = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), bytes) };
    code(write_from(&mut lock(&wal.shared), real, data, at))
}

unsafe extern "C" fn truncate(file: *mut File, bytes: i64) -> c_int {
    // SAFETY: SQLite cuts a file that is open.
    let (wal, real) = unsafe { Wrapped::<Wal>::parts(file) };
    let Ok(bytes) = u64::try_from(bytes) else { return Code::WRITE.0 };
    let mut connection = lock(&wal.shared);
    let Connection { wal, device, .. } = &mut *connection;
    let Some(OpenWal { view, file }) = wal else {
        return code(real.truncate(bytes));
    };
    let cut = |medium: &dyn Medium| view.truncate(medium, bytes);
    let locked = file.lock().map_err(|_| Code::LOCK);
    code(locked.and_then(|_lock| with_medium(device.as_deref(), real, cut)))
}

unsafe extern "C" fn sync(file: *mut File, flags: c_int) -> c_int {
    // SAFETY: SQLite syncs a file that is open.
    let (wal, real) = unsafe { Wrapped::<Wal>::parts(file) };
    let mut connection = lock(&wal.shared);
    if let Some(OpenWal { view, .. }) = &mut connection.wal {
        view.note_sync();
    }
    if let Some(device) = &connection.device {
        return code(device.sync().map_err(|_| Code::SYNC));
    }
    drop(connection);
    // SAFETY: the file below is open, and the flags are those of SQLite.
    unsafe { (real.methods().sync)(real.as_ptr(), flags) }
}

unsafe extern "C" fn file_size(file: *mut File, size: *mut i64) -> c_int {
    // SAFETY: SQLite asks about a file that is open.
    let (wal, real) = unsafe { Wrapped::<Wal>::parts(file) };
    let mut connection = lock(&wal.shared);
    let Connection { wal, device, .. } = &mut *connection;
    let bytes = match wal {
        Some(OpenWal { view, .. }) => {
            with_medium(device.as_deref(), real, |medium| view.bytes(medium))
        }
        None => real.bytes(),
    };
    // SAFETY: SQLite passes a place for the number.
    code(bytes.and_then(|bytes| unsafe { put_size(bytes, size) }))
}

/// Methods that the file below answers.
macro_rules! forward {
    ($($name:ident = $method:ident($($argument:ident: $kind:ty),*) -> $result:ty;)*) => {$(
        unsafe extern "C" fn $name(file: *mut File, $($argument: $kind),*) -> $result {
            // SAFETY: SQLite calls with a file that is open.
            let (_, real) = unsafe { Wrapped::<Wal>::parts(file) };
            // SAFETY: the file below is open, and the arguments are those of SQLite.
            unsafe { (real.methods().$method)(real.as_ptr(), $($argument),*) }
        }
    )*};
}

forward! {
    lock_file = lock(level: c_int) -> c_int;
    unlock = unlock(level: c_int) -> c_int;
    check_reserved_lock = check_reserved_lock(result: *mut c_int) -> c_int;
    file_control = file_control(op: c_int, argument: *mut c_void) -> c_int;
    sector_size = sector_size() -> c_int;
    device_characteristics = device_characteristics() -> c_int;
}
