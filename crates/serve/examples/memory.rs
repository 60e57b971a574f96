//! Serves memory through NBD: the cost of the front end alone, for `scripts/bench-nbd.sh`.
//!
//! `cargo run --release -p onefold-serve --example memory -- unix:/tmp/memory.sock 1073741824`
use onefold_device::edge::Edge;
use onefold_serve::{Options, run};

#[path = "../tests/common/memory.rs"]
mod memory;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let endpoint = arguments.next().ok_or("expected: memory ENDPOINT [BYTES]")?.parse()?;
    let size = arguments.next().map_or(Ok(1 << 30), |bytes| bytes.parse())?;
    let mut options = Options::new("memory");
    options.nbd.push(endpoint);
    run(Edge::new(memory::MemoryDevice::new(size)), &options, |_| {})?;
    Ok(())
}
