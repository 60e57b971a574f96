//! Virtual-time driver: workloads, metrics, reports.
//!
//! [`simulate`] runs one configuration to one [`result::RunResult`]. It is single-threaded and
//! deterministic: the same setup and seed give the same result, apart from CPU time.

mod contents;
mod control;
mod cpu;
mod dmz;
mod engine;
mod error;
mod in_flight;
mod metrics;
mod outcome;
mod precondition;
pub mod report;
pub mod result;
mod series;
mod source;
mod tenant;
mod used;
mod volume;
mod zoned;

pub use control::Control;
pub use engine::{Setup, simulate, simulate_on};
pub use error::SimError;
pub use precondition::Preconditioned;
pub use used::{ReadBlock, Used};
