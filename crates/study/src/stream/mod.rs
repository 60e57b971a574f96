//! Requests of a workload: read or generated once, in blocks that all workers share.

mod block;
mod feed;
mod mapped;
mod mix;

pub(crate) use block::{BLOCK, Block, PackedReq};
pub(crate) use feed::Facts;
pub(crate) use mapped::MappedEntries;
pub(crate) use mix::{Mix, Plan, State};
