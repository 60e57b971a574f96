//! Where the traces of the tests are.

use std::path::{Path, PathBuf};

use onefold_trace::Record;
use onefold_tracefile::{Options, TraceSource};

/// Root of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A trace that is committed.
pub(crate) fn committed(name: &str) -> PathBuf {
    root().join("traces").join(name)
}

/// A trace that may only be used locally, if it is there.
pub(crate) fn local(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("ONEFOLD_TRACES")
        .map_or_else(|| root().join("../shared/traces"), PathBuf::from);
    Some(folder.join(name)).filter(|path| path.exists())
}

/// All records of a source.
pub(crate) fn drain(source: &mut TraceSource) -> Vec<Record> {
    let mut all = Vec::new();
    let mut batch = Vec::new();
    while source.next_batch(&mut batch).unwrap() {
        all.append(&mut batch);
    }
    all
}

/// All records of a file.
pub(crate) fn records(path: &Path, options: &Options) -> Vec<Record> {
    drain(&mut TraceSource::open(path, options).unwrap())
}
