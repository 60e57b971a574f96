//! How fast the cleaner goes (volume.md, section 5.7).

/// Blocks that the cleaner may owe before writes of the host wait, at least.
const DEBT_MIN: f64 = 512.0;

/// Share of what the host writes that the cleaner may move while there is no need to hurry.
const BACKGROUND: f64 = 0.1;

/// Log segments that count for the pace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Levels {
    /// That are free or will be after the next checkpoint.
    pub(crate) free: u32,
    /// Below which the cleaner has to keep pace.
    pub(crate) low: u32,
    /// That only the cleaner and the map may take.
    pub(crate) reserve: u32,
}

/// What the cleaner owes the host.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// Blocks to move before the host may write more.
    debt: f64,
    /// Blocks that may be moved without need.
    credit: f64,
    /// Mean share of live blocks in victims.
    utilisation: f64,
}

impl Pace {
    /// The host wrote so many blocks.
    pub(crate) fn owe(&mut self, blocks: u32, levels: Levels) {
        let Levels { free, low, reserve } = levels;
        let written = f64::from(blocks);
        self.credit = (self.credit + BACKGROUND * written).min(DEBT_MIN);
        if free >= low {
            self.debt = 0.0;
            return;
        }
        let v = self.utilisation.min(0.95);
        let short = f64::from(low - free) / f64::from(low - reserve);
        self.debt += written * v / (1.0 - v) * (1.0 + short.min(1.0));
    }

    /// The cleaner moved a block, or had read it for nothing: the host may write more.
    pub(crate) fn pay(&mut self) {
        self.pay_debt();
        self.credit -= 1.0;
    }

    /// The same where that cost nothing.
    pub(crate) fn pay_debt(&mut self) {
        self.debt = (self.debt - 1.0).max(0.0);
    }

    /// A victim was chosen of which this share is live.
    pub(crate) fn note_victim(&mut self, share: f64) {
        self.utilisation += (share - self.utilisation) / 8.0;
    }

    /// Whether a block may be moved without need.
    pub(crate) fn has_credit(&self) -> bool {
        self.credit >= 1.0
    }

    /// Whether the cleaner owes half of what makes writes of the host wait.
    pub(crate) fn is_behind(&self, most: f64) -> bool {
        self.debt >= most / 2.0
    }

    /// Whether the cleaner owes less than what makes writes of the host wait.
    pub(crate) fn keeps_up(&self, most: f64) -> bool {
        self.debt < most
    }
}

/// Blocks that the cleaner may owe before writes of the host wait: a quarter of what may still be taken, because what it
/// begins with lies behind all that the host has under way.
pub(crate) fn most_debt(segments: u32, segment_blocks: u32) -> f64 {
    (f64::from(segments) * f64::from(segment_blocks) / 4.0).max(DEBT_MIN)
}
