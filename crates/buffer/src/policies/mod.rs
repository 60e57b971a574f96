//! The policies, one file each, and their table.

use onefold_units::policy::Kind;

use crate::{Build, PolicyInfo};

pub(crate) mod ad_lru;
pub(crate) mod aoi;
pub(crate) mod arc;
mod blocks;
pub(crate) mod bplru;
pub(crate) mod ccf_lru;
pub(crate) mod cflru;
pub(crate) mod clock;
pub(crate) mod fab;
pub(crate) mod fifo;
pub(crate) mod lirs;
pub(crate) mod lru;
pub(crate) mod lru_wsr;
mod nested;
mod oldest_clean;
pub(crate) mod pt_lru;
pub(crate) mod s3_fifo;
mod second_chance;
pub(crate) mod sieve;
pub(crate) mod two_level;
pub(crate) mod two_q;
pub(crate) mod vbbms;
pub(crate) mod w_tinylfu;

pub use bplru::Bplru;
pub use fab::Fab;
pub use lru::Lru;
pub use vbbms::Vbbms;

/// In the order of tables. Configuration, errors, studies and documentation have their lists from
/// here.
impl Kind for Build {
    const NOUN: &'static str = "buffer policy";
    const BUILTIN: &'static [&'static PolicyInfo] = &[
        &lru::INFO,
        &fifo::INFO,
        &two_level::INFO,
        &pt_lru::INFO,
        &vbbms::INFO,
        &cflru::INFO,
        &lru_wsr::INFO,
        &ccf_lru::INFO,
        &ad_lru::INFO,
        &fab::INFO,
        &bplru::INFO,
        &clock::INFO,
        &two_q::INFO,
        &arc::INFO,
        &lirs::INFO,
        &s3_fifo::INFO,
        &sieve::INFO,
        &w_tinylfu::INFO,
        &aoi::INFO,
    ];
}
