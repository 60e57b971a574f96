//! Answers of the kernel that no test can make it give.

use onefold_units::Location;
use onefold_volume::ReadRun;

use super::super::refusals::REFUSALS_MAX;
use super::*;

/// The driver once asked again for ever. What the kernel answers is made up: no file says "not now" for ever.
#[test]
fn a_request_that_is_refused_again_and_again_fails() {
    if is_available().is_err() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = Arc::new(DirectFile::create(&folder.path().join("file"), 8192).unwrap());
    let mut ring = Ring::new(file, Arc::new(Bell::new().unwrap()), ()).unwrap();
    let run = ReadRun { at: Location::new(0), block: 0, blocks: 2 };
    ring.gather(Scatter::new(vec![run], 8192).0);
    let refused = -Errno::AGAIN.raw_os_error();
    for _ in 1..REFUSALS_MAX {
        ring.completed(0, refused);
        assert!(ring.over.is_empty() && !ring.is_idle(), "it is asked again");
    }
    // What was moved meanwhile gives it as long again.
    ring.completed(0, 4096);
    for _ in 0..REFUSALS_MAX {
        assert!(ring.over.is_empty() && !ring.is_idle(), "it is asked again");
        ring.completed(0, refused);
    }
    assert!(matches!(ring.take().next(), Some(Over::Host(_, Err(IoFailed::Error)))));
    assert!(ring.is_idle());
}
