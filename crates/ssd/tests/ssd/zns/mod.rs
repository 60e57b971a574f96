//! A zoned namespace against the tables of zoned.md section 2, a plain model, power cuts, and closed forms of its times.

mod common;
mod conventional;
mod cuts;
mod faults;
mod lives;
mod mapped;
mod model;
mod states;
mod time;
