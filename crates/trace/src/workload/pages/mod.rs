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
//! read-only pages, again and again (`usr_0`).
//!
//! A run is scaled down by `bytes` alone: fewer pages would make another workload.
//!
//! # Keys
//!
//! | key | default | meaning |
//! |---|---|---|
//! | `bytes` | size of the original | length: bytes read and written |
//! | `fit` | `pages` | popularity: `pages` or `requests`, below |
//! | `read_share` | by volume | share of reads |
//! | `s` | by fit | exponent of the popularity |
//! | `q` | by fit | shift of the popularity |
//! | `pages` | by fit | pages that are written, rounded up to groups of 8 |
//! | `rho` | by fit | share of starts that repeat one of the last |
//! | `distance` | by fit | how many accesses back at most |
//! | `multi` | by volume | share of requests of several pages |
//! | `mean` | by volume | their mean size in pages |
//! | `read_only` | by volume | pages that are only read |
//! | `loop` | `0`, `usr_0`: `9000` | pages that are read one after another |
//! | `loop_share` | `0`, `usr_0`: `0.75` | share of the reads that do so |
//! | `seed` | from the caller | seed of this workload alone |
//!
//! # Fits
//!
//! The originals were measured page by page: share of rewrites, share of the most written hundredth
//! of the pages, writes of the most written page, pages written between two writes of a page
//! ([`PageFigures`]). `fit=pages` are the parameters of the buffer specification: they reach these
//! figures if every request has one page (`multi=0`), and its expected hit ratios were computed
//! with them. Requests of several pages dilute the popularity: the share of the hottest pages falls
//! by up to a tenth and median gaps grow several times. `fit=requests` reaches the figures with the
//! requests as they are. Both are kept beside the figures they reach ([`PageVolume::reached`]).

mod figures;
mod generate;
mod preset;
mod volume;

#[cfg(test)]
mod tests;

pub use figures::PageFigures;
pub use generate::PageGenerator;
pub use volume::PageVolume;
