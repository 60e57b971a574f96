//! Virtual-time driver: workloads, metrics, reports.

pub mod report;
pub mod result;
