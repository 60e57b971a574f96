//! Serves memory through NBD: the cost of the front end alone, for `scripts/bench-nbd.sh`.
//!
//! `cargo run --release -p onefold-serve --example memory -- unix:/tmp/memory.sock 1073741824 50`
//! serves 1 GiB and delays every reply by 50 us. A further argument names a file to record to.
use std::time::{Duration, Instant};

use onefold_device::observed::{DeviceStats, Observed, Recorded};
use onefold_device::{BlockDevice, Due, Extent};
use onefold_units::Status;

use onefold_serve::{Options, record, run};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

#[path = "../tests/serve/common/memory.rs"]
mod memory;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let endpoint = arguments.next().ok_or("expected: memory ENDPOINT [BYTES]")?.parse()?;
    let size = arguments.next().map_or(Ok(1 << 30), |bytes| bytes.parse())?;
    let delay_us = arguments.next().map_or(Ok(0), |micros| micros.parse())?;
    let mut options = Options::new("memory");
    options.nbd.push(endpoint);
    let delay = Duration::from_micros(delay_us);
    let device = Delayed { memory: memory::MemoryDevice::new(size), delay };
    let observed = match arguments.next() {
        None => Observed::new(device),
        Some(path) => {
            let (device_uuid, lba_bytes, behind_loop) = ([0; 16], 4096, false);
            let recorded = Recorded { device_bytes: size, device_uuid, lba_bytes, behind_loop };
            Observed::with_recorder(device, record(path.as_ref(), &recorded)?)
        }
    };
    // Taken before anything can be seen of the server, so that none is lost.
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    run(
        observed,
        &options,
        |_| {},
        |_| {
            signals.forever().next();
        },
    )?;
    Ok(())
}

/// Memory whose replies are due a fixed time after the request, if that is not zero.
struct Delayed {
    memory: memory::MemoryDevice,
    delay: Duration,
}

impl Delayed {
    fn due(&self) -> Due {
        (!self.delay.is_zero()).then(|| Instant::now() + self.delay)
    }
}

impl DeviceStats for Delayed {}

impl BlockDevice for Delayed {
    fn size(&self) -> u64 {
        self.memory.size()
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<Due, Status> {
        let due = self.due();
        self.memory.read(offset, buf)?;
        Ok(due)
    }

    fn write(&self, offset: u64, data: &[u8], fua: bool) -> Result<Due, Status> {
        let due = self.due();
        self.memory.write(offset, data, fua)?;
        Ok(due)
    }

    fn flush(&self) -> Result<Due, Status> {
        self.memory.flush()
    }

    fn trim(&self, offset: u64, len: u64) -> Result<Due, Status> {
        self.memory.trim(offset, len)
    }

    fn write_zeroes(&self, offset: u64, len: u64, unmap: bool, fua: bool) -> Result<Due, Status> {
        self.memory.write_zeroes(offset, len, unmap, fua)
    }

    fn extent(&self, offset: u64, len: u64) -> Result<Extent, Status> {
        self.memory.extent(offset, len)
    }
}
