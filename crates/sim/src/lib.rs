//! Virtual-time driver: workloads, metrics, reports.
