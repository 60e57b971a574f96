//! The policies, one file each.

mod ad_lru;
mod aoi;
mod arc;
mod blocks;
mod bplru;
mod ccf_lru;
mod cflru;
mod clock;
mod fab;
mod fifo;
mod lirs;
mod lru;
mod lru_wsr;
mod nested;
mod oldest_clean;
mod pt_lru;
mod s3_fifo;
mod second_chance;
mod sieve;
mod two_level;
mod two_q;
mod vbbms;
mod w_tinylfu;

pub use bplru::Bplru;
pub use fab::Fab;
pub use lru::Lru;
pub use vbbms::Vbbms;

use crate::{
    BufferConfig, BufferError, Cache, Policy, PolicyInfo, PolicyKind, Replacement, Setup, Sizes,
};

/// What a policy says about itself.
pub(crate) const fn info(kind: PolicyKind) -> &'static PolicyInfo {
    match kind {
        PolicyKind::Lru => &lru::INFO,
        PolicyKind::Fifo => &fifo::INFO,
        PolicyKind::TwoLevel => &two_level::INFO,
        PolicyKind::PtLru => &pt_lru::INFO,
        PolicyKind::Vbbms => &vbbms::INFO,
        PolicyKind::Cflru => &cflru::INFO,
        PolicyKind::LruWsr => &lru_wsr::INFO,
        PolicyKind::CcfLru => &ccf_lru::INFO,
        PolicyKind::AdLru => &ad_lru::INFO,
        PolicyKind::Fab => &fab::INFO,
        PolicyKind::Bplru => &bplru::INFO,
        PolicyKind::Clock => &clock::INFO,
        PolicyKind::TwoQ => &two_q::INFO,
        PolicyKind::Arc => &arc::INFO,
        PolicyKind::Lirs => &lirs::INFO,
        PolicyKind::S3Fifo => &s3_fifo::INFO,
        PolicyKind::Sieve => &sieve::INFO,
        PolicyKind::WTinyLfu => &w_tinylfu::INFO,
        PolicyKind::Aoi => &aoi::INFO,
    }
}

/// The configured policy.
pub fn new_policy(
    config: &BufferConfig,
    sizes: &Sizes,
) -> Result<Box<dyn Policy + Send>, BufferError> {
    match config.policy.kind() {
        PolicyKind::Lru => cache::<Lru>(config, sizes),
        PolicyKind::Fifo => cache::<fifo::Fifo>(config, sizes),
        PolicyKind::TwoLevel => cache::<two_level::TwoLevel>(config, sizes),
        PolicyKind::PtLru => cache::<pt_lru::PtLru>(config, sizes),
        PolicyKind::Vbbms => cache::<Vbbms>(config, sizes),
        PolicyKind::Cflru => cache::<cflru::Cflru>(config, sizes),
        PolicyKind::LruWsr => cache::<lru_wsr::LruWsr>(config, sizes),
        PolicyKind::CcfLru => cache::<ccf_lru::CcfLru>(config, sizes),
        PolicyKind::AdLru => cache::<ad_lru::AdLru>(config, sizes),
        PolicyKind::Fab => cache::<Fab>(config, sizes),
        PolicyKind::Bplru => cache::<Bplru>(config, sizes),
        PolicyKind::Clock => cache::<clock::Clock>(config, sizes),
        PolicyKind::TwoQ => cache::<two_q::TwoQ>(config, sizes),
        PolicyKind::Arc => cache::<arc::Arc>(config, sizes),
        PolicyKind::Lirs => cache::<lirs::Lirs>(config, sizes),
        PolicyKind::S3Fifo => cache::<s3_fifo::S3Fifo>(config, sizes),
        PolicyKind::Sieve => cache::<sieve::Sieve>(config, sizes),
        PolicyKind::WTinyLfu => cache::<w_tinylfu::WTinyLfu>(config, sizes),
        PolicyKind::Aoi => aoi::policy(config, sizes),
    }
}

fn cache<R: Replacement>(
    config: &BufferConfig,
    sizes: &Sizes,
) -> Result<Box<dyn Policy + Send>, BufferError> {
    Ok(Box::new(Cache::<R>::new(&Setup::new::<R>(config, sizes)?)))
}
