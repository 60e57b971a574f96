//! Virtual-time driver: workloads, metrics, reports.
//!
//! [`simulate`] runs one configuration to one [`result::RunResult`]. It is single-threaded and
//! deterministic: the same setup and seed give the same result, apart from CPU time.

mod at_once;
mod contents;
mod control;
mod cpu;
mod dmz;
mod drive;
mod error;
mod events;
mod gathered;
mod in_flight;
mod load;
mod metrics;
mod outcome;
mod precondition;
mod ran;
pub mod report;
mod request;
pub mod result;
mod series;
mod setup;
mod simulate;
mod source;
mod tenant;
mod used;
mod volume;
mod zoned;

pub use control::Control;
pub use error::SimError;
pub use precondition::Preconditioned;
pub use setup::Setup;
pub use simulate::{simulate, simulate_on};
pub use used::{ReadBlock, Used};
