//! Studies of the DRAM buffer: grids of policies, sizes and workloads.
//!
//! A study is a TOML file ([`Study::load`]). [`run`] reads or generates each workload once and shows every
//! block of its requests to all policies and sizes, spread over threads; results are appended to a
//! folder ([`Results`]) point by point, so that a later run goes on where an earlier one stopped.
//! [`status`] says what is left, and [`report`] draws the figures.
//!
//! The numbers do not depend on the number of threads, on the order of points, or on whether a run was
//! interrupted; only CPU seconds do.
#![forbid(unsafe_code)]

mod cell;
mod cpu;
mod error;
mod export;
mod file;
mod key;
mod latency;
pub mod report;
mod row;
mod run;
mod status;
mod store;
mod stream;

pub use error::{Fault, StudyError};
pub use file::{
    Bound, Check, Claim, Comparison, Figure, FigureKind, Headline, Input, Metric, PolicyChoice,
    Source, Study, Subject, Term, Verdict, WarmUp, Workload,
};
pub use latency::{LatencyChoice, LatencyModel, ModelKind, Placement, WB_SLOTS_MOST};
pub use row::{AreaRow, Latency, LatencyRow, Program, Row, TenantRow};
pub use run::{Control, Options, Progress, Summary, run};
pub use status::{Status, WorkloadStatus, rows, status};
pub use store::Results;

/// Value of the key `schema` in study files and in the results.
pub const SCHEMA: &str = "onefold.study/1";
