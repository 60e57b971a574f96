//! A volume on zones (zoned.md, sections 5 and 6).
//!
//! A log segment is a zone, so a zone in use is written from start to end by one stream, and reset as a whole.
//!
//! 1. A write begins at the write pointer of its zone: batches of one zone are written one after the other. One that fails is sent again
//!    from there on (`pointer`). A batch takes the rest of
//!    its zone where that is too small for another one, so a zone is full when its stream leaves it; one that is left
//!    before, after a failed write, is finished.
//! 2. A zone is free when it is empty: it is reset when the checkpoint that frees it counts, and taken after that.
//! 3. Zones that streams write in part, the one with roots and those that have to be finished are at most as many as the
//!    backing allows: the first batch of a zone waits until all that have to be finished are.
//! 4. Opening reads every write pointer, finishes zones that nobody goes on writing, and resets those that are free. What lies behind
//!    the batches that count is dead.
//! 5. Conventional zones hold log segments like the others, and those of labels and roots are overwritten in place. They are neither reset
//!    nor finished, and all of one may have been written.
//! 6. Zones that can only be read are emptied and not taken again. What lay in zones that are offline is an error to read.
//! 7. A page of the map that lay in one maps nothing that can be read but what newer runs say. The volume is opened for writing only if
//!    that is asked for: its blocks are given up then, and headers may tell more of them (`crate::volume::recovery::rebuild`).

mod error;
mod finishes;
mod labels;
mod open;
mod report;

pub use error::ZoneError;
pub use labels::write_label;
pub use report::{ZoneReport, ZoneStatus};

pub(crate) use finishes::Finishes;
pub(crate) use labels::format_zones;
pub(crate) use open::{laid_out, layout_on, of_zone};

/// Zones with a copy of the label.
pub(crate) const LABEL_ZONES: [u32; 2] = [0, 1];

/// Zones with roots.
pub(crate) const ROOT_ZONES: [u32; 2] = [2, 3];
