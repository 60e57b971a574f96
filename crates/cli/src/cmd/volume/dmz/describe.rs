//! What `info` says of a volume of policy `dmz`.

use std::collections::BTreeMap;
use std::path::Path;

use onefold_device::{CacheSums, DmzCache, DmzDetails};
use onefold_journal::{Class, Found};
use onefold_units::PAGE_BYTES;
use onefold_zoned::{Action, Geometry, Inspection, Layout, WaitReason, ZoneKind};
use serde_json::{Map, Value, json};

use super::super::journals;
use crate::cmd::ssd::render;
use crate::error::CliError;
use crate::output::Global;

/// Name of a device.
pub(super) fn device_name(geometry: &Geometry, device: usize) -> &'static str {
    if geometry.has_cache() && device == 0 { "cache" } else { "zoned" }
}

const fn kind_name(kind: ZoneKind) -> &'static str {
    match kind {
        ZoneKind::Cache => "cache",
        ZoneKind::Random => "conventional",
        ZoneKind::Sequential => "sequential",
    }
}

/// What never changes.
fn shape(geometry: &Geometry, layout: &Layout) -> Value {
    let zone = u64::from(geometry.zone_blocks()) * PAGE_BYTES;
    let device = |number: usize| {
        let zones = geometry.device(number);
        let count = zones.conventional + zones.sequential;
        json!({"device": device_name(geometry, number), "zones": count, "bytes": u64::from(count) * zone})
    };
    json!({
        "schema": "onefold.volume.info/1",
        "mode": "dmz",
        "logical_bytes": layout.blocks(geometry) * PAGE_BYTES,
        "zone_bytes": zone,
        "chunks": layout.chunks,
        "reserved_zones": layout.reserved,
        "metadata_blocks": layout.metadata_blocks,
        "devices": (0..geometry.devices()).map(device).collect::<Vec<_>>(),
    })
}

/// The checksums of the cache.
fn checksums(sums: Option<CacheSums>) -> Value {
    sums.map_or(Value::Null, |sums| {
        json!({
            "regions": sums.regions,
            "dirty_regions": sums.dirty_regions,
            "remade_regions": sums.remade_regions,
            "unread_blocks": sums.unread_blocks,
            "damaged_bits": sums.damaged_bits,
            "damaged_header": sums.damaged_header,
            "damaged_reads": sums.damaged_reads,
            "memory_bytes": sums.memory_bytes,
        })
    })
}

/// A volume that nobody serves: the keys of `info`, and how they read.
pub(in super::super) fn info(
    path: &Path,
    cache: Option<&Path>,
    global: &Global,
) -> Result<(Value, String), CliError> {
    let devices = super::open(path, cache, false, global)?;
    let mut checked = devices.inspect()?;
    let found = super::content(&mut checked);
    let inspection = &checked.inspection;
    let mut info = shape(inspection.geometry(), &inspection.layout);
    info["path"] = path.display().to_string().into();
    info["cache"] = cache.map(|cache| cache.display().to_string()).into();
    info["cache_checksums"] = checksums(devices.cache.as_ref().and_then(DmzCache::sums));
    info["served"] = false.into();
    info["uuid"] = render::uuid(&inspection.identity.uuid).into();
    info["name"] = label(&inspection.identity.label).into();
    info["closed"] = (!inspection.has_to_recover()).into();
    info["generation"] = inspection.generation.into();
    info["findings"] = inspection.findings.len().into();
    info["zones"] = by_use(inspection);
    info["mapped_chunks"] = mapped(inspection).into();
    info["journal"] = json!({
        "mode": null,
        "would_pin_chunk": would_pin(inspection, &found),
        "zones": inspection.journal_zones().count(),
        "appended_blocks": inspection.appended_blocks(),
    });
    info["content"] = journals::as_json(&found);
    devices.close()?;
    let described = table(&info);
    Ok((info, described))
}

fn mapped(inspection: &Inspection) -> usize {
    let is_mapped = |chunk: &u32| inspection.zones_of(*chunk).0.is_some();
    (0..inspection.layout.chunks).filter(is_mapped).count()
}

/// Zones by kind and use.
fn by_use(inspection: &Inspection) -> Value {
    let mut counts = BTreeMap::new();
    for zone in &inspection.zones {
        *counts.entry((zone.kind, zone.used.name())).or_default() += 1;
    }
    by_kind(&counts)
}

