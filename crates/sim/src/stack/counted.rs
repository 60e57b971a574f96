//! What the places of a stack count.

use onefold_ssd::HostStats;
use onefold_ssd::zns::ZnsStats;

use super::{At, Stack, VolumeLayer, ZonedLayer};
use crate::drive::Counters;

/// What a place counts; what it does not have is at zero.
#[derive(Default)]
pub(crate) struct AtPlace {
    /// What it was asked for from above.
    pub(crate) asked: HostStats,
    /// What its layer asked of each place below.
    pub(crate) sent: Vec<HostStats>,
    pub(crate) device: Counters,
    pub(crate) zns: ZnsStats,
    pub(crate) volume: onefold_volume::Stats,
    pub(crate) zoned: onefold_zoned::Stats,
}

/// What all places count.
#[derive(Default)]
pub(crate) struct Counted {
    pub(crate) places: Vec<AtPlace>,
}

impl Counted {
    /// What a place counted; nothing before anything was.
    pub(crate) fn at(&self, place: usize) -> Option<&AtPlace> {
        self.places.get(place)
    }
}

impl Stack {
    /// So far.
    pub(crate) fn counted(&self) -> Counted {
        Counted { places: (0..self.places.len()).map(|place| self.counted_at(place)).collect() }
    }

    fn counted_at(&self, place: usize) -> AtPlace {
        let mut at = AtPlace { asked: self.asked_of(place), ..AtPlace::default() };
        match self.at(place) {
            At::Device(device) => (at.device, at.zns) = self.devices[device].counters(),
            At::Layer(layer) => {
                at.sent = self.layers[layer].ports.iter().map(|port| port.asked).collect();
            }
        }
        if let Some(layer) = self.layer_at::<VolumeLayer>(place) {
            at.volume = *layer.engine.stats();
        }
        if let Some(layer) = self.layer_at::<ZonedLayer>(place) {
            at.zoned = layer.volume.stats().clone();
        }
        at
    }
}
