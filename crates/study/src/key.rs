//! What determines a point, as a digest: equal digests, equal numbers.

use std::fmt::Write;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::SCHEMA;
use crate::file::{Study, Subject};
use crate::latency::Device;
use crate::stream::Plan;

/// Digest of one point. Names and labels do not enter: they can be changed at any time.
pub(crate) fn key(
    study: &Study,
    device: &Device,
    plan: &Plan,
    (subject, bytes): (&Subject, u64),
    version: &str,
) -> String {
    let mut point: Value = json!({
        "schema": SCHEMA,
        "version": version,
        "device": study.device_bytes,
        "entry": study.entry_bytes,
        "flash_page": study.flash_page_bytes,
        "charge": study.charge.name(),
        "volatile": study.volatile,
        "service": device.identity(),
        "workload": plan.identity,
        "policy": subject.to_string(),
        "size": bytes,
    });
    if !study.has_default_latency() {
        let models = study.latencies.iter().map(|choice| choice.model.to_string());
        point["latency"] = models.collect();
    }
    digest(&point)
}

/// Digest of what determines a point.
pub(crate) fn digest(point: &Value) -> String {
    let mut text = String::with_capacity(32);
    for byte in Sha256::digest(point.to_string()).iter().take(16) {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
