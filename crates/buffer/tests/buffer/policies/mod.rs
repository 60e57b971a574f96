//! Every policy: its golden counts, and its naive model.

mod bplru;
mod fab;
mod lru;
mod vbbms;
