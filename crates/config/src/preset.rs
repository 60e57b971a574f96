//! The presets, embedded in the program.

use crate::error::ConfigError;
use crate::suggest;

/// A named configuration of a device class. Its file says where each number comes from.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Name, as in `--preset NAME`.
    pub name: &'static str,
    /// The TOML text.
    pub text: &'static str,
}

impl Preset {
    /// One line about it: the first line of its file.
    #[must_use]
    pub fn summary(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches('#').trim()
    }
}

macro_rules! presets {
    ($($name:literal),+ $(,)?) => {
        /// Every preset, in the order of the documentation.
        pub const PRESETS: &[Preset] = &[$(Preset {
            name: $name,
            // A link to the folder at the root, so that the package has it.
            text: include_str!(concat!("../presets/", $name, ".toml")),
        }),+];
    };
}

presets!(
    "s1",
    "mqsim-default",
    "femu-bb",
    "slc",
    "mlc",
    "tlc",
    "qlc",
    "qlc-16k",
    "tlc-plp",
    "qlc-16k-plp",
    "970pro",
    "femu32",
    "ssdsim256",
    "jeong2021",
    "sata-dramless",
    "zns-proto",
    "zn540",
    "femu-zns",
    "choi2022",
    "choi2022-regular",
    "choi2022-single",
    "dmz-guest",
    "dmz-guest-regular",
);

/// The preset called `name`.
pub(crate) fn find(name: &str) -> Result<&'static Preset, ConfigError> {
    if let Some(preset) = PRESETS.iter().find(|preset| preset.name == name) {
        return Ok(preset);
    }
    let names = PRESETS.iter().map(|preset| preset.name);
    Err(ConfigError::UnknownPreset {
        name: name.to_owned(),
        suggestion: suggest::nearest(name, names),
    })
}
