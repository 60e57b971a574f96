//! Every policy: its golden counts, and its naive model.

mod aoi;
mod lru;
