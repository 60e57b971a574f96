//! The policies, one file each.

mod lru;

pub use lru::Lru;

use crate::{BufferConfig, BufferError, Cache, Policy, PolicyKind, Shape};

/// The configured policy, for entries of `entry_bytes` (the mapping unit of the FTL) in front of
/// flash pages of `flash_page_bytes`.
pub fn new_policy(
    config: &BufferConfig,
    entry_bytes: u32,
    flash_page_bytes: u32,
) -> Result<Box<dyn Policy + Send>, BufferError> {
    let shape = Shape::new(config, entry_bytes, flash_page_bytes)?;
    Ok(match config.policy {
        PolicyKind::Lru => Box::new(Cache::<Lru>::new(shape)),
    })
}
