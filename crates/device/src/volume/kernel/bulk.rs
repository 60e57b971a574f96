//! Many reads at once, for openings.

use std::os::fd::{AsFd, AsRawFd};

use io_uring::opcode;
use io_uring::types::Fd;
use onefold_units::convert::{index64, u32_from, u64_from};
use onefold_volume::Buffer;

use super::{DEPTH, build};
use crate::volume::access::DirectFile;
use crate::volume::refusals::PAUSE;

/// Reads into all buffers at once, each from its offset on. Whether each is full; none is where the system has no ring.
pub(in crate::volume) fn read_all(
    file: &DirectFile,
    offsets: &[u64],
    buffers: &mut [Buffer],
) -> Vec<bool> {
    let mut full = vec![false; buffers.len()];
    let Ok(mut uring) = build() else { return full };
    let fd = Fd(file.as_fd().as_raw_fd());
    let (mut next, mut in_flight) = (0, 0);
    while next < buffers.len() || in_flight > 0 {
        while next < buffers.len() && in_flight < DEPTH {
            let bytes = buffers[next].bytes_mut();
            let entry = opcode::Read::new(fd, bytes.as_mut_ptr(), u32_from(bytes.len()))
                .offset(offsets[next])
                .build()
                .user_data(u64_from(next));
            next += 1;
            // SAFETY: the buffers are borrowed, and none is touched, until the loop has taken all completions.
            while unsafe { uring.submission().push(&entry) }.is_err() {
                let _ = uring.submit();
            }
            in_flight += 1;
        }
        // There is no giving up: the kernel may have buffers.
        if in_flight > 0 && uring.submit_and_wait(1).is_err() {
            std::thread::sleep(PAUSE);
        }
        for entry in uring.completion() {
            let number = index64(entry.user_data());
            let read = usize::try_from(entry.result()).unwrap_or(0);
            full[number] = read == buffers[number].bytes().len();
            in_flight -= 1;
        }
    }
    full
}
