//! Tests of configurations as users write them.

mod errors;
mod never_panics;
mod policies;
mod presets;
