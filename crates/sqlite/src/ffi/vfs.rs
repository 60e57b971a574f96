//! The VFS `onefold`: opens files, and leaves everything else to the VFS `unix`.

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use onefold_units::convert::index64;

use super::abi::{File, OPEN_MAIN_DB, OPEN_READONLY, OPEN_WAL, POWERSAFE_OVERWRITE, Syscall, Vfs};
use super::api::Api;
use super::database::{self, Database};
use super::file::{self, OWN_BYTES, Shared, Wrapped};
use super::os;
use super::real::Real;
use super::wal::{self, Wal};
use crate::backing::WalFile;
use crate::code::Code;
use crate::connection::{Choice, Connection, Facts, OpenWal, Stock, choose};
use crate::device::{self, Device, Pointer};
use crate::header::{self, Kind};
use crate::layout::BLOCK_BYTES;
use crate::wal::{AlignedWal, Medium};

const NAME: &CStr = c"onefold";
const BELOW: &CStr = c"unix";

/// Makes the VFS `onefold` the default one.
pub(super) fn register(api: &Api) -> Result<(), &'static str> {
    static REGISTERING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = REGISTERING.lock().unwrap_or_else(PoisonError::into_inner);
    if !api.find(NAME).is_null() {
        return Ok(());
    }
    let below = api.find(BELOW);
    if below.is_null() {
        return Err("onefold: this SQLite has no VFS `unix`");
    }
    // SAFETY: VFSes that are registered stay, and `unix` does not change.
    let unix = unsafe { &*below };
    if unix.version < 3 {
        return Err("onefold: the VFS `unix` of this SQLite is too old");
    }
    let own_bytes = c_int::try_from(OWN_BYTES).unwrap_or(c_int::MAX);
    let vfs = Vfs {
        version: 3,
        os_file_bytes: unix.os_file_bytes.saturating_add(own_bytes),
        max_pathname: unix.max_pathname,
        next: std::ptr::null_mut(),
        name: NAME.as_ptr(),
        app_data: below.cast(),
        open,
        delete,
        access,
        full_pathname,
        dl_open,
        dl_error,
        dl_sym,
        dl_close,
        randomness,
        sleep,
        current_time,
        last_error,
        current_time_int64,
        set_system_call,
        system_call,
        next_system_call,
    };
    match api.register(Box::leak(Box::new(vfs))) {
        Code::OK => Ok(()),
        _ => Err("onefold: SQLite does not take the VFS"),
    }
}

/// The VFS below.
///
/// # Safety
/// `vfs` is the VFS `onefold`.
unsafe fn unix<'a>(vfs: *mut Vfs) -> (*mut Vfs, &'a Vfs) {
    // SAFETY: SQLite calls with the VFS that was registered, which is never freed.
    let below: *mut Vfs = unsafe { &*vfs }.app_data.cast();
    // SAFETY: `register` has put `unix` there.
    (below, unsafe { &*below })
}

/// Methods that the VFS below answers.
macro_rules! forward {
    ($($name:ident($($argument:ident: $kind:ty),*) $(-> $result:ty)?;)*) => {$(
        unsafe extern "C" fn $name(vfs: *mut Vfs, $($argument: $kind),*) $(-> $result)? {
            // SAFETY: SQLite calls with the VFS `onefold`.
            let (below, unix) = unsafe { unix(vfs) };
            // SAFETY: the arguments are those of SQLite, which expects the same of every VFS.
            unsafe { (unix.$name)(below, $($argument),*) }
        }
    )*};
}

forward! {
    access(name: *const c_char, flags: c_int, result: *mut c_int) -> c_int;
    full_pathname(name: *const c_char, bytes: c_int, full: *mut c_char) -> c_int;
    dl_open(name: *const c_char) -> *mut c_void;
    dl_error(bytes: c_int, text: *mut c_char);
    dl_sym(library: *mut c_void, symbol: *const c_char) -> Syscall;
    dl_close(library: *mut c_void);
    randomness(bytes: c_int, random: *mut c_char) -> c_int;
    sleep(microseconds: c_int) -> c_int;
    current_time(days: *mut f64) -> c_int;
    last_error(bytes: c_int, text: *mut c_char) -> c_int;
    current_time_int64(milliseconds: *mut i64) -> c_int;
    set_system_call(name: *const c_char, call: Syscall) -> c_int;
    system_call(name: *const c_char) -> Syscall;
    next_system_call(name: *const c_char) -> *const c_char;
}

/// Deletes a file. With the name of a WAL goes the WAL of a device.
unsafe extern "C" fn delete(vfs: *mut Vfs, name: *const c_char, sync_folder: c_int) -> c_int {
    // SAFETY: SQLite calls with the VFS `onefold`.
    let (below, unix) = unsafe { unix(vfs) };
    // SAFETY: SQLite passes a name that ends with a zero.
    let path = unsafe { CStr::from_ptr(name) }.to_bytes();
    let database =
        path.strip_suffix(b"-wal").map(|database| Path::new(OsStr::from_bytes(database)));
    if let Some(device) = database.and_then(device::opened)
        && device.delete_wal().is_err()
    {
        return Code::DELETE.0;
    }
    // SAFETY: the arguments are those of SQLite.
    unsafe { (unix.delete)(below, name, sync_folder) }
}

