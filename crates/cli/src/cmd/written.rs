//! What became of the bytes that a host wrote: sent by a volume, programmed by flash, and the product.

use onefold_device::observed::{DeviceSnapshot, DeviceStats};
use onefold_units::convert::float;
use onefold_units::{Cause, PAGE_BYTES};
use serde_json::{Value, json};

use super::ssd::render;
use crate::output::Global;

/// Says at the end of a server what was written since it began.
pub(super) fn report(global: &Global, device: &impl DeviceStats) {
    let written = as_json(&device.snapshot().unwrap_or_default());
    for line in [sent(&written), flash(&written)].into_iter().flatten() {
        global.say(line);
    }
}

/// Bytes by place and cause, and what each place made of them; `null` where there is no such place or nothing was written.
pub(super) fn as_json(snapshot: &DeviceSnapshot) -> Value {
    let host = snapshot.host_written_bytes;
    let sent = snapshot
        .volume
        .as_ref()
        .map(|volume| volume.sent_bytes.iter().map(|(_, bytes)| bytes).sum::<u64>());
    let flash = snapshot.flash.then(|| snapshot.nand_written_pages.total() * PAGE_BYTES);
    let ratio = |a: Option<u64>, b: u64| a.filter(|_| b > 0).map(|a| float(a) / float(b));
    let causes = snapshot.volume.iter().flat_map(|volume| &volume.sent_bytes);
    let programs =
        Cause::ALL.map(|cause| (cause.name(), snapshot.nand_written_pages.of(cause) * PAGE_BYTES));
    json!({
        "host_bytes": host,
        "sent_bytes": sent,
        "sent_by_cause": sent.map(|_| by_cause(causes.copied())),
        "flash_bytes": flash,
        "flash_by_cause": flash.map(|_| by_cause(programs)),
        "waf_host": ratio(sent, host),
        "waf_device": ratio(flash, sent.unwrap_or(0)),
        "waf": ratio(flash, host),
    })
}

fn by_cause(bytes: impl IntoIterator<Item = (&'static str, u64)>) -> Value {
    bytes
        .into_iter()
        .filter(|(_, bytes)| *bytes > 0)
        .map(|(cause, bytes)| (cause.to_owned(), Value::from(bytes)))
        .collect()
}

/// What a volume sent, for people.
fn sent(written: &Value) -> Option<String> {
    let waf = written["waf_host"].as_f64()?;
    let causes = shares(written, "sent_by_cause");
    let host = size(&written["host_bytes"]);
    Some(format!("{host} written; sent to the backing per byte written: {waf:.3} ({causes})"))
}

/// What flash programmed, for people; `None` if there is none, or nothing was written.
pub(super) fn flash(written: &Value) -> Option<String> {
    let waf = written["waf"].as_f64()?;
    let causes = shares(written, "flash_by_cause");
    let of_sent = written["waf_device"].as_f64();
    let of_sent = of_sent.map_or_else(String::new, |waf| format!("{waf:.3} per byte sent, "));
    let programmed = size(&written["flash_bytes"]);
    Some(format!("{programmed} programmed by flash: {of_sent}{waf:.3} per byte written ({causes})"))
}

fn size(bytes: &Value) -> String {
    render::size(bytes.as_u64().unwrap_or(0))
}

/// Bytes of each cause per byte that the host wrote.
pub(super) fn shares(written: &Value, key: &str) -> String {
    let host = written["host_bytes"].as_f64().unwrap_or(1.0);
    let share = |(cause, bytes): (&String, &Value)| {
        format!("{cause} {:.3}", bytes.as_f64().unwrap_or(0.0) / host)
    };
    let causes = written[key].as_object().into_iter().flatten();
    causes.map(share).collect::<Vec<_>>().join(", ")
}
