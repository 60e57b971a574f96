//! The mixed workloads W1 to W14: a key-value store beside a volume.

use super::WorkloadError;
use super::interleave::{Interleave, Part};
use super::knobs::gib;
use super::lsm::{Lsm, LsmPhase};
use super::pages::PageVolume;

/// A key-value store (tenant 0) and a target application (tenant 1) on one device.
///
/// Source: Jeong et al. 2021, Table 1. Sizes are in GiB, because the paper's device of "300 GB" has
/// 300 GiB. The loads W1 to W7 go with the beginning of the target's trace only, as much of it as
/// fits; the runs W8 to W14 with all of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mix {
    /// `W1` to `W14`.
    pub name: &'static str,
    /// What the store does.
    pub phase: LsmPhase,
    /// The look-alike of the target: a name of [`PageVolume`].
    pub target: &'static str,
    /// GiB the store reads and writes.
    pub store_gib: f64,
    /// GiB the target reads and writes meanwhile.
    pub target_gib: f64,
}

const fn load(name: &'static str, target: &'static str, target_gib: f64) -> Mix {
    Mix { name, phase: LsmPhase::Load, target, store_gib: 4092.7, target_gib }
}

const fn run(name: &'static str, target: &'static str, store_gib: f64, target_gib: f64) -> Mix {
    Mix { name, phase: LsmPhase::Run, target, store_gib, target_gib }
}

impl Mix {
    /// All of them, in order.
    pub const ALL: [Self; 14] = [
        load("W1", "like-mds_0-pages", 0.7),
        load("W2", "like-hm_0-pages", 2.3),
        load("W3", "like-prxy_0-pages", 2.9),
        load("W4", "like-prn_0-pages", 4.6),
        load("W5", "like-usr_0-pages", 6.2),
        load("W6", "like-rsrch_0-pages", 1.1),
        load("W7", "like-wdev_0-pages", 1.0),
        run("W8", "like-mds_0-pages", 1669.4, 10.6),
        run("W9", "like-hm_0-pages", 1669.3, 30.4),
        run("W10", "like-prxy_0-pages", 1664.9, 56.8),
        run("W11", "like-prn_0-pages", 1669.3, 59.0),
        run("W12", "like-usr_0-pages", 1669.3, 48.3),
        run("W13", "like-rsrch_0-pages", 1669.3, 12.2),
        run("W14", "like-wdev_0-pages", 1669.4, 9.8),
    ];

    /// The mix of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mix| mix.name == name)
    }

    /// The specification of the store.
    #[must_use]
    pub fn store(&self) -> Lsm {
        let mut store = Lsm::new(self.phase);
        store.bytes = gib(self.store_gib);
        store
    }

    /// Puts a store and the target on a device of `device_bytes` bytes, at the ratio of the paper.
    /// The store sets the length: [`store`](Self::store), or a variant of it.
    pub fn instantiate(
        &self,
        store: &Lsm,
        device_bytes: u64,
        seed: u64,
    ) -> Result<Interleave, WorkloadError> {
        let mut target = PageVolume::parse(self.target)?;
        // Endless as far as the store is concerned.
        target.bytes = store.bytes;
        let main = store.instantiate(device_bytes, seed)?;
        let side = target.instantiate(device_bytes, seed)?;
        let mix = Interleave::new(vec![
            Part { source: Box::new(main), weight: gib(self.store_gib) },
            Part { source: Box::new(side), weight: gib(self.target_gib) },
        ])?;
        let end = u64::from(super::PageSource::end_pages(&mix)) * 4096;
        if end > device_bytes {
            return Err(WorkloadError::RangeBeyondDevice { end, device: device_bytes });
        }
        Ok(mix)
    }
}
