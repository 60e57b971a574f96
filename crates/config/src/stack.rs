//! Stacks: layers on devices, each with keys of its own (`[[stack]]`).

use onefold_ssd::SsdConfig;
use onefold_ssd::zns::ZnsConfig;
use onefold_volume::VolumeMode;

use crate::config::Config;
use crate::error::{ConfigError, Origin};
use crate::key::KEYS;
use crate::place::{GLOBAL, PlaceValues};
use crate::suggest;
use crate::value::Value;
use crate::volume::{Below, Volume};
use crate::zoned_volume::ZonedVolume;

const BLOCK: u64 = 4096;

/// Blocks of a log segment on something that is no flash, at most: 16 MiB.
const SEGMENT_BLOCKS: u64 = 4096;

/// Layers on devices, from the devices upwards; the last place is the top.
#[derive(Clone, Debug, PartialEq)]
pub struct Stack {
    /// The places. Each but the top is what one other lies on.
    pub places: Vec<Place>,
}

/// A device, or a layer on others.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// Its name in results.
    pub name: String,
    /// What is there.
    pub kind: PlaceKind,
    /// The places that it lies on, by their numbers.
    pub on: Vec<usize>,
}

/// What is at a place.
#[derive(Clone, Debug, PartialEq)]
pub enum PlaceKind {
    /// A device with a block namespace.
    Ssd(Box<SsdConfig>),
    /// A device with zones.
    Zns(Box<ZnsConfig>),
    /// A volume of mode `log`, `sung` or `han`.
    Volume(Box<Volume>),
    /// A zoned volume of policy `dmz`.
    Zoned(Box<ZonedVolume>),
}

impl PlaceKind {
    /// As `kind` of `[[stack]]` has it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Ssd(_) => "ssd",
            Self::Zns(_) => "zns",
            Self::Volume(volume) => volume.mode.name(),
            Self::Zoned(_) => "dmz",
        }
    }

    /// Whether it is a device, and no layer.
    #[must_use]
    pub const fn is_device(&self) -> bool {
        matches!(self, Self::Ssd(_) | Self::Zns(_))
    }

    /// Bytes that it exports.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.blocks() * BLOCK
    }

    /// Blocks of 4 KiB that it exports.
    fn blocks(&self) -> u64 {
        match self {
            Self::Ssd(ssd) => ssd.ftl.logical_units * ssd.geometry.pages_per_unit(),
            Self::Zns(zns) => u64::from(zns.all_zones()) * u64::from(zns.zone_blocks),
            Self::Volume(volume) => volume.geometry.logical_blocks,
            Self::Zoned(zoned) => zoned.logical_bytes / BLOCK,
        }
    }
}

impl Stack {
    /// Bytes that the load can address.
    #[must_use]
    pub fn logical_bytes(&self) -> u64 {
        self.places.last().map_or(0, |place| place.kind.blocks() * BLOCK)
    }
}

/// What a volume lies on, as far as its sizes follow from it.
fn below(kind: &PlaceKind) -> Below {
    let blocks = kind.blocks();
    match kind {
        PlaceKind::Ssd(ssd) => {
            let unit = SsdConfig::write_unit_bytes(&ssd.geometry, &ssd.buffer);
            Below::device(&ssd.geometry, unit.into(), blocks)
        }
        _ => Below { blocks, unit: BLOCK, segment: SEGMENT_BLOCKS },
    }
}

/// A place with the configuration of its keys; those of other sections are at their defaults.
struct Builder<'a> {
    values: &'a PlaceValues,
    config: Config,
}

impl Builder<'_> {
    fn error(&self, what: String) -> ConfigError {
        self.values.error(what)
    }

    /// Builds the place on those below.
    fn build(&self, below: &[&PlaceKind], seed: u64) -> Result<PlaceKind, ConfigError> {
        let mode = |name: &str| match name {
            "sung" => VolumeMode::Sung,
            "han" => VolumeMode::Han,
            _ => VolumeMode::Log,
        };
        match (self.values.kind, below) {
            ("ssd", []) => Ok(PlaceKind::Ssd(Box::new(self.config.ssd(seed)?))),
            ("zns", []) => match self.config.zns(seed)? {
                Some(zns) => Ok(PlaceKind::Zns(Box::new(zns))),
                None => Err(self.error("is no zoned namespace".to_owned())),
            },
            ("ssd" | "zns", _) => Err(self.error("is a device, which lies on nothing".to_owned())),
            ("dmz", [PlaceKind::Zns(zns)]) => self.dmz(None, zns),
            ("dmz", [PlaceKind::Zns(_), _]) => {
                Err(self.error("the place with zones comes last in `on`".to_owned()))
            }
            ("dmz", [regular, PlaceKind::Zns(zns)]) => self.dmz(Some(regular.blocks()), zns),
            ("dmz", _) => {
                Err(self.error("lies on a place for random writes and one of kind zns, or on one of kind zns with conventional zones".to_owned()))
            }
            ("log", [PlaceKind::Zns(zns)]) => {
                let geometry = self.config.log_on_zones(zns, zns.zones, None);
                let volume = self.config.volume_at(VolumeMode::Log, geometry, 0)?;
                Ok(PlaceKind::Volume(Box::new(volume)))
            }
            (_, [PlaceKind::Zns(_)]) => {
                Err(self.error(format!("{} cannot lie on zones", self.values.kind)))
            }
            (name, [one]) => {
                self.check_remap(one)?;
                let geometry = self.config.volume_geometry(mode(name), &self::below(one))?;
                let volume = self.config.volume_at(mode(name), geometry, 0)?;
                Ok(PlaceKind::Volume(Box::new(volume)))
            }
            (_, []) => Err(self.error("needs `on`, the name of a place above it".to_owned())),
            (name, _) => Err(self.error(format!("{name} lies on one place"))),
        }
    }

    /// Only devices remap, and none that knows contents has a volume on it.
    fn check_remap(&self, below: &PlaceKind) -> Result<(), ConfigError> {
        let remaps = match below {
            PlaceKind::Ssd(ssd) if ssd.ftl.fingerprints > 0 => {
                return Err(ConfigError::VolumeContents);
            }
            PlaceKind::Ssd(ssd) => ssd.ftl.remap.scheme != onefold_ftl::RemapScheme::None,
            _ => false,
        };
        if self.config.word("volume.clean_move") == "remap" && !remaps {
            let what = "volume.clean_move is \"remap\", and the place below cannot: expected an ssd with ftl.remap";
            return Err(self.error(what.to_owned()));
        }
        Ok(())
    }

    fn dmz(&self, regular: Option<u64>, zns: &ZnsConfig) -> Result<PlaceKind, ConfigError> {
        let mut volume = self.config.dmz_on(regular, zns)?;
        volume.regular_depth =
            Some(self.config.count("zoned.regular_depth")).filter(|depth| *depth > 0);
        if volume.regular_depth.is_some() && regular.is_none() {
            let what = "has zoned.regular_depth, and no place for random writes to limit";
            return Err(self.error(what.to_owned()));
        }
        Ok(PlaceKind::Zoned(Box::new(volume)))
    }
}

