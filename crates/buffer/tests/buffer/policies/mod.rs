//! Every policy: its golden counts, and its naive model.

mod ad_lru;
mod bplru;
mod ccf_lru;
mod cflru;
mod clock;
mod fab;
mod fifo;
mod lists;
mod lru;
mod lru_wsr;
mod pt_lru;
mod two_level;
mod vbbms;
