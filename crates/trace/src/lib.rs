//! Read, detect, convert and generate block traces.
//!
//! ```
//! use onefold_trace::{FormatSpec, Info, TraceOp, detect, order, read_all};
//!
//! // Two lines of MSR Cambridge: time in 100 ns, host, disk, type, offset and length in bytes, response time in 100 ns.
//! let bytes = b"128166372003061629,usr,0,Write,8192,4096,1331\n\
//!               128166372016382155,usr,0,Read,8192,8192,251\n";
//! let format = detect(bytes, true)?; // true: this is the whole file
//! assert_eq!(format.name(), "msr");
//!
//! let (mut records, summary) = read_all(FormatSpec::new(format), bytes)?;
//! order::sort(&mut records);
//! assert_eq!((records.len(), summary.skipped_lines), (2, 0));
//!
//! let mut info = Info::new();
//! records.iter().for_each(|record| info.add(record));
//! assert_eq!(info.of(TraceOp::Write).bytes, 4096);
//! println!("{} requests over {} pages", info.requests(), info.touched_pages());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `traces/` of the repository has whole files. Feed a file too large for memory to
//! [`Reader::push`] in pieces, then call [`Reader::finish`]. `onefold-tracefile` does this, and
//! decompresses and sorts on disk.
//!
//! Sans-I/O: a driver pushes bytes and takes records. The stages, in order:
//!
//! 1. [`detect()`] looks at the first 64 KiB and names the [`Format`], unless the user did;
//! 2. a [`Reader`] turns bytes into [`Record`]s in file order, with the trace's own times;
//! 3. the driver sorts them by time, stably ([`order::sort`], [`order::Merge`]);
//! 4. a [`Shaper`] joins lines of one request, starts time at 0 and shortens long gaps;
//! 5. a [`Layout`] places devices one after another where one address space is wanted.
//!
//! [`Scan`] and [`Info`] count on the way; [`Writer`] and [`oft`] turn records into bytes again.
//! Formats, units and rules are described in `docs/traces.md`.
//!
//! **What is stable.** The format OFT has versions, and a newer reader reads older files. Names of
//! formats and workloads, and their text grammar, follow semantic versioning from 1.0 on; until
//! then the changelog names each change.
#![forbid(unsafe_code)]
#![deny(clippy::as_conversions)]

mod closest;
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
pub use error::{BadColumn, BinaryProblem, Closest, DetectError, ReadError};
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
