//! The journal detector: which blocks of a device hold the journals of file systems, and which hold their hot metadata.
//!
//! Terms: the *FS header* is a file system's own first record; a *journal header* is the first block of a jbd2 journal;
//! the *log* of a journal is the ring behind it; its *tail* is the oldest position that a recovery would read.
//!
//! 1. Placement only: nothing here sees a request before it is accepted, and nobody may let an answer of this crate decide
//!    what is stored. A wrong answer costs copies, never data.
//! 2. Everything read from the device is hostile: it is bounds-checked, a reading takes at most [`READS_MAX`] blocks,
//!    and any inconsistency means that there is no range.
//! 3. Every range lies on the device.
//!
//! [`Survey`] reads a device once; [`Detector`] goes on watching what is written. Both ask for the blocks they need.
//! Source: formats by the sources of the Linux kernel, e2fsprogs, xfsprogs, f2fs-tools and btrfs-progs as documented there;
//! the use of it by Choi 2022, who change the kernel to mark journal writes instead.
//!
//! ```
//! use onefold_journal::{Detector, Output, Setting};
//! use onefold_units::{Lba, Nanos};
//!
//! # fn read_block(_: &[u8], _: Lba) -> [u8; 4096] { [0; 4096] }
//! # let image: &[u8] = &[];
//! // A device of 1 GiB. The detector asks for blocks until it knows what there is.
//! let mut detector = Detector::new(1 << 18, Setting::Detect, Nanos::ZERO);
//! let mut reads = 0;
//! while let Some(output) = detector.poll_output() {
//!     match output {
//!         Output::Read(lba) => {
//!             reads += 1;
//!             detector.handle_read(Nanos::ZERO, lba, Some(&read_block(image, lba)));
//!         }
//!         Output::Changed => println!("journals: {:?}", detector.ranges()),
//!     }
//! }
//! // Nothing but zeroes: no file system, so no journal.
//! assert!(reads > 0 && detector.ranges().is_empty());
//! ```
//!
//! **Calling order.** [`Detector::new`]; then [`Detector::handle_write`], [`Detector::handle_trim`]
//! and [`Detector::handle_flush`] for everything the device accepted. After each call take
//! [`Detector::poll_output`] until it is empty. Call [`Detector::handle_timeout`] at the time that
//! [`Detector::poll_timeout`] names.
//!
//! **What is stable.** Which journals are found may get better in any release. The methods named
//! here follow semantic versioning from 1.0 on; until then the changelog names each change.
#![forbid(unsafe_code)]
#![deny(clippy::as_conversions)]

mod blocks;
mod btrfs;
mod class;
mod detector;
mod ext4;
mod extents;
mod f2fs;
mod fields;
mod hidden;
mod jbd2;
mod parsed;
mod partitions;
mod ring;
mod setting;
mod sniff;
mod survey;
mod table;
mod tail;
mod write;
mod xfs;

pub use blocks::READS_MAX;
pub use class::{Class, Confidence, Origin, Range, Remark, System};
pub use detector::{Detector, Output};
pub use parsed::Journal;
pub use ring::Extent;
pub use setting::{Setting, SettingError};
pub use survey::{Found, Survey};
pub use table::{Span, Table};
pub use write::Write;
