//! `onefold volume check --rebuild`: what it did, in words.

use onefold_device::VolumeBacking;
use onefold_volume::{Found, MountError, Options, Rebuilt};
use serde_json::{Value, json};

use crate::error::CliError;

/// Makes a root anew if the volume cannot be opened without.
pub(super) fn rebuild(backing: &mut VolumeBacking) -> Result<Option<Rebuilt>, CliError> {
    let blocks = backing.blocks();
    match onefold_volume::rebuild(backing, blocks, Options::default()) {
        Ok(rebuilt) => Ok(Some(rebuilt)),
        Err(MountError::Opens) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn describe(rebuilt: &Rebuilt) -> Value {
    let range = |range: &onefold_volume::Range| json!([range.lba.raw(), range.blocks]);
    json!({
        "from": name(rebuilt.found),
        "batches": rebuilt.batches,
        "missing_batches": rebuilt.missing,
        "left_out_batches": rebuilt.left_out,
        "mapped_blocks": rebuilt.mapped,
        "uncertain_blocks": rebuilt.uncertain,
        "uncertain_ranges": rebuilt.uncertain_ranges.iter().map(range).collect::<Vec<_>>(),
        "lost_blocks": rebuilt.lost,
        "hidden_blocks": rebuilt.hidden,
        "blocks_of_snapshots": rebuilt.of_others,
    })
}

const fn name(found: Found) -> &'static str {
    match found {
        Found::Checkpoint => "checkpoint",
        Found::Headers => "headers",
    }
}

/// What was made anew, a line for each thing to know.
pub(super) fn lines(rebuilt: &Rebuilt) -> Vec<String> {
    let mut lines = vec![format!(
        "made a root anew from {}: {} batches, {} blocks mapped",
        match rebuilt.found {
            Found::Checkpoint => "the last checkpoint",
            Found::Headers => "headers of batches; snapshots and clones are gone",
        },
        rebuilt.batches,
        rebuilt.mapped
    )];
    let mut say = |count: u64, what: &str| {
        if count > 0 {
            lines.push(format!("{count} {what}"));
        }
    };
    say(rebuilt.left_out, "batches that came last were left out: they were not durable");
    say(
        rebuilt.uncertain,
        "blocks are older than a batch that is missing: they may have been trimmed since, or overwritten where a \
         header is damaged (--format json lists them)",
    );
    say(rebuilt.lost, "blocks are an error to read: two versions may be the newest");
    say(rebuilt.hidden, "blocks at most were behind headers that are damaged");
    say(rebuilt.of_others, "blocks of clones were found and left out");
    lines
}
