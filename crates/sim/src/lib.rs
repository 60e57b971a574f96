//! Virtual-time driver: workloads, metrics, reports.
//!
//! [`simulate`] runs one configuration to one [`result::RunResult`]. It is single-threaded and
//! deterministic: the same setup and seed give the same result, apart from CPU time.
//!
//! ```
//! use onefold_config::{Config, Load, Sources};
//! use onefold_sim::{Control, Setup, result::Program, simulate};
//!
//! // What `onefold sim run --preset s1 --set .. --workload ..` does.
//! let sets = ["geometry.blocks=40", "capacity.logical=512MiB", "precondition.fill=1"].map(str::to_owned);
//! let config = Config::load(&Sources { preset: Some("s1"), sets: &sets, ..Sources::default() })?;
//! let load = Load::Workload("randwrite,bs=4KiB,qd=32,requests=20k".to_owned());
//! let setup = Setup {
//!     config: config.with_load(&load),
//!     trace_options: Default::default(),
//!     seed: 42,
//!     program: Program::default(),
//! };
//! let result = simulate(&setup, &Control::default())?;
//! println!("WAF {:.2}, p99 of writes {} ns", result.waf, result.latency_ns.write.p99);
//! assert_eq!(result.host.write_requests, 20_000);
//! assert!(result.waf >= 1.0);
//! println!("{}", result.to_json_pretty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **Calling order.** Build a [`Setup`], call [`simulate`], and read the [`result::RunResult`].
//! [`simulate_on`] goes on from a drive that was used before. A [`Control`] can watch a run and
//! stop it; the result then says so.
//!
//! **What is stable.** The result has a schema with a version (`docs/results.md`), and so have the
//! text forms of configurations and workloads. A change of the model that changes results is named
//! in the changelog.

mod at_once;
mod checkpoint;
mod contents;
mod control;
mod cpu;
mod dependencies;
mod doubts;
mod drive;
mod error;
mod events;
mod gathered;
mod histogram;
mod in_flight;
mod load;
mod log;
mod metrics;
mod outcome;
mod passes;
mod precondition;
mod ran;
mod remaps;
pub mod report;
mod request;
pub mod result;
mod room;
mod series;
mod setup;
mod simulate;
mod source;
mod stack;
mod tenant;
mod top;
mod used;
mod volume_run;
mod zoned;

pub use checkpoint::{Checkpoint, CheckpointError, Store, WriteState};
pub use control::{Control, OpenTrace};
pub use error::SimError;
pub use log::{Logged, OnRequest};
pub use precondition::Preconditioned;
pub use room::{halved, scaled, with_room};
pub use setup::Setup;
pub use simulate::{simulate, simulate_on};
pub use used::{ReadBlock, Used};
