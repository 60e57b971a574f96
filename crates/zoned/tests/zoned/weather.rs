//! Errors of devices that come and go: singly, in bursts, for long, and for ever after.

use onefold_units::Rng;
use onefold_units::convert::{index64, narrow};
use onefold_zoned::{Io, IoFailed, IoKind};

/// What fails for a while.
#[derive(Clone, Copy, Debug, Default)]
struct Spell {
    /// Of 100 requests, by kind: read, write, flush, reset.
    percent: [u64; 4],
    /// The one device that it is about.
    device: Option<u32>,
    /// The device says that it is full.
    is_full: bool,
}

/// Which requests fail.
#[derive(Clone, Default)]
pub(crate) struct Weather {
    rng: Option<Rng>,
    spell: Spell,
    /// Flushes of written data fail, too: that ends all changes.
    pub(crate) flushes_fail: bool,
    /// Nothing ever failed.
    had_faults: bool,
    pub(crate) failed: u64,
}

impl Weather {
    pub(crate) fn new(rng: Rng, flushes_fail: bool) -> Self {
        Self { rng: Some(rng), flushes_fail, had_faults: true, ..Self::default() }
    }

    /// Whether nothing failed ever.
    pub(crate) const fn is_fair(&self) -> bool {
        !self.had_faults
    }

    /// All is whole from now on.
    pub(crate) fn clear(&mut self) {
        self.spell = Spell::default();
    }

    /// Something else fails from now on, or nothing.
    pub(crate) fn change(&mut self) {
        let Some(rng) = &mut self.rng else { return };
        let rate = [0, 2, 20, 60, 100][index64(rng.below(5))];
        let mut percent = [rate; 4];
        match rng.below(6) {
            0 => percent = [rate, 0, 0, 0],
            1 => percent = [0, rate, 0, 0],
            2 => percent = [0, 0, 0, rate],
            3 => percent = [0, rate, rate, rate],
            _ => {}
        }
        if !self.flushes_fail {
            percent[2] = 0;
        }
        let device = (rng.below(2) == 0).then(|| narrow(rng.below(2)));
        self.spell = Spell { percent, device, is_full: rng.below(5) == 0 };
    }

    /// Why a request fails, if it does, and how many of its blocks are carried out all the same.
    pub(crate) fn fault(&mut self, io: &Io) -> Option<(IoFailed, u32)> {
        let rng = self.rng.as_mut()?;
        let kind = match io.kind {
            IoKind::Read => 0,
            IoKind::Write => 1,
            IoKind::Flush => 2,
            IoKind::Reset => 3,
        };
        let is_hit = self.spell.device.is_none_or(|device| device == io.device)
            && rng.below(100) < self.spell.percent[kind];
        if !is_hit {
            return None;
        }
        self.failed += 1;
        let is_full = self.spell.is_full && io.kind == IoKind::Write;
        let part = match rng.below(4) {
            0 => u32::MAX,
            1 => narrow(rng.below(u64::from(io.blocks) + 1)),
            _ => 0,
        };
        Some((if is_full { IoFailed::NoSpace } else { IoFailed::Error }, part))
    }
}
