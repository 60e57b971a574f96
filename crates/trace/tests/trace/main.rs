//! Tests of formats of traces and of what is made from them.

mod formats;
mod lookalikes;
mod oft;
mod properties;
