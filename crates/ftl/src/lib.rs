//! A page-mapping FTL: garbage collection, remapping, checkpoints, and recovery from a power cut.
//!
//! ```
//! use onefold_ftl::{Ftl, FtlConfig};
//! use onefold_nand::{At, Geometry, GeometrySpec, Nand, NullMedia, Span, TimingSpec, Work};
//! use onefold_units::{Cause, Lpn, Nanos};
//!
//! // Four dies with 64 blocks of 64 pages of 4 KiB each; the host sees three quarters.
//! let spec = GeometrySpec {
//!     channels: 2, ways: 2, planes: 1, blocks: 64, pages: 64,
//!     page_bytes: 4096, unit_bytes: 4096, span: Span::Device,
//! };
//! let geometry = Geometry::new(spec)?;
//! let nand = Nand::new(geometry, TimingSpec::EXAMPLE, Default::default(), NullMedia);
//! let units = geometry.total_slots() * 3 / 4;
//! let mut ftl = Ftl::new(nand, FtlConfig::plain(units), 0)?;
//!
//! // Every unit is written once, and then every second one again.
//! let mut now = Nanos::ZERO;
//! for lpn in (0..ftl.host_units()).chain((0..ftl.host_units()).step_by(2)).map(Lpn::new) {
//!     let at = At { now, ready: now, work: Work::Host };
//!     now = ftl.write(at, lpn, 1, 0, &[])?.done;
//! }
//! let programs = ftl.stats().programs;
//! println!("{} pages of the host, {} copied", programs.of(Cause::User), programs.of(Cause::Gc));
//! assert_eq!(programs.of(Cause::User), units * 3 / 2);
//! ftl.check()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **Calling order.** [`Ftl::new`] on erased flash, or [`Ftl::recover`] on flash that was used.
//! Then [`Ftl::write`], [`Ftl::read`], [`Ftl::trim`], [`Ftl::flush`] and [`Ftl::remap`] in any
//! order. Each carries out the command at once and gives the time at which it ends.
//! [`At::now`](onefold_nand::At) must never decrease; [`At::ready`](onefold_nand::At) is when the
//! data of the command is there. There is nothing to poll. [`Ftl::into_media`] is a power cut: a
//! write that no flush covered may be missing after the next recovery. Trims are durable at once,
//! in NVRAM.
//!
//! **Bytes.** With [`NullMedia`](onefold_nand::NullMedia) data slices are empty and only counts and
//! times remain. A medium that keeps bytes gets each unit at its physical page.
//!
//! **What is stable.** The on-flash format has versions, and a newer FTL reads older flash
//! (`docs/spec.md`). The methods named here and [`FtlStats`] follow semantic versioning from 1.0
//! on; until then the changelog names each change.
#![forbid(unsafe_code)]
#![deny(clippy::as_conversions)]

mod aside;
mod candidates;
mod check;
mod checkpoint;
mod config;
mod config_error;
mod contents;
mod dump;
mod entries;
mod error;
mod fill;
mod fingerprints;
mod frontier;
mod ftl;
mod gc;
mod layout;
mod lifecycle;
mod map_cache;
mod pool;
mod read;
mod recovery;
mod recovery_cost;
mod recovery_report;
mod relocate;
mod remap;
mod staging;
mod stats;
mod superblock;
mod trim;
mod trim_log;
mod unit;
mod victim;
mod weak;
mod write;

pub use check::Violation;
pub use config::FtlConfig;
pub use config_error::ConfigError;
pub use contents::DedupScope;
pub use error::FtlError;
pub use fingerprints::{Fingerprint, FingerprintIndex, Origin};
pub use ftl::Ftl;
pub use layout::Layout;
pub use recovery_cost::RecoveryCost;
pub use recovery_report::{LogDamage, OnLogDamage, RecoverError, RecoveryReport};
pub use remap::{
    Deduplicated, Maintenance, RemapCaps, RemapConfig, RemapDone, RemapError, RemapOptions,
    RemapOutcome, RemapRange, RemapScheme, RemapStats, RemapTables,
};
pub use stats::{FailedDie, FtlStats, Held, SavedPages, SpaceMap, Wear};
pub use victim::{
    BuildVictim, Candidate, Candidates, GREEDY, Victim, VictimInfo, VictimPolicies, VictimSetup,
    VictimSpec,
};
