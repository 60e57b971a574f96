//! What an SSD counted in its whole life.

use std::fmt::Write;

use onefold_device::observed::DeviceSnapshot;
use onefold_device::{KeptLifetime, Lifetime, SsdDevice};
use serde_json::{Value, json};

use super::render;
use crate::cmd::written;

const DAY_S: u64 = 86_400;

/// The counters as JSON; `null` where nothing is counted yet. `retired` is the number of superblocks that failed, where
/// the drive knows it.
pub(crate) fn as_json(kept: KeptLifetime, retired: Option<u32>) -> Value {
    match kept {
        KeptLifetime::Counters(counters) => counted(&counters, retired),
        KeptLifetime::Nothing => Value::Null,
        KeptLifetime::Damaged => json!({"damaged": true}),
    }
}

/// The counters of a drive that is open.
pub(crate) fn counted(counters: &Lifetime, retired: Option<u32>) -> Value {
    let bytes = written::as_json(&DeviceSnapshot {
        flash: true,
        host_written_bytes: counters.host_written_bytes,
        nand_written_pages: counters.programs,
        ..DeviceSnapshot::default()
    });
    json!({
        "since": counters.since,
        "power_cycles": counters.power_cycles,
        "unclean_starts": counters.unclean_starts,
        "host_bytes": bytes["host_bytes"],
        "host_read_bytes": counters.host_read_bytes,
        "host_discarded_bytes": counters.host_discarded_bytes,
        "flash_bytes": bytes["flash_bytes"],
        "flash_by_cause": bytes["flash_by_cause"],
        "waf": bytes["waf"],
        "erases": counters.erases,
        "failed_reads": counters.failed_reads,
        "media_failures": counters.media_failures,
        "retired_superblocks": retired,
    })
}

/// A device that is open, with the counters of its life.
pub(crate) fn described(device: &SsdDevice) -> Option<Value> {
    let found = device.details()?;
    let mut value = render::details(&found);
    value["lifetime"] = counted(&device.lifetime()?, Some(found.retired_superblocks));
    Some(value)
}

/// The counters for people.
pub(super) fn table(lifetime: &Value) -> String {
    let mut text = String::new();
    let mut row = |name: &str, value: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:<22} {value}");
    };
    let number = |key: &str| lifetime[key].as_u64().unwrap_or(0);
    let size = |key: &str| render::size(number(key));
    if lifetime["damaged"] == true {
        let what = "counters are damaged; they start anew when the image is opened for writing";
        row("in its life", what.to_owned());
        return text;
    }
    if lifetime.is_null() {
        row("in its life", "not counted: an older Onefold used the image last".to_owned());
        return text;
    }
    row(
        "in its life",
        format!(
            "since {}: {} starts, {} of them unclean",
            date(number("since")),
            number("power_cycles"),
            number("unclean_starts")
        ),
    );
    row(
        "  by the host",
        format!(
            "{} written, {} read, {} discarded",
            size("host_bytes"),
            size("host_read_bytes"),
            size("host_discarded_bytes")
        ),
    );
    let waf = lifetime["waf"].as_f64().map_or_else(String::new, |waf| {
        let causes = written::shares(lifetime, "flash_by_cause");
        format!(", {waf:.3} per byte written ({causes})")
    });
    let (programmed, erases) = (size("flash_bytes"), number("erases"));
    row("  by flash", format!("{programmed} programmed{waf}; {erases} erases"));
    let retired = lifetime["retired_superblocks"].as_u64();
    let retired = retired.map_or_else(String::new, |n| format!(", {n} superblocks retired"));
    let (reads, flash) = (number("failed_reads"), number("media_failures"));
    row("  failed", format!("{reads} reads of the host, {flash} operations of flash{retired}"));
    text
}

/// The day of a time in seconds since 1970, UTC.
fn date(seconds: u64) -> String {
    // Howard Hinnant's civil_from_days, for days from 0000-03-01 on.
    let days = seconds / DAY_S + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let years = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * years + years / 4 - years / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = years + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::date;

    /// As `date -u -d @SECONDS +%F` has them.
    #[test]
    fn days_have_their_dates() {
        for (seconds, day) in [
            (0, "1970-01-01"),
            (951_782_399, "2000-02-28"),
            (951_782_400, "2000-02-29"),
            (951_868_800, "2000-03-01"),
            (1_735_689_599, "2024-12-31"),
            (4_107_542_400, "2100-03-01"),
        ] {
            assert_eq!(date(seconds), day);
        }
    }
}
