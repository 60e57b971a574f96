//! `onefold ssd snapshot`.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use onefold_device::mailbox::{SnapshotAction, SnapshotEntry, SnapshotName, SnapshotTable};
use onefold_units::PAGE_BYTES;
use serde_json::json;

use super::reach::Place;
use super::remap::{millis, units};
use super::render;
use crate::error::CliError;
use crate::output::{Format, Global};

/// Subcommands of `onefold ssd snapshot`.
#[derive(Debug, Subcommand)]
pub(crate) enum Snapshot {
    /// Keep what a range holds now
    Create {
        #[command(flatten)]
        named: Named,
        /// The range, such as 0:1GiB
        #[arg(long, value_name = "OFFSET:LEN", value_parser = parse_range)]
        range: (u64, u64),
    },
    /// List the snapshots
    List {
        #[command(flatten)]
        place: Place,
    },
    /// Give the range of a snapshot the content that it had then
    Restore {
        #[command(flatten)]
        named: Named,
    },
    /// Give another range the content of a snapshot
    Clone {
        #[command(flatten)]
        named: Named,
        /// Where; what was there is gone
        #[arg(long, value_name = "OFFSET", value_parser = render::parse_offset)]
        dst: u64,
    },
    /// Give a snapshot up
    Delete {
        #[command(flatten)]
        named: Named,
    },
}

/// A snapshot of a device.
#[derive(Debug, Args)]
pub(crate) struct Named {
    #[command(flatten)]
    place: Place,
    /// Name of the snapshot: up to 63 letters, digits, `.`, `_`, `-`
    #[arg(value_parser = parse_name)]
    name: SnapshotName,
}

fn parse_name(text: &str) -> Result<SnapshotName, String> {
    SnapshotName::new(text).map_err(|error| error.to_string())
}

fn parse_range(text: &str) -> Result<(u64, u64), String> {
    let expected = || format!("found {text:?}, expected OFFSET:LEN such as 0:1GiB");
    let (offset, len) = text.split_once(':').ok_or_else(expected)?;
    Ok((render::parse_offset(offset)?, render::parse_size(len)?))
}

impl Snapshot {
    pub(super) fn run(&self, global: &Global) -> Result<ExitCode, CliError> {
        let action = self.action()?;
        let (table, took) = self.place().reach(global)?.run(|client| {
            let begin = Instant::now();
            client.snapshot(action).map(|table| (table, begin.elapsed()))
        })?;
        let text = match global.format() {
            Format::Json => as_json(&table, took),
            Format::Table => self.say(&table, took),
        };
        global.emit(&text)?;
        Ok(ExitCode::SUCCESS)
    }

    fn place(&self) -> &Place {
        match self {
            Self::List { place } => place,
            Self::Create { named, .. }
            | Self::Restore { named }
            | Self::Clone { named, .. }
            | Self::Delete { named } => &named.place,
        }
    }

    fn action(&self) -> Result<SnapshotAction, CliError> {
        Ok(match self {
            Self::List { .. } => SnapshotAction::List,
            Self::Create { named, range: (offset, len) } => SnapshotAction::Create {
                name: named.name.clone(),
                first: units("OFFSET", *offset)?,
                units: units("LEN", *len)?,
            },
            Self::Restore { named } => SnapshotAction::Restore { name: named.name.clone() },
            Self::Clone { named, dst } => {
                SnapshotAction::Clone { name: named.name.clone(), target: units("--dst", *dst)? }
            }
            Self::Delete { named } => SnapshotAction::Delete { name: named.name.clone() },
        })
    }

    fn say(&self, table: &SnapshotTable, took: Duration) -> String {
        let (verb, named) = match self {
            Self::List { .. } => return list(table),
            Self::Create { named, .. } => ("created", named),
            Self::Restore { named } => ("restored", named),
            Self::Clone { named, .. } => ("cloned", named),
            Self::Delete { named } => ("deleted", named),
        };
        let stall = millis(Duration::from_nanos(table.stall_ns));
        let (name, took) = (named.name.as_str(), millis(took));
        format!("{verb} {name} in {took:.2} ms; writes waited {stall:.2} ms\n")
    }
}

fn list(table: &SnapshotTable) -> String {
    let size = |units: u64| render::size(units * PAGE_BYTES);
    let held: u64 = table.entries.iter().map(|entry| entry.units).sum();
    let each = |entry: &SnapshotEntry| {
        format!("{:<24} {:>12} at {}\n", entry.name.as_str(), size(entry.units), size(entry.first))
    };
    let lines: String = table.entries.iter().map(each).collect();
    let count = table.entries.len();
    let (held, capacity) = (size(held), size(table.capacity));
    format!("{lines}{count} snapshots hold {held} of {capacity}\n")
}

fn as_json(table: &SnapshotTable, took: Duration) -> String {
    let each = |entry: &SnapshotEntry| {
        json!({
            "name": entry.name.as_str(),
            "offset": entry.first * PAGE_BYTES,
            "len": entry.units * PAGE_BYTES,
            "created": entry.created,
        })
    };
    let value = json!({
        "schema": "onefold.ssd.snapshot/1",
        "capacity_bytes": table.capacity * PAGE_BYTES,
        "snapshots": table.entries.iter().map(each).collect::<Vec<_>>(),
        "stall_ms": millis(Duration::from_nanos(table.stall_ns)),
        "wall_ms": millis(took),
    });
    format!("{value:#}\n")
}

#[cfg(test)]
mod tests {
    use super::{parse_name, parse_range};

    #[test]
    fn names_and_ranges_are_checked() {
        assert_eq!(parse_range("0:1GiB"), Ok((0, 1 << 30)));
        assert_eq!(parse_range("4KiB:8KiB"), Ok((4096, 8192)));
        for bad in ["", "1GiB", "0:0", "1x:1GiB", "0:1GiB:2", ":1GiB"] {
            assert!(parse_range(bad).is_err(), "{bad}");
        }
        assert!(parse_name("day-1.b_c").is_ok() && parse_name("a b").is_err());
    }
}
