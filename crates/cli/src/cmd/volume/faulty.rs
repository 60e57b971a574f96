//! Log segments in which the backing fails, as `info` and `check` tell them.

use onefold_units::PAGE_BYTES;
use onefold_volume::Faulty;
use serde_json::{Value, json};

use crate::cmd::ssd::render;

pub(super) fn as_json(faulty: Faulty) -> Value {
    json!({
        "failed": faulty.failed,
        "retired": faulty.retired,
        "held": faulty.held,
        "strikes": faulty.strikes,
        "lost_bytes": faulty.lost_blocks * PAGE_BYTES,
    })
}

/// A line, if there are any.
pub(super) fn line(faulty: &Value) -> String {
    let number = |key: &str| faulty[key].as_u64().unwrap_or(0);
    if number("failed") + number("retired") + number("held") == 0 {
        return String::new();
    }
    format!(
        "the backing failed in log segments: {} are being emptied, {} are not used until a scrub is through or the volume is opened again, {} could not be read; \
         {} less room meanwhile, {} strikes\n",
        number("failed"),
        number("retired"),
        number("held"),
        render::size(number("lost_bytes")),
        number("strikes"),
    )
}
