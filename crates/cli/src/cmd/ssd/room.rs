//! Saying that a host has less room than a sparse file may take.

use std::path::Path;

use onefold_device::HostRoom;
use serde_json::{Value, json};

use super::render;
use crate::output::Global;

/// Warns who makes a file.
pub(crate) fn warn(global: &Global, path: &Path, room: &HostRoom) {
    if let Some(text) = shortage(room) {
        global.say(format_args!(
            "warning: {} {text}; while it is full, writes fail, or wait with `serve --on-full block`, and reads go on",
            path.display()
        ));
    }
}

/// What the host has left for a file, if it is one, for `info`.
pub(crate) fn describe(path: &Path) -> Option<Value> {
    let room = HostRoom::at(path)?;
    Some(json!({
        "path": path.display().to_string(),
        "host_free_bytes": room.free,
        "shortage": shortage(&room),
    }))
}

/// A line that says that a host has not the room for a file, if that is so.
pub(crate) fn warning(path: &Path) -> Option<String> {
    let text = shortage(&HostRoom::at(path)?)?;
    Some(format!("warning: {} {text}\n", path.display()))
}

/// How much less room there is than the file may take, if there is less.
pub(crate) fn shortage(room: &HostRoom) -> Option<String> {
    let (wanted, free) = (render::size(room.wanted), render::size(room.free));
    (!room.is_enough())
        .then(|| format!("may grow by {wanted}, and the file system of the host has {free} left"))
}

#[cfg(test)]
mod tests {
    use onefold_device::HostRoom;

    use super::shortage;

    #[test]
    fn only_a_shortage_is_told() {
        let room = |wanted, free| HostRoom { wanted, free };
        assert_eq!(shortage(&room(4096, 4096)), None);
        let text = shortage(&room(2 << 30, 1 << 20)).unwrap();
        assert_eq!(text, "may grow by 2 GiB, and the file system of the host has 1 MiB left");
    }
}
