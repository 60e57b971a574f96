//! Read, detect, convert and generate block traces.
//!
//! Sans-I/O: a driver pushes bytes and takes records. The stages, in order:
//!
//! 1. [`detect()`] looks at the first 64 KiB and names the [`Format`], unless the user did;
//! 2. a [`Reader`] turns bytes into [`Record`]s in file order, with the trace's own times;
//! 3. the driver sorts them by time, stably ([`order::sort`], [`order::Merge`]);
//! 4. a [`Shaper`] merges lines of one request and makes times start at 0 without jumps;
//! 5. a [`Layout`] places devices one after another where one address space is wanted.
//!
//! [`Scan`] and [`Info`] count on the way; [`Writer`] and [`oft`] turn records into bytes again.
//! Formats, units and rules are described in `docs/traces.md`.
#![forbid(unsafe_code)]
#![deny(clippy::as_conversions)]

mod cursor;
mod detect;
mod devices;
mod error;
mod fit;
mod formats;
pub mod info;
mod layout;
mod lines;
pub mod oft;
pub mod order;
mod pairing;
mod reader;
mod record;
mod records;
mod scan;
mod shape;
mod spec;
pub mod workload;
mod write;

pub use detect::{HEAD_BYTES, detect};
pub use error::{BinaryProblem, DetectError, ReadError};
pub use fit::{FitError, RegionSet, Regions, TOUCH_REGION_BYTES, wrap};
pub use formats::blktrace_event;
pub use info::Info;
pub use layout::{DEVICE_ALIGN_BYTES, Layout};
pub use reader::{Reader, Summary, read_all};
pub use record::{Digest, Flags, Record, TraceOp};
pub use scan::Scan;
pub use shape::{MAX_GAP_NS, ShapeOptions, Shaper};
pub use spec::{AddrUnit, Event, Format, FormatSpec, OnBadLine, ReadOptions, SpecError, TimeUnit};
pub use write::{Losses, WriteFormat, Writer};
