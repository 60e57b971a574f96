//! Studies: grids of buffer policies, sizes and workloads, or of devices.
//!
//! A study is a TOML file ([`Study::load`]). [`run`] reads or generates each workload once and shows every
//! block of its requests to all policies and sizes, spread over threads; results are appended to a
//! folder ([`Results`]) point by point, so that a later run goes on where an earlier one stopped.
//! [`status`] says what is left, and [`report`] draws the figures.
//!
//! A study of devices ([`Devices`]) runs each of its points through the simulator instead.
//!
//! The numbers do not depend on the number of threads, on the order of points, or on whether a run was
//! interrupted; only CPU seconds do.
#![forbid(unsafe_code)]

mod cell;
mod cpu;
mod error;
mod export;
mod file;
mod in_one_step;
mod kept;
mod key;
mod latency;
mod numbers;
pub mod report;
mod row;
mod run;
mod series;
mod status;
mod store;
mod stream;
mod summary;
mod verify;

pub use error::{Fault, StudyError};
pub use export::columns_markdown;
pub use file::{
    Accessed, AreaRatio, Base, Bound, Check, Claim, Comparison, Coordinate, DeviceChoice,
    DeviceLoad, Devices, Figure, FigureKind, GridText, Headline, Input, Metric, OWN_AXES,
    PolicyChoice, Published, PublishedRange, Source, Study, Subject, Term, Verdict, WarmUp,
    Workload, keep_grid,
};
pub use kept::{Table, read as read_table, table};
pub use latency::{LatencyChoice, LatencyModel, ModelKind, Placement, WB_SLOTS_MOST};
pub use numbers::Kept;
pub use row::{AreaHitsRow, AreaRow, Latency, LatencyRow, Program, Row, TenantRow};
pub use run::{Control, Options, Progress, run};
pub use status::{Status, WorkloadStatus, rows, status};
pub use store::Results;
pub use summary::Summary;
pub use verify::{Difference, Verified, verify};

/// Value of the key `schema` in study files and in the results.
pub const SCHEMA: &str = "onefold.study/1";
