//! A log-structured merge tree as the device below it sees it: the workloads `lsm-load` and
//! `lsm-run`.
//!
//! They imitate the traces of RocksDB of Jeong et al., "Buffer Management With
//! Append-Only Data Isolation for Improving SSD Performance", 2021 (Table 1: `Rocks_load`, `Rocks_run`): large sequential writes and
//! reads of merges, bursts of a write-ahead log, the journal of a file system, and point reads.
//! [`Lsm::parse`] checks a specification, [`Lsm::instantiate`] fits it to a device, and
//! [`LsmGenerator::fill`] produces the requests, in memory that grows with the number of files.
//!
//! # Model
//!
//! - **Load** puts new keys, uniformly over all keys. **Run** first loads `warmup` bytes, which
//!   belongs to the requests but not to their length ([`PageSource::fill_warm_up`]), then updates
//!   keys and gets values.
//! - **Log**: a file as large as a memtable, appended in bursts. A burst writes the last page of the
//!   one before again. When the memtable is flushed, the log is deleted, or used again in place.
//! - **Tree**: a flushed memtable is a file of level 0 over all keys. As many as `l0_trigger` are
//!   merged with all of level 1. A deeper level that is larger than its size (`l1`, each further one
//!   `fanout` times more) passes on its next file in key order, merged with what overlaps below.
//!   Outputs have equal shares of the keys and at most `file` bytes, shortened at random. In a run,
//!   the last level keeps the old data and the share `new_share` of what arrives. A store that has
//!   reached `capacity` replaces keys only.
//! - **Host cache**: a merge does not read files that are younger than `cache_age` (in bytes of
//!   traffic), nor a share `absorb` of the others. It reads and writes in turn, `readahead` bytes
//!   at a time.
//! - **Gets** choose a level by its size, then a file and a place in it uniformly, or those of a key by
//!   its popularity (`keys`); some repeat one of the last. They may read the newer levels on the way
//!   (`cascade`). Updates are uniform: what is popular is found in the memtable more often than here.
//! - **Space**: files get extents next-fit. Deleted ones are trimmed file by file (`online`), when
//!   `trim_batch` bytes have come together (`delayed`; until then their space rests), or never
//!   (`none`). In front of them lie the hot metadata pages and the journal; a new file, a flush and
//!   the end of a merge each commit some journal pages and write one metadata page.
//!
//! # Keys
//!
//! | key | default | meaning |
//! |---|---|---|
//! | `bytes` | 4092.7 GiB, run: `1665GiB` | length: bytes read and written after the warm-up |
//! | `warmup` | `200GiB` | run: user bytes loaded before |
//! | `space` | `282GiB` | what the store uses, from the start of the device |
//! | `align` | `1MiB` | extents are multiples of it |
//! | `max_req` | `512KiB` | larger reads and writes are split |
//! | `memtable` | `64MiB` | a memtable, its log and its file of level 0 |
//! | `file` | `64MiB` | largest file of the other levels |
//! | `shorten` | `299` | pages an output may lose |
//! | `l0_trigger` | `4` | files of level 0 that start a merge |
//! | `l1` | `256MiB` | size of level 1 |
//! | `fanout` | `10` | how many times more each further level holds |
//! | `capacity` | `0.8` | share of the space at which the store is full |
//! | `new_share` | `0.05` | run: share of the updates that adds data |
//! | `readahead` | `2MiB` | reads and writes of a merge alternate in pieces of it |
//! | `cache_age` | `2GiB` | traffic after which a file has left the cache of the host |
//! | `absorb` | `0.45` | share of the older files that a merge still finds there |
//! | `gets` | `25600` | run: gets while one memtable fills |
//! | `get_pages` | `1-1:60/2-2:32/4-31:8` | run: their sizes in pages with weights |
//! | `repeat` | `0.03` | run: share of gets that repeat one of the `recent` last |
//! | `recent` | `256` | see `repeat` |
//! | `keys` | `uniform` | run: popularity of the keys of gets, `uniform` or `zipf:0.99` as YCSB has, over records of 1,000 B |
//! | `cascade` | `off` | run: a get also reads the block of each newer file that could have its key, as without filters |
//! | `discard` | `online` | `online`, `delayed` or `none` |
//! | `trim_max` | `64MiB` | larger trims are split |
//! | `trim_batch` | `1GiB` | `delayed`: deleted bytes that are trimmed together |
//! | `wal` | `delete` | `delete` or `recycle` |
//! | `wal_end` | `flushed` | a log is deleted when its memtable is `flushed` or as soon as it is `full` |
//! | `wal_burst` | `64-511` | new pages of a burst of the log |
//! | `journal` | `32000` | pages of the journal |
//! | `commit_file` | `4` | journal pages for each new file |
//! | `commit_flush` | `6` | journal pages for each flush |
//! | `commit_compaction` | `8` | journal pages at the end of each merge |
//! | `hot_pages` | `64` | metadata pages |
//! | `seed` | from the caller | seed of this workload alone |
//!
//! [`PageSource::fill_warm_up`]: super::PageSource::fill_warm_up

mod generate;
mod gets;
mod log;
mod parse;
mod queue;
mod space;
mod spec;
mod tree;

#[cfg(test)]
mod tests;

pub use generate::{LsmGenerator, LsmTotals};
pub use spec::{Lsm, LsmPhase};
