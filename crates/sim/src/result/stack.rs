//! What each place of a stack of layers was asked for and wrote.

use serde::{Deserialize, Serialize};

use super::{Host, finite};

/// A device or a layer of a stack, in the measured part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StackPlace {
    /// Its name in the configuration.
    pub name: String,
    /// What it is: `ssd`, `zns`, `log`, `sung`, `han` or `dmz`.
    pub kind: String,
    /// The places that it lies on.
    pub on: Vec<String>,
    /// What it was asked for from above.
    pub host: Host,
    /// Pages that it wrote: a layer to the places below, a device to flash.
    pub written_pages: u64,
    /// Pages written / pages that it was asked to write; 0 without writes.
    #[serde(serialize_with = "finite")]
    pub write_ratio: f64,
}
