//! Small devices whose share of spare blocks is less than what collection keeps free.

use onefold_config::{Config, ConfigError};
use onefold_nand::NullMedia;
use onefold_ssd::Ssd;
use onefold_ssd::zns::{Zns, ZnsMedia};

/// Blocks per plane added at most.
const MORE_BLOCKS_MAX: u64 = 256;

/// The same device with as many more blocks as collection needs, and how many these are: what the same share of a large one has. The
/// device itself if more blocks do not help; building it tells what is wrong.
///
/// # Errors
/// As [`Config::ssd`].
pub fn with_room(config: Config, seed: u64) -> Result<(Config, u64), ConfigError> {
    for more in 0..=MORE_BLOCKS_MAX {
        let larger = config.with_more_blocks(more)?;
        if is_buildable(&larger, seed)? {
            return Ok((larger, more));
        }
    }
    Ok((config, 0))
}

/// Whether there can be such a device.
fn is_buildable(config: &Config, seed: u64) -> Result<bool, ConfigError> {
    Ok(match config.zns(seed)? {
        Some(zns) => Zns::new(zns, ZnsMedia::NULL).is_ok(),
        None => Ssd::new(config.ssd(seed)?, NullMedia).is_ok(),
    })
}
