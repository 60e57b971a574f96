//! DRAM buffer policies behind one request-level interface.
//!
//! The buffer stands between the host interface and the FTL. A [`Policy`] sees requests and answers
//! with [`Actions`]: which slot serves a page, what has to be read from flash, which dirty entries
//! become one flash page. It keeps metadata only; whoever calls it keeps the bytes of the slots and
//! executes the actions in order.
//!
//! A policy that manages single entries is a [`Replacement`], one file in `policies`: it decides
//! which list an entry is in and which one leaves; [`Cache`] does the rest (write-back, TRIM, FLUSH,
//! FUA, partly written entries, statistics) in the same way for all of them.
//!
//! ```
//! use onefold_buffer::{
//!     Action, Actions, BufferConfig, Charge, FtlView, PolicySpec, Req, Sizes, new_policy,
//! };
//! use onefold_units::{Lpn, Op};
//!
//! struct Unmapped;
//! impl FtlView for Unmapped {
//!     fn mapped(&self, _: Lpn) -> bool {
//!         false
//!     }
//! }
//!
//! let policy = PolicySpec::parse("lru").unwrap();
//! let config = BufferConfig { policy, bytes: 2 * 4096, charge: Charge::Paper, volatile: true };
//! let sizes = Sizes::of_one_die(4096, 1 << 30);
//! let mut buffer = new_policy(&config, &sizes)?;
//! let mut actions = Actions::new();
//! for lpn in [7, 8, 9] {
//!     buffer.request(&Req::new(Op::Write, Lpn::new(lpn), 1), &Unmapped, &mut actions);
//! }
//! // Page 9 took the slot of page 7, which was programmed first.
//! let Action::Program { batch, .. } = actions.as_slice()[0] else { panic!("expected a program") };
//! assert_eq!(actions.batch(batch)[0].lpn, Lpn::new(7));
//! assert!(matches!(actions.as_slice()[1], Action::Store { lpn, .. } if lpn == Lpn::new(9)));
//! # Ok::<(), onefold_buffer::BufferError>(())
//! ```
//!
//! **Calling order.** [`new_policy`], then [`Policy::request`] for each request. Carry out the
//! actions in their order before the next request: the policy counts on them. At the end of the
//! device's life [`Policy::drain`] gives what is dirty.
//!
//! **What is stable.** Names and parameters of policies as texts, and what each decides: golden
//! traces hold it. The trait [`Policy`] follows semantic versioning from 1.0 on; until then the
//! changelog names each change.
#![forbid(unsafe_code)]
#![deny(clippy::as_conversions)]

mod actions;
mod area;
mod attach;
mod cache;
mod config;
mod cover;
mod entries;
mod error;
mod index;
mod list;
mod node;
pub mod offline;
mod part_mask;
mod policies;
mod policy;
mod replacement;
mod request;
mod setup;
mod shape;
mod sizing;
mod slab;
mod stats;
mod table;

pub use actions::{Action, Actions, Batch, Counts, Programmed, Slot, Stream};
pub use area::Area;
pub use cache::Cache;
pub use config::{BufferConfig, Build, Charge, Policies, PolicyInfo, PolicySpec};
pub use entries::{Entries, Memory, Pages};
pub use error::{BufferError, Violation};
pub use list::ListId;
pub use node::{Node, NodeId};
pub use onefold_units::policy::{Limits, Parameter, Parameters, PolicyError, Ratio, Value};
pub use part_mask::PartMask;
pub use policies::aoi::Appends;
pub use policies::lru::INFO as LRU;
pub use policies::{Bplru, Fab, Lru, Vbbms};
pub use policy::{FtlView, Learnt, Policy};
pub use replacement::Replacement;
pub use request::{Access, Req};
pub use setup::{Setup, Tables};
pub use shape::{Shape, Sizes};
pub use slab::Slab;
pub use stats::{Accesses, AreaHits, AreaStats, Stats, TenantStats};
pub use table::new_policy;
