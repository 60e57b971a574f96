//! The drive of an image that nobody serves, for a simulation that goes on from its state.

use onefold_nand::{At, NullMedia, Work};
use onefold_ssd::{Ssd, SsdConfig};
use onefold_units::convert::{index, index64, narrow};
use onefold_units::{Cause, Lpn, Nanos, PAGE_BYTES};

use crate::check::look;
use crate::image::{DeviceError, Image};
use crate::media::Overlay;

/// What an image holds.
pub struct AtRest {
    ssd: Ssd<Overlay>,
    unit: Vec<u8>,
    /// Which unit that is.
    read: Option<u64>,
}

/// The drive in the state of its image, without bytes, and what it holds. The image stays as it is.
///
/// # Errors
/// As [`check`](crate::check()).
pub fn at_rest(image: &Image, config: &SsdConfig) -> Result<(Ssd<NullMedia>, AtRest), DeviceError> {
    let refuse = onefold_ftl::OnLogDamage::Refuse;
    let mut drive = look(image, config, refuse)?
        .0
        .without_bytes()
        .map_err(|source| DeviceError::Build { path: image.path().to_owned(), source })?;
    drive.ftl_mut().set_faults(config.faults);
    let (ssd, _) = look(image, config, refuse)?;
    let unit = vec![0; index(config.geometry.unit_bytes())];
    Ok((drive, AtRest { ssd, unit, read: None }))
}

impl AtRest {
    /// Puts a block of 4 KiB into `out`. Whether it can be read.
    #[must_use]
    pub fn read_block(&mut self, block: u64, out: &mut [u8]) -> bool {
        let per = self.ssd.config().geometry.pages_per_unit();
        let (unit, within) = (block / per, index64(block % per * PAGE_BYTES));
        if self.read != Some(unit) {
            let at = At { now: Nanos::ZERO, ready: Nanos::ZERO, work: Work::Host };
            let bytes = narrow(per * PAGE_BYTES);
            let ftl = self.ssd.ftl_mut();
            let done = ftl.read(at, Lpn::new(narrow(unit)), bytes, Cause::User, &mut self.unit);
            self.read = done.is_ok().then_some(unit);
        }
        let Some(bytes) = self.unit.get(within..within + out.len()) else { return false };
        out.copy_from_slice(bytes);
        self.read.is_some()
    }
}
