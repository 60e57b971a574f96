//! What a recording cost on one drive.

use onefold_config::ConfigError;
use onefold_sim::result::{
    Device, Flash, Host, LatencySummaries, PAGE_BYTES, Precondition, RunResult, Volume,
};
use serde::{Deserialize, Serialize};

use super::{Life, Sized};

/// What a recording cost on one drive. Keys that results of `sim run` have mean the same here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DriveCost {
    /// Preset or file, as it was named.
    pub name: String,
    /// The drive as it was simulated.
    pub device: Device,
    /// Its capacity before it was scaled.
    pub whole_bytes: u64,
    /// The keys with which `onefold sim run --preset NAME --set KEY=VALUE.. --trace FILE` repeats
    /// the run.
    pub keys: Vec<String>,
    /// SHA-256 of the configuration.
    pub config_sha256: String,
    /// What ageing did.
    pub precondition: Option<Precondition>,
    /// What the host asked for.
    pub host: Host,
    /// The volume above the drive; `null` for a drive alone.
    pub volume: Option<Volume>,
    /// What flash did, by cause.
    pub flash: Flash,
    /// Bytes programmed for any cause.
    pub nand_bytes: u64,
    /// Pages programmed for any cause / pages written.
    pub waf: f64,
    /// Latency by operation.
    pub latency_ns: LatencySummaries,
    /// Virtual time of the replay.
    pub virtual_ns: u64,
    /// How long the drive lasts at this rate.
    pub life: Life,
    /// What speaks against the numbers.
    pub warnings: Vec<String>,
}

impl DriveCost {
    /// What budgets and tables call it: `tlc`, `tlc+volume`.
    #[must_use]
    pub fn label(&self) -> String {
        if self.volume.is_some() { format!("{}+volume", self.name) } else { self.name.clone() }
    }

    /// Bytes programmed by cause, the largest first, without causes of none.
    #[must_use]
    pub fn causes(&self) -> Vec<(String, u64)> {
        let bytes = |(cause, pages): (&str, u64)| (cause.to_owned(), pages * PAGE_BYTES);
        let mut causes: Vec<_> = self.flash.program_pages.iter().map(bytes).collect();
        causes.retain(|(_, bytes)| *bytes > 0);
        causes.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
        causes
    }
}

pub(super) fn of(
    sized: &Sized<'_>,
    run: RunResult,
    seconds: f64,
) -> Result<DriveCost, ConfigError> {
    let nand_bytes = run.flash.program_pages.total() * PAGE_BYTES;
    Ok(DriveCost {
        name: sized.drive.name.clone(),
        device: run.device,
        whole_bytes: sized.drive.config.logical_bytes()?,
        keys: sized.keys.clone(),
        config_sha256: run.config_sha256,
        precondition: run.precondition,
        host: run.host,
        volume: run.volume,
        flash: run.flash,
        nand_bytes,
        waf: run.waf,
        latency_ns: run.latency_ns,
        virtual_ns: run.virtual_ns,
        life: Life::of((&sized.drive.config, &sized.config), nand_bytes, seconds)?,
        warnings: run.warnings,
    })
}
