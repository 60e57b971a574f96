//! Sizes, identities and statistics as text.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::RangeInclusive;

use onefold_device::SsdDetails;
use onefold_device::observed::{AreaStats, DeviceSnapshot, ImageSnapshot};
use onefold_units::{CauseCounts, numbers};
use serde_json::{Map, Value, json};

/// Reads a size.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let expected = |error| format!("found {text:?}, {error}; expected a size, such as 8GiB or 8G");
    match numbers::size(text).map_err(expected)? {
        0 => Err(format!("found {text:?}, expected more than nothing")),
        bytes => Ok(bytes),
    }
}

/// Reads an offset: a size, which may be 0.
pub(crate) fn parse_offset(text: &str) -> Result<u64, String> {
    numbers::size(text)
        .map_err(|error| format!("found {text:?}, {error}; expected an offset, such as 0 or 4KiB"))
}

/// Reads a share within limits.
pub(crate) fn parse_share(text: &str, limits: RangeInclusive<f64>) -> Result<f64, String> {
    let share = numbers::real(text).filter(|share| limits.contains(share));
    share.ok_or_else(|| {
        let (least, most) = (limits.start(), limits.end());
        format!("found {text:?}, expected a number from {least} to {most}, or a percentage")
    })
}

/// A size in the largest binary unit that keeps it readable.
pub(crate) fn size(bytes: u64) -> String {
    let unit = numbers::SIZES.iter().take(4).find(|(_, scale)| bytes >= *scale);
    match unit {
        Some((name, scale)) if bytes.is_multiple_of(*scale) => format!("{} {name}", bytes / scale),
        Some((name, scale)) => {
            // Tenths without floating point: sizes below 2^60 cannot overflow.
            let tenths = bytes / (scale / 10).max(1);
            format!("{}.{} {name}", tenths / 10, tenths % 10)
        }
        None => format!("{bytes} B"),
    }
}

/// The identity in its usual form.
pub(crate) fn uuid(bytes: &[u8; 16]) -> String {
    let mut text = String::new();
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn causes(counts: &CauseCounts) -> Value {
    counts
        .iter()
        .map(|(cause, pages)| (cause.name().to_owned(), pages.into()))
        .collect::<Map<_, _>>()
        .into()
}

/// The device as JSON.
pub(crate) fn details(details: &SsdDetails) -> Value {
    let (space, wear, host) = (&details.space, &details.wear, &details.host);
    json!({
        "logical_bytes": details.logical_bytes,
        "mapped_pages": details.mapped_pages,
        "space": {
            "superblocks": space.superblocks,
            "bad_superblocks": space.bad_superblocks,
            "reserve_superblocks": space.reserve_superblocks,
            "checkpoint_superblocks": space.checkpoint_superblocks,
            "free_superblocks": details.free_superblocks,
            "taken_superblocks": details.taken_superblocks,
            "slots": space.slots,
            "data_slots": space.data_slots,
            "usable_pages": space.usable_pages,
            "logical_pages": space.logical_pages,
            "rho": space.rho,
        },
        "snapshot_bytes": details.snapshot_bytes,
        "remap": remap(details),
        "recovery_cost": {
            "flash_bytes": details.recovery.flash_bytes(details.program_bytes),
            "log_flash_bytes": details.recovery.log_pages * details.program_bytes,
            "nvram_bytes": details.recovery.nvram_bytes,
            "time_ns": details.recovery.time.get(),
        },
        "buffer": details.buffer_policy.as_ref().map(|policy| json!({
            "policy": policy,
            "bytes": details.buffer_bytes,
        })),
        "failed_die": details.failed_die.map(|failed| json!({
            "die": failed.die,
            "lost_bytes": failed.lost_pages * 4096,
        })),
        "wear": {"min": wear.min, "mean": wear.mean, "max": wear.max},
        "valid_histogram": details.valid_histogram,
        "flash": {
            "program_pages": causes(&details.ftl.programs),
            "read_pages": causes(&details.ftl.reads),
            "saved_pages": details.ftl.saved.iter().collect::<BTreeMap<_, _>>(),
            "erases": details.ftl.erases,
            "media_failures": details.ftl.media_failures,
            "checkpoints": details.ftl.checkpoints,
            "trim_records": details.ftl.trim_records,
        },
        "host": {
            "read_requests": host.read_requests,
            "write_requests": host.write_requests,
            "trim_requests": host.trim_requests,
            "flush_requests": host.flush_requests,
            "read_pages": host.read_pages,
            "write_pages": host.write_pages,
            "trim_pages": host.trim_pages,
            "remap_requests": host.remap_requests,
            "remap_pages": host.remap_pages,
        },
    })
}

/// What remapping counted, and the DRAM of its tables.
fn remap(details: &SsdDetails) -> Value {
    json!({
        "remapped_units": details.remap.remapped,
        "copied_units": details.remap.copied,
        "skipped_units": details.remap.skipped,
        "log_entries": details.remap.entries,
        "destages": details.remap.destages,
        "log_full": details.remap.log_full,
        "segment_cycles_max": details.segment_cycles_max,
        "tables": details.remap_tables.map(|tables| json!({
            "refs_bytes": tables.refs,
            "units_bytes": tables.units,
            "log_pages_bytes": tables.log_pages,
            "segments_bytes": tables.segments,
        })),
    })
}

/// What a server counts beside the device.
pub(super) fn live(snapshot: &DeviceSnapshot) -> Value {
    let area = |area: &AreaStats| {
        let counts = json!({"evictions": area.evictions(), "write_backs": area.write_backs()});
        (area.name.to_owned(), counts)
    };
    let areas: Map<String, Value> = snapshot.buffer_areas.iter().map(area).collect();
    json!({
        "waf": snapshot.write_amplification,
        "gc_active": snapshot.gc_active,
        "host_written_bytes": snapshot.host_written_bytes,
        "unflushed_bytes": snapshot.unflushed_bytes,
        "flush_ns": snapshot.flush_ns,
        "recovery_ns": snapshot.recovery_ns,
        "image": snapshot.image.as_ref().map(image),
        "buffer": {
            "read_hits": snapshot.buffer_read_hits,
            "read_misses": snapshot.buffer_read_misses,
            "write_hits": snapshot.buffer_write_hits,
            "write_misses": snapshot.buffer_write_misses,
            "areas": areas,
        },
    })
}

/// How the host treats the image.
fn image(image: &ImageSnapshot) -> Value {
    json!({
        "state": image.state(),
        "about": image.held.map(|held| held.to_string()),
        "waiting_bytes": image.waiting_bytes,
        "refused_requests": image.refused_requests,
        "failed_reads": image.failed_reads,
        "failed_writes": image.failed_writes,
        "failed_syncs": image.failed_syncs,
    })
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

/// The device for people.
pub(super) fn table(value: &Value) -> String {
    let mut text = String::new();
    let mut row = |name: &str, value: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:<22} {value}");
    };
    let space = &value["space"];
    row("capacity", size(number(&value["logical_bytes"])));
    if number(&value["snapshot_bytes"]) > 0 {
        row("for snapshots", size(number(&value["snapshot_bytes"])));
    }
    row("stored", size(number(&value["mapped_pages"]) * 4096));
    row(
        "superblocks",
        format!(
            "{}, each of {} mapping units; {} free, {} bad, {} hold checkpoints; {} taken into use so far",
            space["superblocks"],
            space["slots"],
            space["free_superblocks"],
            space["bad_superblocks"],
            space["checkpoint_superblocks"],
            space["taken_superblocks"],
        ),
    );
    let died = &value["failed_die"];
    if let Some(die) = died["die"].as_u64() {
        let lost = size(number(&died["lost_bytes"]));
        row("failed", format!("die {die}: {lost} on it are lost, and the drive can only be read"));
    }
    let rho = space["rho"].as_f64().unwrap_or(0.0);
    row("logical / usable (rho)", format!("{rho:.4}"));
    let buffer = &value["buffer"];
    let policy = buffer["policy"].as_str();
    let of_size = |policy: &str| format!("{} by {policy}", size(number(&buffer["bytes"])));
    row("buffer", policy.map_or_else(|| "none".to_owned(), of_size));
    let wear = &value["wear"];
    let mean = wear["mean"].as_f64().unwrap_or(0.0);
    row("erases per superblock", format!("{} to {}, mean {mean:.2}", wear["min"], wear["max"]));
    let cost = &value["recovery_cost"];
    let read = number(&cost["flash_bytes"]) + number(&cost["nvram_bytes"]);
    let ms = number(&cost["time_ns"]).div_ceil(1_000_000);
    row("recovery would read", format!("{} in {ms} ms of device time", size(read)));
    if let Some(tables) = value["remap"]["tables"].as_object() {
        row("DRAM of remap tables", size(tables.values().map(number).sum()));
    }
    served(value, &mut row);
    text
}

