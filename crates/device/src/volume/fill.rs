//! A volume that fills up.

use onefold_volume::{Engine, Usage};

/// Shares of what a volume with snapshots can hold at which its owner is warned, in percent
/// (volume.md, section 5.7).
const WARNINGS: [u64; 2] = [85, 95];

/// Warns when a volume that can fill up does, once for each share.
#[derive(Default)]
pub(super) struct Fill {
    /// Checkpoints when it looked last.
    checkpoints: u64,
    warned: u64,
}

impl Fill {
    pub(super) fn look(&mut self, engine: &dyn Engine) {
        let Some(volume) = engine.as_log() else { return };
        let checkpoints = volume.stats().checkpoints;
        if std::mem::replace(&mut self.checkpoints, checkpoints) == checkpoints {
            return;
        }
        let Usage { data_blocks, capacity_blocks } = volume.usage();
        let share = data_blocks * 100 / capacity_blocks.max(1);
        let reached = WARNINGS.into_iter().rfind(|warning| share >= *warning).unwrap_or(0);
        if reached > self.warned && volume.can_fill() {
            tracing::warn!(
                "{reached} % of what the volume can hold is in use; delete snapshots, or trim, before writes fail"
            );
        }
        self.warned = reached;
    }
}
