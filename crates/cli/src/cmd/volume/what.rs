//! What `volume dump` shows.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(super) enum What {
    /// The label
    Label,
    /// All log segments with their states and live blocks; in the modes sung and han all partitions; with policy dmz all zones
    Segments,
    /// The batches of one log segment; in the modes sung and han the transactions of a log or map file; with policy dmz the
    /// zones of a chunk
    Segment {
        /// Its number
        number: u32,
    },
    /// Where a block of 4 KiB of the volume lies
    Map {
        /// Its number
        lba: u64,
        /// In this snapshot or clone [default: the device of the volume]
        #[arg(long, value_name = "NAME")]
        member: Option<String>,
    },
    /// The snapshots and clones
    Members,
}
