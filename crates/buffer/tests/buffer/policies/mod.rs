//! Every policy: its golden counts, and its naive model.

mod ad_lru;
mod aoi;
mod arc;
mod bplru;
mod ccf_lru;
mod cflru;
mod clock;
mod fab;
mod fifo;
mod lirs;
mod lists;
mod lru;
mod lru_wsr;
mod nested;
mod pt_lru;
mod s3_fifo;
mod sieve;
mod two_level;
mod two_q;
mod vbbms;
mod w_tinylfu;
