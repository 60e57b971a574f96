//! Synthetic workloads: the specification language and the generators behind it.
//!
//! A specification is a pattern and keys, such as `randwrite,bs=4KiB,qd=32,requests=10M`.
//! [`Workload::parse`] checks it, [`Workload::instantiate`] fits it to a device, and
//! [`Generator::fill`] produces requests. The same specification, device size and seed give the
//! same requests on every machine: every random decision has its own stream of one seed, and no
//! function of the C library is involved.
//!
//! # Patterns
//!
//! `randwrite`, `randread` and `randrw` (half reads) choose addresses by `dist`; `write` and `read`
//! run through the range in order and start again at its end (a rest too short for a request is
//! left out). `mix` is `randrw` with trims: 50 % reads, 10 % trims, the rest writes.
//!
//! # Keys
//!
//! | key | default | meaning |
//! |---|---|---|
//! | `bs` | `4KiB` | request size, or weighted sizes: `4KiB:70/64KiB:30` |
//! | `align` | smallest `bs` | request starts are multiples of it, within the range |
//! | `range` | `0-100%` | addresses: `0-50%`, `1GiB-2GiB`, or a length from 0; cut to `align` |
//! | `dist` | `uniform` | `zipf:THETA`, `hotcold:F/R`, `pareto:H`, `gaussian:SIGMA`, below |
//! | `scatter` | see below | spread the popular addresses over the range |
//! | `qd` | `1` | closed loop: requests kept in flight |
//! | `rate` | - | open loop: requests per second; excludes `qd` |
//! | `arrival` | `poisson` | open loop: `poisson` or `fixed` distances between requests |
//! | `requests` | `1M` | length in requests of any kind |
//! | `bytes` | - | length in bytes read and written, instead of `requests` |
//! | `drive_writes` | - | length in bytes written, as a multiple of the range |
//! | `read_share` | by pattern | share of reads (`randrw`, `mix`) |
//! | `trim_share` | by pattern | share of trims among all requests (patterns that write) |
//! | `remap_share` | `0` | share of remaps among all requests (patterns that write), see Remaps |
//! | `remap_run` | `4KiB`, at least `align` | bytes of a remap, a multiple of `align` |
//! | `remap_move_share` | `0` | share of the remaps that move: their source is unmapped |
//! | `fua_share` | `0` | share of the writes that force unit access |
//! | `flush_every` | - | a flush after that many writes; shares do not count flushes |
//! | `seed` | from the caller | seed of this workload alone |
//! | `fresh` | `false` | the device starts empty, see Trims |
//!
//! Sizes: `4KiB` = `4k` = 4096, `4KB` = 4000. Counts are decimal: `10M`. Shares: `0.3` or `30%`.
//!
//! # Distributions
//!
//! The positions a request can start at are numbered by popularity, then spread over the range by a
//! seeded bijection ([`Scatter`]) if `scatter` is true.
//!
//! - `uniform`: every start is equally likely.
//! - `zipf:THETA`: the k-th most popular start has weight k^-THETA ([`Zipf`], exact). Scattered.
//! - `hotcold:F/R`: a share F of the starts gets a share R of the requests: `hotcold:0.2/0.8`, or in
//!   percent `hotcold:20%/80%` or `hotcold:20/80` (both numbers above 1). Not scattered: the hot
//!   starts are the first of the range.
//! - `pareto:H` (default 0.2): the self-similar 80/20 rule, any first H of the ranks gets 1 - H of
//!   the requests (Gray et al., "Quickly generating billion-record synthetic databases", 1994).
//!   Scattered.
//! - `gaussian:SIGMA` (default 0.1): normal around the middle of the range, with SIGMA as a share
//!   of the range; draws outside are repeated. Not scattered.
//!
//! # Trims
//!
//! A trim chooses uniformly among the units (of `align`) in use, whatever `dist` says: those that
//! were written and not trimmed since. With uniform single-unit writes this is the model of Frankie
//! et al., "A mathematical model of the TRIM command in NAND-flash SSDs", 2012: a share q of trims
//! keeps the share s of units in use where (1 - q)(1 - s) = q, so s = (1 - 2q)/(1 - q). All units
//! count as in use at the start, as a preconditioned device has them; `fresh` says otherwise. The
//! trim is as long as a drawn `bs`, up to the end of the range, and a unit counts as trimmed when a
//! trim touched it. When nothing is in use, a write takes the trim's place.
//!
//! # Remaps
//!
//! A remap lets `remap_run` bytes hold what as many bytes elsewhere hold. Its target is chosen as that
//! of a write is; its source begins at any unit, each with the same probability, but among the units
//! in use where there are trims or moves. `remap_move_share` of the remaps unmap their source. A source
//! that overlaps its target is fine: it is read as it was before.

mod address;
mod bench;
mod choices;
mod contents;
mod error;
mod ext4;
mod generate;
mod in_use;
mod keys;
mod kinds;
mod knobs;
pub mod like;
mod lsm;
mod math;
mod page_request;
mod pages;
mod parse;
mod pattern;
mod remaps;
mod request;
mod scatter;
mod spec;
mod sqlite;
mod values;
mod zipf;

#[cfg(test)]
mod tests;

pub use bench::{Bench, BenchGenerator, BenchWorkload};
pub use contents::{ContentModel, ContentSpec};
pub use error::WorkloadError;
pub use ext4::{Ext4Generator, Ext4Mode, Ext4Workload};
pub use generate::PatternGenerator;
pub use kinds::{Generator, Workload};
pub use lsm::{Lsm, LsmGenerator, LsmPhase, LsmTotals};
pub use page_request::{PAGE_BYTES, PageRequest, PageSource};
pub use pages::{PageFigures, PageGenerator, PageVolume};
pub use pattern::Pattern;
pub use request::{RemapFrom, Request};
pub use scatter::Scatter;
pub use spec::{
    Arrival, BlockSize, Bound, Distribution, Length, Pacing, PatternWorkload, RangeSpec, RemapSpec,
};
pub use sqlite::{SqliteFill, SqliteGenerator, SqliteWorkload};
pub use zipf::Zipf;