/// Opens a file. Databases and WALs become files of this VFS, all others are those of the VFS below.
unsafe extern "C" fn open(
    vfs: *mut Vfs,
    name: *const c_char,
    file: *mut File,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    // SAFETY: SQLite calls with the VFS `onefold`.
    let (below, unix) = unsafe { unix(vfs) };
    if name.is_null() || flags & (OPEN_MAIN_DB | OPEN_WAL) == 0 {
        // SAFETY: the memory is larger than the VFS below needs; the arguments are those of SQLite.
        return unsafe { (unix.open)(below, name, file, flags, out_flags) };
    }
    // SAFETY: the memory is that of a file of this VFS; a file without methods is not open.
    unsafe { file.write(File { methods: std::ptr::null() }) };
    let mut got = flags;
    // SAFETY: the memory has room for a file of the VFS below from there on; the arguments are those of SQLite.
    let code = unsafe { (unix.open)(below, name, file::below(file), flags, &raw mut got) };
    if !out_flags.is_null() {
        // SAFETY: SQLite passes a place for the flags, or none.
        unsafe { out_flags.write(got) };
    }
    // SAFETY: the VFS below was asked to open it.
    let real = match unsafe { Real::new(file::below(file)) } {
        Some(real) if code == Code::OK => real,
        Some(real) => {
            real.close();
            return code;
        }
        None => return if code == Code::OK { Code::CANTOPEN.0 } else { code },
    };
    // SAFETY: SQLite passes a name that ends with a zero.
    let path = unsafe { CStr::from_ptr(name) };
    if flags & OPEN_MAIN_DB != 0 {
        let device = match device_of(real, path) {
            Ok(device) => device,
            Err(Code(code)) => {
                real.close();
                return code;
            }
        };
        let state = Database::new(below, path, device);
        // SAFETY: the memory is that of a file of this VFS, and these are the methods of databases.
        unsafe { Wrapped::fill(file, &database::METHODS, state) };
        return Code::OK;
    }
    // SAFETY: this is the name that SQLite passes when it opens a WAL.
    let database = Api::loaded().map(|api| unsafe { api.database_of(name) });
    // SAFETY: SQLite opens a WAL while its database is open.
    let database = database.and_then(|database| unsafe { database::connection(database) });
    match open_wal(real, path, got, database) {
        Ok(state) => {
            // SAFETY: the memory is that of a file of this VFS, and these are the methods of WALs.
            unsafe { Wrapped::fill(file, &wal::METHODS, state) };
            Code::OK
        }
        Err(Code(code)) => {
            real.close();
            code
        }
    }
}

/// The device of a database, if its file names one.
fn device_of(real: Real, path: &CStr) -> Result<Option<Arc<Device>>, Code> {
    let mut start = [0; index64(BLOCK_BYTES)];
    real.read_at(&mut start, 0)?;
    let end = start.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let Some(pointer) = Pointer::parse(&start[..end]) else { return Ok(None) };
    let database = Path::new(OsStr::from_bytes(path.to_bytes()));
    let opened = pointer.and_then(|pointer| device::open(database, &pointer));
    opened.map(Some).map_err(|_| Code::CANTOPEN)
}

/// Decides how a WAL is used, which the VFS below has opened.
fn open_wal(
    real: Real,
    name: &CStr,
    flags: c_int,
    database: Option<(Real, Shared)>,
) -> Result<Wal, Code> {
    let Some((database, shared)) = database else {
        let stock = Connection { stock: Some(Stock::Apart), ..Connection::default() };
        return Ok(Wal::new(Arc::new(Mutex::new(stock))));
    };
    let path = PathBuf::from(OsStr::from_bytes(name.to_bytes()));
    let file = WalFile::open(&path).map_err(|_| Code::CANTOPEN)?;
    let mut connection = file::lock(&shared);
    (connection.wal, connection.stock) = (None, None);
    let lock = file.lock().map_err(|_| Code::LOCK)?;
    let mut start = [0; 32];
    if let Some(device) = connection.device.clone() {
        device.wal().read_at(&mut start, 0)?;
        // Nobody but this VFS writes there (invariant 1 of `device`).
        if !matches!(header::kind(&start), Kind::Aligned(_) | Kind::Empty) {
            return Err(Code::CANTOPEN);
        }
        drop(lock);
        connection.wal = Some(OpenWal { view: AlignedWal::default(), file });
        drop(connection);
        return Ok(Wal::new(shared));
    }
    real.read_at(&mut start, 0)?;
    let is_live = || os::is_live(&shared_memory(name)).map_err(|_| Code::SHM_OPEN);
    let facts = Facts {
        is_read_only: flags & OPEN_READONLY != 0,
        is_powersafe: database.device_characteristics() & POWERSAFE_OVERWRITE != 0,
        page_bytes: page_bytes(database)?,
        is_stock_live: is_live()?,
    };
    match choose(header::kind(&start), facts)? {
        Choice::Stock(stock) => connection.stock = Some(stock),
        choice => {
            if choice == Choice::Create {
                AlignedWal::create(&real)?;
                // One that has come since found no header, or it is refused by this one.
                if is_live()? {
                    return Err(Code::BUSY);
                }
            }
            drop(lock);
            connection.wal = Some(OpenWal { view: AlignedWal::default(), file });
        }
    }
    drop(connection);
    Ok(Wal::new(shared))
}

/// The shared memory of connections without the extension: `DB-shm` for `DB-wal`.
fn shared_memory(wal: &CStr) -> PathBuf {
    let name = wal.to_bytes();
    let database = name.strip_suffix(b"-wal").unwrap_or(name);
    PathBuf::from(OsStr::from_bytes(&[database, b"-shm"].concat()))
}

/// Page size of a database, 0 if it is empty.
fn page_bytes(database: Real) -> Result<u32, Code> {
    let mut field = [0; 2];
    database.read_at(&mut field, 16)?;
    Ok(match u16::from_be_bytes(field) {
        1 => 65_536,
        bytes => u32::from(bytes),
    })
}
