//! The entry point of the extension.

use std::ffi::{c_char, c_int, c_void};

use super::api::Api;
use super::vfs;
use crate::code::Code;

/// The extension stays loaded when the connection that loaded it is closed (`SQLITE_OK_LOAD_PERMANENTLY`).
const LOADED_PERMANENTLY: c_int = 256;

/// SQLite calls this when it loads the extension. The name is derived from that of the library.
///
/// # Safety
/// Only SQLite calls it, with its functions and a place for an error message.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn sqlite3_onefoldsqlite_init(
    _database: *mut c_void,
    error: *mut *mut c_char,
    routines: *const *const c_void,
) -> c_int {
    // SAFETY: the caller is SQLite.
    let Some(api) = (unsafe { Api::of(routines) }) else { return Code::ERROR.0 };
    match start(api) {
        Ok(()) => LOADED_PERMANENTLY,
        Err(text) => {
            if !error.is_null() {
                // SAFETY: SQLite passes a place for one pointer, and frees the text.
                unsafe { error.write(api.text(text)) };
            }
            Code::ERROR.0
        }
    }
}

/// Registers the VFS unless it is there.
fn start(api: Api) -> Result<(), &'static str> {
    if !api.keep() {
        return Err("onefold: another SQLite library of this process has loaded the extension; \
                    load it in one of them");
    }
    vfs::register(&api)
}
