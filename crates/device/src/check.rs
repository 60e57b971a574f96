//! Checking an image without changing it.

use onefold_ftl::{FtlError, OnLogDamage, RecoveryReport, Violation};
use onefold_nand::{At, Media, MediaError, Work};
use onefold_ssd::{Ssd, SsdConfig};
use onefold_units::convert::index;
use onefold_units::{Cause, Lpn, Nanos};

use crate::image::{DeviceError, Image};
use crate::media::{FileMedia, Overlay};
use crate::ssd::{SsdDetails, give_up};

/// Units listed one by one; further ones are only counted.
pub const LISTED_MAX: usize = 16;

/// Units between two calls of the progress function.
const STEP: u32 = 1024;

/// What is right and wrong in an image.
#[derive(Debug)]
#[non_exhaustive]
pub struct CheckReport {
    /// What recovery found. Where a damaged page of the remap log keeps the device from opening, it is
    /// what would be left with [`OpenOptions::accept_loss`](crate::OpenOptions::accept_loss).
    pub recovery: RecoveryReport,
    /// Space, wear and what is stored.
    pub details: SsdDetails,
    /// The first invariant of the FTL found broken.
    pub violation: Option<Violation>,
    /// Units whose data was read and verified; 0 if that was not asked for.
    pub verified_units: u64,
    /// Units that cannot be read, beside the lost ones.
    pub unreadable_units: u64,
    /// The first of them.
    pub unreadable: Vec<u32>,
}

impl CheckReport {
    /// Whether data is lost or the map is inconsistent. Torn slots are what a power cut leaves, and
    /// no damage.
    #[must_use]
    pub const fn is_damaged(&self) -> bool {
        self.recovery.log_damage.is_some() || self.is_damaged_otherwise()
    }

    /// Whether anything is lost or wrong but for what damaged pages of the remap log put at stake.
    #[must_use]
    pub const fn is_damaged_otherwise(&self) -> bool {
        self.violation.is_some()
            || self.recovery.lost_units > self.recovery.given_up_units
            || self.unreadable_units > 0
    }
}

/// Recovers the device of an image in memory and looks at everything. With `progress` the data of
/// every stored unit is verified, too; it is called with units done and units in all.
///
/// # Errors
/// The image cannot be read or is not the device of `config`. Damage is not an error.
pub fn check(
    image: &Image,
    config: &SsdConfig,
    progress: Option<&mut dyn FnMut(u64, u64)>,
) -> Result<CheckReport, DeviceError> {
    let (mut ssd, recovery) = look(image, config, give_up(config))?;
    let details = SsdDetails::of(&ssd);
    let violation = ssd.ftl().check().err();
    let mut report = CheckReport {
        recovery,
        details,
        violation,
        verified_units: 0,
        unreadable_units: 0,
        unreadable: Vec::new(),
    };
    if let Some(progress) = progress {
        verify(image, &mut ssd, &mut report, progress)?;
    }
    Ok(report)
}

/// What an image that is not served holds.
///
/// # Errors
/// As [`check`].
pub fn inspect(
    image: &Image,
    config: &SsdConfig,
) -> Result<(SsdDetails, RecoveryReport), DeviceError> {
    let (ssd, recovery) = look(image, config, OnLogDamage::Refuse)?;
    Ok((SsdDetails::of(&ssd), recovery))
}

pub(crate) fn look(
    image: &Image,
    config: &SsdConfig,
    on_log_damage: OnLogDamage,
) -> Result<(Ssd<Overlay>, RecoveryReport), DeviceError> {
    image.expect(config)?;
    let mut config = *config;
    // Injected faults belong to the modelled device, not to its check; but what lies on a failed die is lost.
    let die = config.faults.die;
    config.faults = onefold_nand::FaultSpec { die, ..onefold_nand::FaultSpec::default() };
    let media = FileMedia::new(image, config.geometry);
    let overlay = Overlay::new(media, config.geometry, image.label().nvram_bytes)
        .map_err(|error| failed(image, error.into()))?;
    let (mut ssd, recovery) = Ssd::recover_with(config, overlay, on_log_damage)
        .map_err(|source| DeviceError::Build { path: image.path().to_owned(), source })?;
    ssd.ftl_mut().set_timed(false);
    image.recall(&mut ssd);
    Ok((ssd, recovery))
}

fn verify<M: Media>(
    image: &Image,
    ssd: &mut Ssd<M>,
    report: &mut CheckReport,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(), DeviceError> {
    let unit_bytes = ssd.config().geometry.unit_bytes();
    let mut unit = vec![0; index(unit_bytes)];
    let at = At { now: Nanos::ZERO, ready: Nanos::ZERO, work: Work::Host };
    // Those of snapshots, too.
    let units = ssd.ftl().host_units() + ssd.snapshot_units();
    for lpn in 0..units {
        if lpn.is_multiple_of(STEP) {
            progress(lpn.into(), units.into());
        }
        // Lost units are no news.
        if !ssd.ftl().is_stored(Lpn::new(lpn)) {
            continue;
        }
        match ssd.ftl_mut().read(at, Lpn::new(lpn), unit_bytes, Cause::User, &mut unit) {
            Ok(_) => report.verified_units += 1,
            Err(FtlError::Unreadable { lpn }) => {
                report.unreadable_units += 1;
                if report.unreadable.len() < LISTED_MAX {
                    report.unreadable.push(lpn);
                }
            }
            Err(error) => return Err(failed(image, error)),
        }
    }
    progress(units.into(), units.into());
    Ok(())
}

fn failed(image: &Image, error: FtlError) -> DeviceError {
    match error {
        FtlError::Media(MediaError::Backing { errno }) => DeviceError::Io {
            path: image.path().to_owned(),
            action: "read",
            source: std::io::Error::from_raw_os_error(errno),
        },
        error => DeviceError::Build {
            path: image.path().to_owned(),
            source: onefold_ftl::RecoverError::from(error).into(),
        },
    }
}
