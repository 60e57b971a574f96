//! Actions as one line of text.

use onefold_buffer::{Action, Actions};

/// The steps of one request: `pad 1 0xfe, program 1+4, store 2`.
pub(crate) fn text(out: &Actions) -> String {
    let step = |action: &Action| match *action {
        Action::Hit { lpn, .. } => format!("hit {}", lpn.raw()),
        Action::Fill { lpn, missing, .. } => format!("fill {} {:#x}", lpn.raw(), missing.bits()),
        Action::Store { lpn, .. } => format!("store {}", lpn.raw()),
        Action::Drop { lpn, .. } => format!("drop {}", lpn.raw()),
        Action::Bypass { lpn } => format!("bypass {}", lpn.raw()),
        Action::PadRead { lpn, missing, .. } => {
            format!("pad {} {:#x}", lpn.raw(), missing.bits())
        }
        Action::Program { batch, .. } => {
            let entries = out.batch(batch);
            let lpns: Vec<String> = entries.iter().map(|e| e.lpn.raw().to_string()).collect();
            format!("program {}", lpns.join("+"))
        }
    };
    out.as_slice().iter().map(step).collect::<Vec<String>>().join(", ")
}
