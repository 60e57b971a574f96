//! The policies there are.

use crate::PolicyInfo;
use crate::policies::{
    ad_lru, aoi, arc, bplru, ccf_lru, cflru, clock, fab, fifo, lirs, lru, lru_wsr, pt_lru, s3_fifo,
    sieve, two_level, two_q, vbbms, w_tinylfu,
};

/// Buffer policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PolicyKind {
    /// Least recently used.
    Lru,
    /// First in, first out.
    Fifo,
    /// Two-level LRU.
    TwoLevel,
    /// PT-LRU.
    PtLru,
    /// VBBMS.
    Vbbms,
    /// CFLRU.
    Cflru,
    /// LRU-WSR.
    LruWsr,
    /// CCF-LRU.
    CcfLru,
    /// AD-LRU.
    AdLru,
    /// FAB.
    Fab,
    /// BPLRU.
    Bplru,
    /// CLOCK.
    Clock,
    /// 2Q.
    TwoQ,
    /// ARC.
    Arc,
    /// LIRS.
    Lirs,
    /// S3-FIFO.
    S3Fifo,
    /// SIEVE.
    Sieve,
    /// W-TinyLFU.
    WTinyLfu,
    /// Append-only isolation.
    Aoi,
}

impl PolicyKind {
    /// Every policy.
    pub const ALL: [Self; 19] = [
        Self::Lru,
        Self::Fifo,
        Self::TwoLevel,
        Self::PtLru,
        Self::Vbbms,
        Self::Cflru,
        Self::LruWsr,
        Self::CcfLru,
        Self::AdLru,
        Self::Fab,
        Self::Bplru,
        Self::Clock,
        Self::TwoQ,
        Self::Arc,
        Self::Lirs,
        Self::S3Fifo,
        Self::Sieve,
        Self::WTinyLfu,
        Self::Aoi,
    ];

    /// What the policy says about itself.
    #[must_use]
    pub const fn info(self) -> &'static PolicyInfo {
        match self {
            Self::Lru => &lru::INFO,
            Self::Fifo => &fifo::INFO,
            Self::TwoLevel => &two_level::INFO,
            Self::PtLru => &pt_lru::INFO,
            Self::Vbbms => &vbbms::INFO,
            Self::Cflru => &cflru::INFO,
            Self::LruWsr => &lru_wsr::INFO,
            Self::CcfLru => &ccf_lru::INFO,
            Self::AdLru => &ad_lru::INFO,
            Self::Fab => &fab::INFO,
            Self::Bplru => &bplru::INFO,
            Self::Clock => &clock::INFO,
            Self::TwoQ => &two_q::INFO,
            Self::Arc => &arc::INFO,
            Self::Lirs => &lirs::INFO,
            Self::S3Fifo => &s3_fifo::INFO,
            Self::Sieve => &sieve::INFO,
            Self::WTinyLfu => &w_tinylfu::INFO,
            Self::Aoi => &aoi::INFO,
        }
    }

    /// Name in configuration, tables and errors.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.info().name
    }
}
