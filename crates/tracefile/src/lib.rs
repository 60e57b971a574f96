//! Trace files on disk: decompression, sorting, Parquet, conversion.
//!
//! [`TraceSource`] opens any trace and gives its records in time order, with times from 0 and, if
//! wanted, all devices in one address space. What [`Checked`] read once can be read again without checking
//! it, by several threads. [`create`] writes traces.

mod error;
mod hash;
mod input;
mod open;
mod options;
mod output;
mod parquet;
mod percpu;
mod plausible;
mod sorted;
mod source;

pub use error::TraceFileError;
pub use options::{Fit, Merge, Options, Shift};
pub use output::{OutputFormat, TraceWriter, create};
pub use source::{Checked, Meta, TraceSource};
