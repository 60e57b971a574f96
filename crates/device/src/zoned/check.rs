//! Looking at an image with a zoned namespace without changing it.

use onefold_nand::FaultSpec;
use onefold_ssd::zns::{Zns, ZnsConfig, ZnsError, ZnsRecovery, ZoneInfo, ZoneState};
use onefold_units::convert::{index, narrow};
use onefold_units::{PAGE_BYTES, ZoneId};

use super::{NOW, ZonedDetails, media, volatile};
use crate::check::LISTED_MAX;
use crate::image::{DeviceError, Image};
use crate::media::Overlay;

/// What is right and wrong in an image with a zoned namespace.
#[derive(Debug)]
#[non_exhaustive]
pub struct ZonedCheck {
    /// What recovery found.
    pub recovery: ZnsRecovery,
    /// Zones, limits and wear.
    pub details: ZonedDetails,
    /// The first invariant found broken.
    pub violation: Option<String>,
    /// Blocks whose data was read and verified; 0 if that was not asked for.
    pub verified_blocks: u64,
    /// Blocks that cannot be read.
    pub unreadable_blocks: u64,
    /// The first of them, counted from the start of the namespace.
    pub unreadable: Vec<u64>,
}

impl ZonedCheck {
    /// Whether data is lost or the records contradict each other. Zones out of service are no damage of the image: the
    /// device says of them what became of their data.
    #[must_use]
    pub const fn is_damaged(&self) -> bool {
        self.violation.is_some() || self.unreadable_blocks > 0
    }
}

/// Recovers the namespace of an image in memory and looks at everything. With `progress` every written block is read and
/// verified, too; it is called with blocks done and blocks in all.
///
/// # Errors
/// The image cannot be read or is not the device of `config`, or its NVRAM contradicts itself. Other damage is not an error.
pub fn check_zoned(
    image: &Image,
    config: &ZnsConfig,
    progress: Option<&mut dyn FnMut(u64, u64)>,
) -> Result<ZonedCheck, DeviceError> {
    let (mut zns, recovery) = look(image, config)?;
    let mut report = ZonedCheck {
        recovery,
        details: ZonedDetails::of(&zns),
        violation: zns.check().err(),
        verified_blocks: 0,
        unreadable_blocks: 0,
        unreadable: Vec::new(),
    };
    if let Some(progress) = progress {
        verify(image, &mut zns, &mut report, progress)?;
    }
    Ok(report)
}

/// What an image that nobody has open holds, and its zones.
///
/// # Errors
/// As [`check_zoned`].
pub fn inspect_zoned(
    image: &Image,
    config: &ZnsConfig,
) -> Result<(ZonedDetails, ZnsRecovery, Vec<ZoneInfo>), DeviceError> {
    let (zns, recovery) = look(image, config)?;
    Ok((ZonedDetails::of(&zns), recovery, zones(&zns)))
}

fn look(image: &Image, config: &ZnsConfig) -> Result<(Zns<Overlay>, ZnsRecovery), DeviceError> {
    image.expect(config)?;
    let failed = |source| DeviceError::Zones { path: image.path().to_owned(), source };
    // Injected faults belong to the modelled device, not to its check; what is bad from the factory stays so.
    let healthy = |faults: FaultSpec| FaultSpec {
        bad_superblocks: faults.bad_superblocks,
        ..FaultSpec::default()
    };
    let mut config = ZnsConfig { faults: healthy(config.faults), ..volatile(config) };
    if let Some(device) = &mut config.conventional {
        device.faults = healthy(device.faults);
    }
    let media = media::parts(image, &config, Overlay::new).map_err(failed)?;
    let (mut zns, recovery) = Zns::recover(config, media).map_err(failed)?;
    zns.set_timed(false);
    Ok((zns, recovery))
}

fn zones(zns: &Zns<Overlay>) -> Vec<ZoneInfo> {
    (0..zns.config().all_zones()).filter_map(|zone| zns.zone(ZoneId::new(zone))).collect()
}

fn verify(
    image: &Image,
    zns: &mut Zns<Overlay>,
    report: &mut ZonedCheck,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(), DeviceError> {
    let all = zones(zns);
    let readable = all.iter().filter(|zone| zone.state != ZoneState::Offline);
    let (mut done, total) = (0, zns.config().writable_blocks());
    let mut bytes = vec![0; index(narrow(PAGE_BYTES))];
    for zone in readable {
        progress(done, total);
        done += u64::from(zone.capacity);
        let written = (zone.start..zns.written_end(zone.zone))
            .filter(|lba| !zone.conventional || zns.stores(*lba));
        let written: Vec<u64> = written.collect();
        for lba in written {
            match zns.read(NOW, lba, 1, &mut bytes) {
                Ok(_) => report.verified_blocks += 1,
                Err(ZnsError::UnrecoveredRead { lba }) => {
                    report.unreadable_blocks += 1;
                    if report.unreadable.len() < LISTED_MAX {
                        report.unreadable.push(lba);
                    }
                }
                Err(error) => {
                    let source = error.into();
                    return Err(DeviceError::Zones { path: image.path().to_owned(), source });
                }
            }
        }
    }
    progress(total, total);
    Ok(())
}
