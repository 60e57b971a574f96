//! What zones with write pointers may hold, for tests with power cuts.

use onefold_ssd::zns::ZoneState;

/// Blocks that a zone takes.
pub(crate) const CAPACITY: usize = 12;

/// One life of a zone, from a reset to the next.
#[derive(Clone, Debug, Default)]
pub(crate) struct Life {
    pub(crate) versions: Vec<u64>,
    /// Blocks that a power cut must not take.
    pub(crate) promised: usize,
    /// It was finished, as far as is known.
    pub(crate) finished: bool,
    /// That is promised.
    pub(crate) finish_promised: bool,
}

/// What each zone may hold after a power cut: the last of these lives, or one before it whose reset may be lost.
pub(crate) struct Model {
    pub(crate) zones: Vec<Vec<Life>>,
    pub(crate) version: u64,
}

impl Model {
    pub(crate) fn last(&mut self, zone: usize) -> &mut Life {
        self.zones[zone].last_mut().unwrap()
    }

    /// Everything that completed is durable.
    pub(crate) fn flushed(&mut self) {
        for lives in &mut self.zones {
            let mut life = lives.pop().unwrap();
            life.promised = life.versions.len();
            life.finish_promised = life.finished;
            *lives = vec![life];
        }
    }

    /// The zone as it was found has to be one that it may be.
    pub(crate) fn settle(&mut self, zone: usize, state: ZoneState, blocks: &[u64]) {
        let written = blocks.iter().take_while(|version| **version != 0).count();
        assert!(blocks[written..].iter().all(|version| *version == 0), "zone {zone}: {blocks:?}");
        let full = state == ZoneState::Full;
        let fits = |life: &&Life| {
            written >= life.promised
                && life.versions.get(..written).is_some_and(|prefix| prefix == &blocks[..written])
                && if full {
                    life.finished || written == CAPACITY
                } else {
                    !life.finish_promised && written < CAPACITY
                }
        };
        let lives = &self.zones[zone];
        let Some(life) = lives.iter().rev().find(fits) else {
            panic!("zone {zone} is {state:?} with {blocks:?}, expected one of {lives:?}");
        };
        let expected = match () {
            () if full => ZoneState::Full,
            () if written == 0 => ZoneState::Empty,
            () => ZoneState::Closed,
        };
        assert_eq!(state, expected, "zone {zone}");
        let versions = life.versions[..written].to_vec();
        self.zones[zone] =
            vec![Life { versions, promised: written, finished: full, finish_promised: full }];
    }
}
