//! `onefold ssd create --age`: a drive that was used before it is served for the first time.

use std::str::FromStr;

use onefold_config::Config;
use onefold_device::observed::DeviceStats;
use onefold_device::{BlockDevice, Image, Latency, OpenOptions, SsdDevice};
use onefold_units::Rng;
use onefold_units::convert::{float, floor_u64, index, narrow};
use onefold_units::numbers::Decimal;

use crate::error::{CliError, Exit};
use crate::output::Global;

/// How it was used. A simulation with the same `precondition.range` and `precondition.overwrite` begins with the same data in the
/// same places.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Age {
    /// Share of the capacity that holds data.
    fill: f64,
    /// How often that data was overwritten, at random.
    overwrite: f64,
}

/// More would not end within a day.
const OVERWRITE_MAX: f64 = 100.0;

impl FromStr for Age {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut age = Self { fill: 1.0, overwrite: 0.0 };
        for part in text.split(',') {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let share = || {
                let number = Decimal::share(value.trim())
                    .map_err(|error| format!("found {part:?}, {error}"))?;
                Ok::<f64, String>(number.real())
            };
            match name.trim() {
                "fill" => age.fill = share()?,
                "overwrite" => age.overwrite = share()?,
                _ => {
                    return Err(format!(
                        "found {part:?}, expected fill=SHARE or overwrite=TIMES, such as fill=0.8,overwrite=1"
                    ));
                }
            }
        }
        if age.fill <= 0.0 || age.fill > 1.0 {
            return Err(format!("fill is {}, expected more than 0 and at most 1", age.fill));
        }
        if age.overwrite > OVERWRITE_MAX {
            return Err(format!(
                "overwrite is {}, expected at most {OVERWRITE_MAX}",
                age.overwrite
            ));
        }
        Ok(age)
    }
}

impl Age {
    /// Uses the drive of an image that was made just now, at full speed.
    pub(super) fn apply(
        self,
        image: Image,
        config: &Config,
        global: &Global,
    ) -> Result<(), CliError> {
        let options = OpenOptions::new(Latency::None);
        let device = SsdDevice::open(image, &config.ssd(global.seed)?, options)?.device;
        let used = self.write(&device, u64::from(config.geometry()?.unit_bytes()), global);
        let waf = device.snapshot().and_then(|snapshot| snapshot.write_amplification);
        let closed = device.close();
        used?;
        closed?;
        global.say(format_args!(
            "{:.0} % written, and overwritten {} times at random: write amplification {:.3}",
            100.0 * self.fill,
            self.overwrite,
            waf.unwrap_or(0.0),
        ));
        Ok(())
    }

    fn write(self, device: &SsdDevice, unit: u64, global: &Global) -> Result<(), CliError> {
        let failed = |status| {
            CliError::new(
                Exit::Failed,
                "age::write",
                format!("a write of the drive failed, as {status}"),
            )
        };
        let units = floor_u64(self.fill * float(device.size() / unit) + 0.5).max(1);
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
        (0..floor_u64(self.overwrite * float(units) + 0.5))
            .try_for_each(|_| write(rng.below(units)))?;
        device.flush().map(|_| ()).map_err(failed)
    }
}