/// What a server that has the device says beside it.
fn served(value: &Value, row: &mut dyn FnMut(&str, String)) {
    let Some(live) = value.get("live") else { return };
    let waf = live["waf"].as_f64().map_or_else(|| "-".to_owned(), |waf| format!("{waf:.3}"));
    row("write amplification", waf);
    row("not durable yet", size(number(&live["unflushed_bytes"])));
    let image = &live["image"];
    if let Some(about) = image["about"].as_str() {
        let (refused, waiting) = (&image["refused_requests"], number(&image["waiting_bytes"]));
        let waiting = size(waiting);
        row("the host", format!("{about}: {waiting} wait in memory, {refused} requests refused"));
    }
    let failed = ["failed_reads", "failed_writes", "failed_syncs"].map(|key| number(&image[key]));
    if failed.iter().any(|count| *count > 0) {
        let [reads, writes, syncs] = failed;
        row("failed on the host", format!("{reads} reads, {writes} writes, {syncs} flushes"));
    }
    let pages = value["flash"]["program_pages"].as_object();
    for (cause, pages) in pages.into_iter().flatten().filter(|(_, pages)| number(pages) > 0) {
        row(&format!("programmed, {cause}"), size(number(pages) * 4096));
    }
    let pages = value["flash"]["saved_pages"].as_object();
    for (kind, pages) in pages.into_iter().flatten().filter(|(_, pages)| number(pages) > 0) {
        row(&format!("not programmed, {kind}"), size(number(pages) * 4096));
    }
}

#[cfg(test)]
mod tests {
    use super::{parse_offset, parse_size, size, uuid};

    #[test]
    fn sizes_are_read_strictly_and_written_readably() {
        assert_eq!(parse_size("8GiB"), Ok(8 << 30));
        assert_eq!(parse_size("1000 MB"), Ok(1_000_000_000));
        assert_eq!((parse_offset("0"), parse_offset("4KiB")), (Ok(0), Ok(4096)));
        for text in ["", "0", "8Gi", "1.GiB", "-1GiB", "99999999999TiB"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
        assert_eq!(size(8 << 30), "8 GiB");
        assert_eq!(size((3 << 30) + (1 << 29)), "3.5 GiB");
        assert_eq!(size(100), "100 B");
    }

    #[test]
    fn an_identity_has_its_dashes() {
        let bytes: [u8; 16] = std::array::from_fn(|at| u8::try_from(at).unwrap());
        assert_eq!(uuid(&bytes), "00010203-0405-0607-0809-0a0b0c0d0e0f");
    }
}
