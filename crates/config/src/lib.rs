//! TOML configuration and presets, turned into checked core types.
//!
//! A configuration is a stack of layers: the defaults of the key table (device `s1`), a preset, a
//! file and what it extends, and `--set`. [`Config::load`] reads and checks it; [`Config::ssd`]
//! gives the device, [`Config::to_toml`] the canonical form that images and results carry.
//!
//! ```
//! use onefold_config::{Config, Sources};
//!
//! let sets = ["ftl.victim=fifo".to_owned(), "capacity.logical=0.8".to_owned()];
//! let config = Config::load(&Sources { preset: Some("s1"), sets: &sets, ..Sources::default() })?;
//! let ssd = config.ssd(0)?;
//! assert_eq!(ssd.ftl.victim.name(), "fifo");
//! assert_eq!(Config::from_canonical(&config.to_toml())?, config);
//! # Ok::<(), onefold_config::ConfigError>(())
//! ```
#![forbid(unsafe_code)]

mod age;
mod canonical;
mod config;
mod device;
mod error;
mod extent;
mod idle;
mod key;
mod layer;
mod load;
mod place;
mod policies;
mod preset;
mod problem;
mod quantity;
mod raw;
pub mod reference;
mod run;
mod stack;
mod suggest;
mod tenant;
mod typed;
mod value;
mod volume;
mod zoned;
mod zoned_volume;

pub use age::Age;
pub use config::Config;
pub use error::{ConfigError, Origin, TenantProblem};
pub use extent::Extent;
pub use key::{OF_A_DRIVE, REPLAYED, SERVED};
pub use load::Sources;
pub use policies::Policies;
pub use preset::{PRESETS, Preset};
pub use problem::Problem;
pub use quantity::{size, size_text, time};
pub use run::{Align, Fit, Mode, Precondition, RemapFull, Run, Until};
pub use stack::{Place, PlaceKind, Stack};
pub use suggest::nearest;
pub use tenant::{Load, Tenant};
pub use typed::{Typed, typed};
pub use volume::Volume;
pub use zoned_volume::ZonedVolume;