impl Config {
    /// The stack that `[[stack]]` describes, if there is one. Everything random in it comes from
    /// `seed`.
    ///
    /// # Errors
    /// Names the place that does not fit those below, that is used twice or by none.
    pub fn stack(&self, seed: u64) -> Result<Option<Stack>, ConfigError> {
        if self.places.is_empty() {
            return Ok(None);
        }
        self.check_globals()?;
        let mut places: Vec<Place> = Vec::new();
        let mut used = vec![false; self.places.len()];
        for values in &self.places {
            if places.iter().any(|place| place.name == values.name) {
                return Err(values.error("has the name of another place".to_owned()));
            }
            let mut on = Vec::new();
            for name in &values.on {
                let at = places.iter().position(|place| place.name == *name).ok_or_else(|| {
                    let near = suggest::nearest(name, places.iter().map(|one| one.name.as_str()));
                    let near = near.map_or(String::new(), |near| format!("; is it `{near}`?"));
                    values.error(format!("lies on `{name}`, expected a place before it{near}"))
                })?;
                if std::mem::replace(&mut used[at], true) {
                    return Err(values.error(format!("lies on `{name}`, as another place does")));
                }
                on.push(at);
            }
            let below: Vec<_> = on.iter().map(|at| &places[*at].kind).collect();
            let config = self.of_place(values)?;
            let kind = Builder { values, config }.build(&below, seed)?;
            places.push(Place { name: values.name.clone(), kind, on });
        }
        let top = places.len() - 1;
        if let Some(unused) = used[..top].iter().position(|used| !used) {
            let what = "no place lies on it, and it is not the last one".to_owned();
            return Err(self.places[unused].error(what));
        }
        let overwritten =
            self.real("precondition.overwrite") > 0.0 || self.word("precondition.until") != "count";
        if overwritten && matches!(places[top].kind, PlaceKind::Zoned(_)) {
            let what = "is only filled before a run: leave precondition.overwrite and precondition.until out".to_owned();
            return Err(self.places[top].error(what));
        }
        if places[top].on.is_empty() {
            let what = "is a device alone: give its keys without [[stack]]".to_owned();
            return Err(self.places[top].error(what));
        }
        Ok(Some(Stack { places }))
    }

    /// The configuration of a device of the stack, as if it were alone; `None` if there is none of that name.
    ///
    /// # Errors
    /// As [`Config::stack`].
    pub fn device_of_stack(&self, name: &str) -> Result<Option<Self>, ConfigError> {
        let place = self.places.iter().find(|place| place.name == name && place.is_device());
        place.map(|place| self.of_place(place)).transpose()
    }

    /// The keys of a place.
    pub(crate) fn of_place(&self, values: &PlaceValues) -> Result<Self, ConfigError> {
        let mut config = Self::defaults(self.policies());
        values.layers.iter().try_for_each(|layer| config.apply(layer))?;
        if values.kind == "zns" {
            config.put("namespace.type", Value::Word("zoned"), Origin::Default);
        }
        Ok(config)
    }

    /// The values of a place in canonical order.
    pub(crate) fn values_of_place(&self, place: &PlaceValues) -> Vec<(&'static str, Value)> {
        // They were checked when the configuration was read.
        let Ok(config) = self.of_place(place) else { return Vec::new() };
        let known = KEYS.iter().filter(|key| place.knows(key.path));
        let values = known.map(|key| (key.path, config.setting(key.path).value.clone()));
        values.filter(|(_, value)| !matches!(value, Value::Text(text) if text.is_empty())).collect()
    }

    /// Keys of devices and layers belong to places.
    fn check_globals(&self) -> Result<(), ConfigError> {
        let given = KEYS.iter().find(|key| {
            let is_own = GLOBAL.contains(&key.split().0);
            !is_own && !matches!(self.setting(key.path).origin, Origin::Default)
        });
        match given {
            Some(key) => {
                let origin = &self.setting(key.path).origin;
                let what = format!(
                    "{} ({origin}) belongs to a place: put it into its table, or use --set stack.{}.{}=..",
                    key.path, self.places[0].name, key.path
                );
                Err(ConfigError::StackPlace { name: "[[stack]]".to_owned(), what })
            }
            None => Ok(()),
        }
    }
}
