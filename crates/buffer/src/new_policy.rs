//! A policy from its configuration.

use crate::policies::{
    ad_lru, aoi, arc, ccf_lru, cflru, clock, fifo, lirs, lru_wsr, pt_lru, s3_fifo, sieve,
    two_level, two_q, w_tinylfu,
};
use crate::{
    Bplru, BufferConfig, BufferError, Cache, Fab, Lru, Policy, PolicyKind, Replacement, Sizes,
    Vbbms,
};

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
        PolicyKind::Aoi => match config.policy.value("area").word() {
            "s3-fifo" => cache::<aoi::OverS3Fifo>(config, sizes),
            "sieve" => cache::<aoi::OverSieve>(config, sizes),
            _ => cache::<aoi::OverLru>(config, sizes),
        },
    }
}

fn cache<R: Replacement>(
    config: &BufferConfig,
    sizes: &Sizes,
) -> Result<Box<dyn Policy + Send>, BufferError> {
    Ok(Box::new(Cache::<R>::new(config, sizes)?))
}
