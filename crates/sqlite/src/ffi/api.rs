//! Functions of the SQLite that has loaded the extension.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

use super::abi::{self, DatabaseFileObject, File, Malloc64, Vfs, VfsFind, VfsRegister, routine};

/// The oldest SQLite that this is tested with.
const OLDEST: c_int = 3_040_000;
/// The functions, as they are.
#[derive(Clone, Copy)]
pub(super) struct Api {
    routines: usize,
    find: VfsFind,
    register: VfsRegister,
    malloc: Malloc64,
    database_file: DatabaseFileObject,
}

static API: OnceLock<Api> = OnceLock::new();

impl Api {
    /// Functions of SQLite, once one has loaded the extension.
    pub(super) fn loaded() -> Option<&'static Self> {
        API.get()
    }

    /// Keeps these functions. `false` if those of another SQLite of this process are kept.
    pub(super) fn keep(self) -> bool {
        API.get_or_init(|| self).routines == self.routines
    }

    /// # Safety
    /// `routines` is what SQLite passes to extensions.
    pub(super) unsafe fn of(routines: *const *const c_void) -> Option<Self> {
        let function = |place: usize| {
            // SAFETY: SQLite 3.40 and later has more functions than these places, and older ones are refused before.
            let function = unsafe { routines.wrapping_add(place).read() };
            (!function.is_null()).then_some(function)
        };
        // SAFETY: this place has a function of that type.
        let version: abi::LibversionNumber =
            unsafe { std::mem::transmute(function(routine::LIBVERSION_NUMBER)?) };
        // SAFETY: the function takes nothing.
        if unsafe { version() } < OLDEST {
            return None;
        }
        Some(Self {
            routines: routines.addr(),
            // SAFETY: this place has a function of that type.
            find: unsafe {
                std::mem::transmute::<*const c_void, VfsFind>(function(routine::VFS_FIND)?)
            },
            // SAFETY: this place has a function of that type.
            register: unsafe {
                std::mem::transmute::<*const c_void, VfsRegister>(function(routine::VFS_REGISTER)?)
            },
            // SAFETY: this place has a function of that type.
            malloc: unsafe {
                std::mem::transmute::<*const c_void, Malloc64>(function(routine::MALLOC64)?)
            },
            // SAFETY: this place has a function of that type.
            database_file: unsafe {
                std::mem::transmute::<*const c_void, DatabaseFileObject>(function(
                    routine::DATABASE_FILE_OBJECT,
                )?)
            },
        })
    }

    /// A VFS that is registered.
    pub(super) fn find(&self, name: &CStr) -> *mut Vfs {
        // SAFETY: the name ends with a zero.
        unsafe { (self.find)(name.as_ptr()) }
    }

    /// Registers a VFS as the default one.
    pub(super) fn register(&self, vfs: &'static mut Vfs) -> c_int {
        // SAFETY: the VFS stays for ever, and nobody else changes it.
        unsafe { (self.register)(vfs, 1) }
    }

    /// The file of the database to which a WAL belongs.
    ///
    /// # Safety
    /// `wal` is the name that SQLite passes when it opens a WAL.
    pub(super) unsafe fn database_of(&self, wal: *const c_char) -> *mut File {
        // SAFETY: the caller promises it.
        unsafe { (self.database_file)(wal) }
    }

    /// A text that SQLite frees. Null if there is no memory.
    pub(super) fn text(&self, text: &str) -> *mut c_char {
        let bytes = text.len();
        // SAFETY: any number of bytes may be asked for.
        let memory = unsafe { (self.malloc)(onefold_units::convert::u64_from(bytes) + 1) };
        let memory: *mut u8 = memory.cast();
        if !memory.is_null() {
            // SAFETY: the memory is new, and has a byte more than the text.
            unsafe { memory.copy_from_nonoverlapping(text.as_ptr(), bytes) };
            // SAFETY: the memory has a byte more than the text.
            unsafe { memory.wrapping_add(bytes).write(0) };
        }
        memory.cast()
    }
}
