//! Every policy: its golden counts, and its naive model.

mod lru;
