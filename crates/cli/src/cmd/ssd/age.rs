//! `onefold ssd create --age`: a drive that was used before it is served for the first time.

use onefold_config::{Age, Config};
use onefold_device::observed::DeviceStats;
use onefold_device::{BlockDevice, Image, Latency, OpenOptions, SsdDevice};
use onefold_units::Rng;
use onefold_units::convert::{float, floor_u64, index, narrow};

use crate::error::{CliError, Exit};
use crate::output::Global;

/// Uses the drive of an image that was made just now, at full speed. A simulation with the same
/// `precondition.range` and `precondition.overwrite` begins with the same data in the same places.
pub(super) fn apply(
    age: Age,
    image: Image,
    config: &Config,
    global: &Global,
) -> Result<(), CliError> {
    let options = OpenOptions::new(Latency::None);
    let device = SsdDevice::open(image, &config.ssd(global.seed)?, options)?.device;
    let used = write(age, &device, u64::from(config.geometry()?.unit_bytes()), global);
    let used = used.map_err(|error| match why(&device) {
        Some(why) => error.help(why),
        None => error,
    });
    let waf = device.snapshot().and_then(|snapshot| snapshot.write_amplification);
    let closed = device.close();
    used?;
    closed?;
    global.say(format_args!(
        "{:.0} % written, and overwritten {} times at random: write amplification {:.3}",
        100.0 * age.fill,
        age.overwrite,
        waf.unwrap_or(0.0),
    ));
    Ok(())
}

/// What faults did to the drive, and what to do; `None` if they did nothing.
fn why(device: &SsdDevice) -> Option<String> {
    let details = device.details()?;
    let (retired, all) = (details.retired_superblocks, details.space.superblocks);
    match details.failed_die {
        Some(failed) => Some(format!(
            "faults.die failed die {} after {} superblocks: raise it, or age less",
            failed.die, details.taken_superblocks
        )),
        None if retired > 0 => Some(format!(
            "faults retired {retired} of {all} superblocks: lower faults.program and faults.erase, or age less"
        )),
        None => None,
    }
}

fn write(age: Age, device: &SsdDevice, unit: u64, global: &Global) -> Result<(), CliError> {
    let failed = |status| {
        CliError::new(
            Exit::Failed,
            "age::write",
            format!("a write of the drive failed, as {status}"),
        )
    };
    let units = floor_u64(age.fill * float(device.size() / unit) + 0.5).max(1);
    let mut data = vec![0; index(narrow(unit))];
    let mut written: u64 = 0;
    let mut write = |at: u64| {
        // Each write has other bytes, so that nothing is found twice by a drive that looks for that.
        written += 1;
        for block in data.chunks_mut(4096) {
            block[..8].copy_from_slice(&written.to_le_bytes());
        }
        device.write(at * unit, &data, false).map(|_| ()).map_err(failed)
    };
    (0..units).try_for_each(&mut write)?;
    let mut rng = Rng::fork(global.seed, 31);
    (0..floor_u64(age.overwrite * float(units) + 0.5)).try_for_each(|_| write(rng.below(units)))?;
    device.flush().map(|_| ()).map_err(failed)
}
