//! Set-ups for unit tests.

use crate::{BufferConfig, Charge, PolicyKind, PolicySpec};

/// A volatile LRU buffer.
pub(crate) fn lru_config(bytes: u64) -> BufferConfig {
    let policy = PolicySpec::new(PolicyKind::Lru);
    BufferConfig { policy, bytes, charge: Charge::None, volatile: true }
}
