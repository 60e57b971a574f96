//! Look-alikes of seven volumes of Microsoft Research Cambridge in whole pages: `like-NAME-pages`.
//!
//! They have what a buffer notices of the originals, which cannot be shipped: how often and after
//! how long pages are written again, how uneven that is, and which share is read. They know no
//! times and no sectors. The names: `like-mds_0-pages`, `like-hm_0-pages`, `like-prxy_0-pages`,
//! `like-prn_0-pages`, `like-usr_0-pages`, `like-rsrch_0-pages` and `like-wdev_0-pages`.
//!
//! # Model
//!
//! A write starts at a page chosen by popularity, (rank + q)^-s over `pages` pages (Zipf and
//! Mandelbrot), or with the probability `rho` where one of the last accesses started, d accesses
//! ago, with log d uniform up to `distance`. Ranks lie in groups of 8 neighbours, and the groups are
//! scattered. A request has one page, or with the probability `multi` several: uniform from 2 to
//! 2 `mean` - 2. Half of the reads go to pages that are never written, uniformly; the others start
//! like writes. Before that, a share `loop_share` of the reads runs through the first `loop` of the
//! read-only pages, again and again (usr_0).
//!
//! A run is scaled down by `bytes` alone: fewer pages would make another workload.
//!
//! # Keys
//!
//! | key | default | meaning |
//! |---|---|---|
//! | `bytes` | size of the original | length: bytes read and written |
//! | `read_share` | by volume | share of reads |
//! | `s` | by volume | exponent of the popularity |
//! | `q` | by volume | shift of the popularity |
//! | `pages` | by volume | pages that are written, rounded up to groups of 8 |
//! | `rho` | by volume | share of starts that repeat one of the last |
//! | `distance` | by volume | how many accesses back at most |
//! | `multi` | by volume | share of requests of several pages |
//! | `mean` | by volume | their mean size in pages |
//! | `read_only` | by volume | pages that are only read |
//! | `loop` | `0`, usr_0: `9000` | pages that are read one after another |
//! | `loop_share` | `0`, usr_0: `0.75` | share of the reads that do so |
//! | `seed` | from the caller | seed of this workload alone |

mod figures;
mod generate;
mod preset;
mod volume;

#[cfg(test)]
mod tests;

pub use figures::PageFigures;
pub use generate::PageGenerator;
pub use volume::PageVolume;
