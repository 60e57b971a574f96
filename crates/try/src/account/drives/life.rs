//! How long a drive lasts at the rate of the program.

use onefold_config::{Config, ConfigError};
use onefold_units::convert::float;
use serde::{Deserialize, Serialize};

/// Erase cycles that vendors rate flash for, by bits per cell: 1 to 4. Orders of magnitude, as
/// commonly given; `ftl.endurance` of a configuration file says better.
const TYPICAL: [u64; 4] = [100_000, 10_000, 3_000, 1_000];

const DAY_S: f64 = 86_400.0;

/// The life of a drive whose flash goes on to be programmed at the rate of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Life {
    /// Days until the rated erase cycles are gone, wear being level; `null` if nothing was
    /// programmed or no rated cycles are known.
    pub days: Option<f64>,
    /// Erase cycles that a block is rated for; `null` if they are not known.
    pub rated_cycles: Option<u64>,
    /// Where they are from.
    pub rated_by: String,
    /// Bytes of flash of which this is the life: those of the drive at its own size, or after it was
    /// made larger. Twice as many last twice as long.
    pub raw_bytes: u64,
    /// Seconds in which the program made what was programmed.
    pub seconds: f64,
}

impl Life {
    /// `own`: the drive at its own size; `config`: as it was simulated.
    pub(super) fn of(
        (own, config): (&Config, &Config),
        nand_bytes: u64,
        seconds: f64,
    ) -> Result<Self, ConfigError> {
        let ssd = config.ssd(0)?;
        let raw_bytes = ssd.geometry.raw_bytes().max(own.geometry()?.raw_bytes());
        let bits = ssd.timing.program.iter().count().max(ssd.timing.read.iter().count());
        let (rated_cycles, rated_by) = match u64::from(ssd.ftl.endurance) {
            0 if bits > 1 || config.name() == "slc" => {
                (Some(TYPICAL[bits - 1]), format!("typical of {bits} bits per cell"))
            }
            0 => (None, "not known: its cell times do not tell the bits per cell".to_owned()),
            cycles => (Some(cycles), "ftl.endurance".to_owned()),
        };
        let days = rated_cycles
            .filter(|_| nand_bytes > 0 && seconds > 0.0)
            .map(|cycles| float(cycles) * float(raw_bytes) / float(nand_bytes) * seconds / DAY_S);
        Ok(Self { days, rated_cycles, rated_by, raw_bytes, seconds })
    }
}