fn by_kind(counts: &BTreeMap<(ZoneKind, &'static str), u32>) -> Value {
    let mut kinds: BTreeMap<&str, BTreeMap<&str, u32>> = BTreeMap::new();
    for ((kind, used), zones) in counts {
        kinds.entry(kind_name(*kind)).or_default().insert(used, *zones);
    }
    json!(kinds)
}

/// The chunk that `serve --journal one` would pin at once.
fn would_pin(inspection: &Inspection, found: &Found) -> Option<u64> {
    let is_journal = |class| matches!(class, Class::JournalLog | Class::JournalHot);
    let ranges = found.ranges.iter().filter(|range| is_journal(range.class));
    let first = ranges.map(|range| range.first.raw()).min()?;
    let chunk = first / u64::from(inspection.geometry().zone_blocks());
    let data = u32::try_from(chunk).ok().and_then(|chunk| inspection.zones_of(chunk).0)?;
    (inspection.geometry().kind(data) != ZoneKind::Sequential).then_some(chunk)
}

/// A name that is zero-terminated if it is shorter.
pub(super) fn label(bytes: &[u8; 32]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// The keys of `info` that a served volume has, and `live` with what it counts.
pub(crate) fn served(details: &DmzDetails) -> Value {
    let mut info = shape(&details.geometry, &details.layout);
    let stats = &details.stats;
    let bytes = |blocks: u64| blocks * PAGE_BYTES;
    let sent: Map<String, Value> =
        details.sent_bytes().map(|(cause, bytes)| (cause.to_owned(), bytes.into())).collect();
    let reclaims: Map<String, Value> = Action::ALL
        .into_iter()
        .map(|action| {
            let all = stats.reclaims(action);
            let ended = json!({
                "started": all.started, "completed": all.completed, "aborted": all.aborted, "failed": all.failed,
            });
            (action.name().to_owned(), ended)
        })
        .collect();
    let waits: Map<String, Value> = WaitReason::ALL
        .into_iter()
        .map(|reason| {
            let waits = stats.waits(reason);
            (reason.name().to_owned(), json!({"count": waits.count, "ms": waits.ns / 1_000_000}))
        })
        .collect();
    let found = Found {
        ranges: details.ranges.clone(),
        remarks: details.remarks.clone(),
        ..Found::default()
    };
    info["uuid"] = render::uuid(&details.uuid).into();
    info["mapped_chunks"] = details.mapped_chunks.into();
    info["cache_checksums"] = checksums(details.cache_sums);
    info["name"] = label(&details.label).into();
    info["zones"] = by_kind(&details.zones);
    info["journal"] = served_journal(details);
    info["content"] = journals::as_json(&found);
    info["live"] = json!({
        "frozen": details.frozen,
        "written_bytes": bytes(stats.written),
        "read_bytes": bytes(stats.read),
        "discarded_bytes": bytes(stats.discarded),
        "sent_bytes": sent,
        "waf_host": details.write_amplification(),
        "flushes": stats.flushes,
        "flushes_sent": stats.devices.iter().map(|device| device.flushes_sent).collect::<Vec<_>>(),
        "metadata_flushes": stats.metadata_flushes,
        "reclaims": reclaims,
        "waits": waits,
        "journal_outside_bytes": bytes(stats.journal_outside),
        "journal_merges": stats.journal_merges,
        "journal_demotions": stats.journal_demotions,
        "metadata_bytes": details.metadata_memory,
        "recovery": {
            "ms": details.recovery_time.as_secs_f64() * 1e3,
            "repaired_blocks": details.recovery.repaired_blocks,
            "reset_zones": details.recovery.reset_zones,
        },
    });
    info
}

fn served_journal(details: &DmzDetails) -> Value {
    json!({
        "mode": details.journal.name(),
        "pinned_chunks": details.pinned,
        "zones": details.journal_zones,
        "log_zones": details.set_zones[0],
        "hot_zones": details.set_zones[1],
        "appended_blocks": details.appended_blocks,
    })
}

/// The volume for people.
pub(in super::super) fn table(info: &Value) -> String {
    let size = |key: &str| render::size(info[key].as_u64().unwrap_or(0));
    let count = |key: &str| info[key].as_u64().unwrap_or(0);
    let devices = info["devices"].as_array().into_iter().flatten().map(|device| {
        let bytes = render::size(device["bytes"].as_u64().unwrap_or(0));
        format!("{} {bytes}", device["device"].as_str().unwrap_or_default())
    });
    let kinds = info["zones"].as_object().into_iter().flatten().map(|(kind, uses)| {
        let uses = uses.as_object().into_iter().flatten();
        let uses: Vec<String> = uses.map(|(used, zones)| format!("{zones} {used}")).collect();
        format!("{kind} zones: {}\n", uses.join(", ").replace('_', " "))
    });
    let devices: Vec<String> = devices.collect();
    let content = journals::lines(&info["content"]);
    let sums = &info["cache_checksums"];
    let with_sums = sums.as_object().map(|_| {
        let (dirty, damaged) = (&sums["dirty_regions"], &sums["damaged_reads"]);
        let regions = &sums["regions"];
        format!(
            "cache with checksums: {dirty} of {regions} regions dirty, {damaged} damaged reads\n"
        )
    });
    format!(
        "policy dmz: exports {} in {} chunks of {}, {} mapped; {}\n{}{}{}{}\n",
        size("logical_bytes"),
        count("chunks"),
        size("zone_bytes"),
        count("mapped_chunks"),
        devices.join(", "),
        kinds.collect::<String>(),
        with_sums.unwrap_or_default(),
        content,
        journal(&info["journal"]),
    )
}

fn journal(journal: &Value) -> String {
    let count = |key: &str| journal[key].as_u64().unwrap_or(0);
    let pinned: Vec<String> =
        journal["pinned_chunks"].as_array().into_iter().flatten().map(Value::to_string).collect();
    let mut parts = Vec::new();
    if count("appended_blocks") > 0 {
        let zones = match count("log_zones") + count("hot_zones") {
            // Without a server.
            0 => count("zones"),
            zones => zones,
        };
        let blocks = count("appended_blocks");
        parts.push(format!("{blocks} blocks in {zones} sequential zones of its own"));
    }
    if !pinned.is_empty() {
        parts.push(format!("pinned chunks {}", pinned.join(", ")));
    }
    match (journal["mode"].as_str(), journal["would_pin_chunk"].as_u64()) {
        (Some(mode), _) if parts.is_empty() => format!("journal {mode}: no chunk is pinned"),
        (Some(mode), _) => format!("journal {mode}: {}", parts.join(", ")),
        (None, _) if !parts.is_empty() => format!("journal: {}", parts.join(", ")),
        (None, Some(chunk)) => format!("`serve --journal one` would pin chunk {chunk}"),
        (None, None) => "`serve --journal one` would pin nothing yet".to_owned(),
    }
}

/// The last lines of `info`: what is going on.
pub(in super::super) fn state(info: &Value) -> String {
    let live = &info["live"];
    if !live.is_object() {
        let closed = if info["closed"] == true { "closed" } else { "not closed" };
        let findings = info["findings"].as_u64().unwrap_or(0);
        let damage = if findings > 0 { "; damaged, `onefold volume check` says more" } else { "" };
        return format!("{closed}, generation {}{damage}", info["generation"]);
    }
    let size = |key: &str| render::size(live[key].as_u64().unwrap_or(0));
    let sent: Vec<String> = live["sent_bytes"]
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(_, bytes)| bytes.as_u64() != Some(0))
        .map(|(cause, bytes)| format!("{cause} {}", render::size(bytes.as_u64().unwrap_or(0))))
        .collect();
    let waf = live["waf_host"].as_f64().map_or_else(|| "-".to_owned(), |waf| format!("{waf:.3}"));
    let frozen = if live["frozen"] == true {
        "\nTAKES NO MORE CHANGES, because a device failed; check it when it is not served"
    } else {
        ""
    };
    format!(
        "served now; {} written, {} read; sent per byte written {waf} ({})\n\
         {} metadata flushes; waits: {} for reclaim, {} for a free zone; memory of map and validity {}{frozen}",
        size("written_bytes"),
        size("read_bytes"),
        sent.join(", "),
        live["metadata_flushes"],
        live["waits"]["reclaim"]["count"],
        live["waits"]["free_zone"]["count"],
        size("metadata_bytes"),
    )
}
