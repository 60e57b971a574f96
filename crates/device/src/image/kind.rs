//! What an image can hold: the device of a block namespace, or that of a zoned one.

use std::path::Path;

use onefold_format::{FEATURE_CONVENTIONAL, FEATURE_STRIDES, FEATURE_ZONES, ImageLabel};
use onefold_ftl::Layout;
use onefold_nand::{Geometry, NullMedia};
use onefold_ssd::zns::{Zns, ZnsConfig, ZnsLayout, ZnsMedia};
use onefold_ssd::{Ssd, SsdConfig};

use super::DeviceError;

/// A configuration that an image can be made of.
pub trait DeviceKind {
    /// Features that an image of it has sooner or later.
    fn features(&self) -> u32;

    /// The numbers of its label.
    ///
    /// # Errors
    /// What does not fit together.
    fn describe(&self, path: &Path) -> Result<ImageLabel, DeviceError>;

    /// Tells everything that does not fit together.
    ///
    /// # Errors
    /// That.
    fn check(&self, path: &Path) -> Result<(), DeviceError>;
}

impl DeviceKind for SsdConfig {
    fn features(&self) -> u32 {
        if self.ftl.remap.scheme.is_local() { FEATURE_STRIDES } else { 0 }
    }

    fn describe(&self, path: &Path) -> Result<ImageLabel, DeviceError> {
        let layout = Layout::new(&self.geometry, &self.ftl).map_err(|source| {
            DeviceError::Build { path: path.to_owned(), source: source.into() }
        })?;
        let logical = self.ftl.logical_units * u64::from(self.geometry.unit_bytes());
        Ok(label(self.features(), &self.geometry, layout.nvram_bytes(), logical))
    }

    fn check(&self, path: &Path) -> Result<(), DeviceError> {
        let build = |source| DeviceError::Build { path: path.to_owned(), source };
        self.ftl.remap.check_storable().map_err(|source| build(source.into()))?;
        Ssd::new(*self, NullMedia).map(drop).map_err(build)
    }
}

impl DeviceKind for ZnsConfig {
    fn features(&self) -> u32 {
        FEATURE_ZONES | if self.conventional.is_some() { FEATURE_CONVENTIONAL } else { 0 }
    }

    fn describe(&self, path: &Path) -> Result<ImageLabel, DeviceError> {
        let layout = ZnsLayout::new(self).map_err(|source| DeviceError::Zones {
            path: path.to_owned(),
            source: source.into(),
        })?;
        let logical = self.writable_blocks() * u64::from(self.geometry.unit_bytes());
        Ok(label(self.features(), &self.geometry, layout.all_nvram_bytes(), logical))
    }

    fn check(&self, path: &Path) -> Result<(), DeviceError> {
        Zns::new(*self, ZnsMedia::NULL)
            .map(drop)
            .map_err(|source| DeviceError::Zones { path: path.to_owned(), source: source.into() })
    }
}

fn label(features: u32, geometry: &Geometry, nvram_bytes: u64, logical_bytes: u64) -> ImageLabel {
    ImageLabel {
        features,
        uuid: [0; 16],
        generation: 0,
        clean: false,
        counts: true,
        unit_bytes: geometry.unit_bytes(),
        superblocks: geometry.superblocks(),
        slots: geometry.slots(),
        nvram_bytes,
        logical_bytes,
        config: String::new(),
    }
}
