//! What a study can say about latencies.

use std::fmt;

use serde::Serialize;

/// Most victims on their way to flash.
pub const WB_SLOTS_MOST: u64 = 65_536;

/// How long requests take. The default is the `service` model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LatencyModel {
    /// Which model.
    pub kind: ModelKind,
    /// Where the pages that a request reads from flash are.
    pub reads: Placement,
    /// Where the victims of a request are programmed.
    pub programs: Placement,
    /// Victims that may be on their way to flash while requests go on; with 0 a request waits for
    /// all of its own.
    pub wb_slots: u32,
}

/// What a latency is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelKind {
    /// A request that has the device to itself.
    #[default]
    Service,
    /// A request that waits for dies and channels; every tenant has one under way.
    Queued,
    /// The flash operations of a tenant's pages, one after the other, whoever caused them.
    Counted,
}

/// Where the flash pages of one request are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// One after the other on all channels first, on all dies of a channel second.
    #[default]
    Striped,
    /// On the dies of one channel.
    Channel,
    /// On one die, one after the other: as in one flash block, or in a sum over flash operations.
    Die,
}

impl ModelKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Service, Self::Queued, Self::Counted];

    /// Name in study files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::Queued => "queued",
            Self::Counted => "counted",
        }
    }
}

impl Placement {
    /// Every placement.
    pub const ALL: [Self; 3] = [Self::Striped, Self::Channel, Self::Die];

    /// Name in study files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Striped => "striped",
            Self::Channel => "channel",
            Self::Die => "die",
        }
    }
}

/// The model, then what is not at its default: `queued:programs=die,wb_slots=128`.
impl fmt::Display for LatencyModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        let places = [("reads", self.reads), ("programs", self.programs)];
        let mut separator = ':';
        for (key, place) in places.into_iter().filter(|(_, place)| *place != Placement::default()) {
            write!(f, "{separator}{key}={}", place.name())?;
            separator = ',';
        }
        if self.wb_slots > 0 {
            write!(f, "{separator}wb_slots={}", self.wb_slots)?;
        }
        Ok(())
    }
}

/// A model and its name in figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LatencyChoice {
    /// The model.
    pub model: LatencyModel,
    /// The name.
    pub label: String,
}

impl LatencyChoice {
    /// A model under its own name.
    #[must_use]
    pub fn new(model: LatencyModel) -> Self {
        Self { model, label: model.to_string() }
    }
}
