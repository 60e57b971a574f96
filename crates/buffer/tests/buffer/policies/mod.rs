//! Every policy: its golden counts, and its naive model.

mod aoi;
mod arc;
mod lirs;
mod lru;
mod s3_fifo;
mod sieve;
mod two_q;
mod w_tinylfu;
