//! Devices of another size: smaller ones with the same share of everything, and room for what
//! collection keeps free.

use onefold_config::{Config, ConfigError};
use onefold_nand::NullMedia;
use onefold_ssd::Ssd;
use onefold_ssd::zns::{Zns, ZnsMedia};
use onefold_units::PAGE_BYTES;

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

/// Fewest pages that blocks are shortened to.
const BLOCK_PAGES_MIN: u32 = 16;

/// Capacities of halved devices are multiples of the largest mapping unit.
const UNIT_MAX: u64 = 64 << 10;

/// Half of a device: blocks of half the pages while there are enough of them, so that superblocks and log segments shrink alike; one
/// with zones has half as many. `None` where it cannot be halved.
///
/// # Errors
/// As [`Config::ssd`] and [`Config::zns`].
pub fn halved(config: &Config) -> Result<Option<Config>, ConfigError> {
    if let Some(zns) = config.zns(0)? {
        let zone = u64::from(zns.capacity_blocks) * PAGE_BYTES;
        let half = config.logical_bytes()? / zone / 2 * zone;
        return Ok(config.with_logical_size(half).ok());
    }
    let pages = config.geometry()?.spec().pages;
    if pages % 2 != 0 || pages / 2 < BLOCK_PAGES_MIN {
        return Ok(None);
    }
    let half = config.logical_bytes()? / 2 / UNIT_MAX * UNIT_MAX;
    let sets = [format!("geometry.pages={}", pages / 2), format!("capacity.logical={half}B")];
    Ok(config.with_sets(&sets, &["geometry", "capacity"]).ok())
}

/// The same device with a capacity of `bytes` or a mapping unit more, and its share of spare area.
/// While it can be halved it is ([`halved`]); the number of blocks does the rest, and room is made
/// as by [`with_room`].
///
/// # Errors
/// As [`halved`]; or there is no device of that size.
pub fn scaled(config: &Config, bytes: u64, seed: u64) -> Result<Config, ConfigError> {
    let mut config = config.clone();
    while config.logical_bytes()? / 2 >= bytes {
        let Some(half) = halved(&config)? else { break };
        config = half;
    }
    let unit = u64::from(config.geometry()?.unit_bytes());
    let config = config.with_logical_size(bytes.next_multiple_of(unit))?;
    Ok(with_room(config, seed)?.0)
}

/// Whether there can be such a device.
fn is_buildable(config: &Config, seed: u64) -> Result<bool, ConfigError> {
    Ok(match config.zns(seed)? {
        Some(zns) => Zns::new(zns, ZnsMedia::NULL).is_ok(),
        None => Ssd::new(config.ssd(seed)?, NullMedia).is_ok(),
    })
}
