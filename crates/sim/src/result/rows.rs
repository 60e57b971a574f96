//! The rows of a summary, shared by the text table and the HTML report.

use std::collections::BTreeSet;

use onefold_units::Cause;
use onefold_units::convert::float;

use super::human::{bytes, count, duration, pages_in_out, percent, share, si, significant};
use super::{
    Buffer, Faults, LatencySummary, PAGE_BYTES, Remap, RunResult, SavedPages, Volume, Zoned,
    ZonedVolume,
};

/// One row: what it shows and one text per run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// Heading under which the row stands.
    pub(crate) group: &'static str,
    /// What the row shows.
    pub(crate) label: String,
    /// One value per run; `-` where a run has none.
    pub(crate) values: Vec<String>,
}

/// Every row that says something about at least one of the runs.
pub(crate) fn rows(runs: &[RunResult]) -> Vec<Row> {
    let mut rows = Rows { runs, rows: Vec::new() };
    rows.setup();
    rows.host();
    rows.buffer();
    rows.remap();
    rows.volume();
    rows.zoned();
    rows.zoned_volume();
    rows.stack();
    rows.flash();
    rows.latency("read", |run| Some(&run.latency_ns.read));
    rows.latency("write", |run| Some(&run.latency_ns.write));
    rows.latency("flush", |run| Some(&run.latency_ns.flush));
    rows.latency("remap", |run| run.latency_ns.remap.as_ref());
    rows.speed();
    rows.origin();
    rows.rows
}

struct Rows<'a> {
    runs: &'a [RunResult],
    rows: Vec<Row>,
}

impl Rows<'_> {
    /// A row in every table.
    fn row(&mut self, group: &'static str, label: &str, value: impl Fn(&RunResult) -> String) {
        let values = self.runs.iter().map(value).collect();
        self.rows.push(Row { group, label: label.to_owned(), values });
    }

    /// A row that is left out if no run has a value.
    fn row_if_any(
        &mut self,
        group: &'static str,
        label: &str,
        value: impl Fn(&RunResult) -> Option<String>,
    ) {
        let values: Vec<Option<String>> = self.runs.iter().map(value).collect();
        if values.iter().any(Option::is_some) {
            let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
            let values = values.into_iter().map(or_dash).collect();
            self.rows.push(Row { group, label: label.to_owned(), values });
        }
    }

    fn setup(&mut self) {
        self.row("setup", "device", |run| run.device_name().to_owned());
        self.row_if_any("setup", "capacity", |run| {
            (run.device.logical_bytes > 0).then(|| bytes(run.device.logical_bytes))
        });
        self.row_if_any("setup", "spare area", |run| {
            (run.device.logical_bytes > 0).then(|| percent(run.device.op))
        });
        self.row("setup", "trace or workload", RunResult::source_name);
        self.row_if_any("setup", "partial", |run| run.partial.then(|| "interrupted".to_owned()));
        self.row_if_any("setup", "warnings", |run| {
            (!run.warnings.is_empty()).then(|| run.warnings.len().to_string())
        });
    }

    fn host(&mut self) {
        self.row("host", "requests", |run| count(run.host.requests()));
        self.row_if_any("host", "requests left out", |run| positive(run.trace.as_ref()?.skipped));
        self.row("host", "pages read", |run| count(run.host.read_pages));
        self.row("host", "pages written", |run| count(run.host.write_pages));
        self.row_if_any("host", "pages to remap", |run| positive(run.host.remap_pages));
        self.row_if_any("host", "pages trimmed", |run| positive(run.host.trim_pages));
        self.row_if_any("host", "requests failed", |run| positive(run.host.failed_requests));
        self.row_if_any("host", "map cache hit ratio", |run| {
            let cache = run.map_cache.as_ref()?;
            let hits = float(cache.hits);
            Some(percent(share(hits, hits + float(cache.misses))))
        });
    }

    fn remap(&mut self) {
        let mut add = |label: &str, value: fn(&Remap) -> Option<String>| {
            self.row_if_any("remap", label, |run| run.remap.as_ref().and_then(value));
        };
        add("remap scheme", |remap| Some(remap.scheme.clone()));
        add("pages deduplicated", |remap| positive(remap.deduplicated));
        add("pages remapped", |remap| positive(remap.remapped));
        add("remaps copied", |remap| positive(remap.copied));
        add("remaps refused", |remap| positive(remap.skipped));
        add("log entries, host", |remap| positive(remap.entries));
        add("log entries, collection", |remap| positive(remap.moved_entries));
        add("log compactions", |remap| positive(remap.compactions));
        add("logs moved to flash", |remap| positive(remap.destages));
        add("remaps without room in the log", |remap| positive(remap.log_full));
        add("log look-up time", |remap| {
            (remap.lookup_ns > 0).then(|| duration(float(remap.lookup_ns)))
        });
        add("hash units busy", |remap| {
            (remap.hash_busy_ns > 0).then(|| duration(float(remap.hash_busy_ns)))
        });
        add("uses of an NVRAM segment, most", |remap| positive(remap.segment_cycles_max));
        self.row_if_any("remap", "NVRAM cycles / flash cycles, most", |run| {
            let remap = run.remap.as_ref().filter(|remap| remap.segment_cycles_max > 0)?;
            let erases = run.flash.wear.max.max(1);
            Some(significant(float(remap.segment_cycles_max) / float(erases), 3))
        });
        self.row_if_any("remap", "DRAM of remap tables", |run| {
            let tables = &run.remap.as_ref()?.tables;
            let parts = [tables.refs_bytes, tables.units_bytes, tables.log_pages_bytes];
            Some(bytes(parts.iter().sum::<u64>() + tables.segments_bytes))
        });
        self.row_if_any("remap", "recovery would read, take", |run| {
            let recovery = run.recovery.as_ref().filter(|_| run.remap.is_some())?;
            let read = bytes(recovery.flash_bytes + recovery.nvram_bytes);
            Some(format!("{read}, {}", duration(float(recovery.time_ns))))
        });
    }

    fn volume(&mut self) {
        let mut add = |label: &str, value: fn(&Volume) -> Option<String>| {
            self.row_if_any("volume", label, |run| run.volume.as_ref().and_then(value));
        };
        add("volume mode", |volume| Some(volume.mode.clone()));
        add("WAF of the volume", |volume| Some(significant(volume.waf_host, 4)));
        add("WAF of the device below", |volume| Some(significant(volume.waf_device, 4)));
        add("log in use", |volume| {
            Some(percent(share(float(volume.live_pages), float(volume.log_pages))))
        });
        add("log segments cleaned", |volume| positive(volume.cleaned_segments));
        add("moved by remap", |volume| positive(volume.remapped_pages));
        add("checkpoints", |volume| positive(volume.checkpoints));
        add("requests that waited for the volume", |volume| positive(volume.stalls.requests));
        add("longest wait for the volume", |volume| {
            (volume.stalls.requests > 0).then(|| duration(float(volume.stalls.max_ns)))
        });
        self.sent_by_cause();
    }

    fn zoned(&mut self) {
        let mut add = |label: &str, value: fn(&Zoned) -> Option<String>| {
            self.row_if_any("zones", label, |run| run.zoned.as_ref().and_then(value));
        };
        add("zone", |zoned| Some(bytes(zoned.zone_bytes)));
        add("dies of a zone", |zoned| Some(count(zoned.zone_dies)));
        add("zones", |zoned| positive(zoned.zones.values().sum()));
        add("conventional zones", |zoned| Some(count(zoned.conventional.as_ref()?.zones)));
        add("pages collected there", |zoned| {
            positive(zoned.conventional.as_ref()?.program_pages.of("gc"))
        });
        add("zones full at the end", |zoned| zoned.zones.get("full").map(|zones| count(*zones)));
        add("zones reset", |zoned| positive(zoned.resets));
        add("zones closed by the device", |zoned| positive(zoned.implicit_closes));
        add("zones moved off failed blocks", |zoned| positive(zoned.moves));
    }

    fn zoned_volume(&mut self) {
        let mut add = |label: &str, value: fn(&ZonedVolume) -> Option<String>| {
            let of = |run: &RunResult| run.zoned_volume.as_ref().and_then(value);
            self.row_if_any("zoned volume", label, of);
        };
        add("policy", |volume| Some(volume.policy.clone()));
        add("journal", |volume| Some(volume.journal.clone()));
        add("chunks", |volume| Some(count(volume.chunks)));
        add("cache zones", |volume| Some(count(volume.cache_zones)));
        add("pages written / pages of the load", |volume| {
            Some(significant(volume.phys_per_user, 4))
        });
        add("valid pages copied", |volume| positive(volume.valid_copies));
        add("of the journal", |volume| positive(volume.journal_copies));
        add("zones of the journal", |volume| positive(volume.journal_zones));
        add("zero-filled pages", |volume| positive(volume.sent("zero_fill")));
        add("aborted pages", |volume| {
            positive(volume.sent("reclaim_aborted") + volume.sent("zero_fill_aborted"))
        });
        add("reclaims started", |volume| positive(volume.reclaims_total().0));
        add("reclaims aborted", |volume| positive(volume.reclaims_total().1));
        add("sleeps of requests", |volume| {
            positive(volume.waits.values().map(|waits| waits.count).sum())
        });
    }

    /// What each place of a stack was asked to write, and what it wrote for that.
    fn stack(&mut self) {
        let places = self.runs.iter().map(|run| run.stack.len()).max().unwrap_or(0);
        for number in (0..places).rev() {
            let first = self.runs.iter().find_map(|run| run.stack.get(number));
            let label = first.map_or_else(String::new, |place| {
                format!("{} ({}): pages in, out, ratio", place.name, place.kind)
            });
            self.row_if_any("stack", &label, |run| {
                let place = run.stack.get(number)?;
                Some(pages_in_out(place.host.write_pages, place.written_pages))
            });
        }
    }

    /// One row for each cause of pages that a volume sent.
    fn sent_by_cause(&mut self) {
        let names: BTreeSet<String> = self
            .runs
            .iter()
            .filter_map(|run| run.volume.as_ref())
            .flat_map(|volume| volume.sent_pages.iter())
            .filter(|(_, pages)| **pages > 0)
            .map(|(name, _)| name.clone())
            .collect();
        for name in names {
            self.row_if_any("volume", &format!("pages sent, {name}"), |run| {
                run.volume.as_ref()?.sent_pages.get(&name).map(|pages| count(*pages))
            });
        }
    }

    fn buffer(&mut self) {
        let mut add = |label: &str, value: fn(&Buffer) -> Option<String>| {
            self.row_if_any("buffer", label, |run| {
                if run.buffer.accesses() > 0 { value(&run.buffer) } else { None }
            });
        };
        add("buffer policy", |buffer| Some(buffer.policy.clone()));
        add("buffer hit ratio", |buffer| Some(percent(buffer.hit_ratio)));
        add("buffer hit ratio, reads", |buffer| {
            (buffer.read_hits + buffer.read_misses > 0).then(|| percent(buffer.read_hit_ratio))
        });
        add("buffer hit ratio, writes", |buffer| {
            (buffer.write_hits + buffer.write_misses > 0).then(|| percent(buffer.write_hit_ratio))
        });
        add("writes absorbed", |buffer| {
            (buffer.write_hits + buffer.write_misses > 0).then(|| percent(buffer.absorption))
        });
        add("reads of victims", |buffer| positive(buffer.wb_hits));
        add("pages read to pad", |buffer| positive(buffer.pad_reads));
        for name in areas(self.runs) {
            self.row_if_any("buffer", &format!("evictions, {name}"), |run| {
                let area = run.buffer.areas.iter().find(|area| area.name == name)?;
                Some(count(area.evictions))
            });
        }
    }

    fn flash(&mut self) {
        self.row_if_any("flash", "WAF", |run| {
            (run.host.write_pages > 0).then(|| significant(run.waf, 4))
        });
        self.row_if_any("flash", "WAF with remapped pages", |run| {
            let remap = run.remap.as_ref().filter(|_| run.host.remap_pages > 0)?;
            Some(significant(remap.waf_logical, 4))
        });
        for cause in causes(self.runs) {
            self.row("flash", &format!("pages programmed, {cause}"), |run| {
                count(run.flash.program_pages.of(&cause))
            });
        }
        let mut saved = |label: &str, pages: fn(&SavedPages) -> u64| {
            self.row_if_any("flash", label, |run| positive(pages(&run.flash.saved_pages)));
        };
        saved("saved: copies of what was read", |saved| saved.copy_read);
        saved("saved: copies of what was written", |saved| saved.copy_write);
        saved("saved: zeroes", |saved| saved.zero);
        self.row("flash", "pages programmed", |run| count(run.flash.program_pages.total()));
        self.row("flash", "pages read from flash", |run| count(run.flash.read_pages.total()));
        self.row("flash", "erases", |run| count(run.flash.erases));
        let mut add = |label: &str, value: fn(&Faults) -> u64| {
            self.row_if_any("flash", label, |run| {
                run.faults.as_ref().map(value).and_then(positive)
            });
        };
        add("reads and programs failed", |faults| faults.media_failures);
        add("reads retried", |faults| faults.slow_reads);
        add("programs that took longer", |faults| faults.slow_programs);
        add("superblocks relocated", |faults| faults.relocated_superblocks);
        add("dies failed", |faults| faults.failed_dies);
        add("pages lost with a die", |faults| faults.lost_pages);
    }

    fn latency(&mut self, operation: &str, of: fn(&RunResult) -> Option<&LatencySummary>) {
        let group = "latency";
        let mut add = |name: &str, value: fn(&LatencySummary) -> f64| {
            self.row_if_any(group, &format!("{operation} latency {name}"), |run| {
                of(run).filter(|latency| latency.count > 0).map(|latency| duration(value(latency)))
            });
        };
        add("mean", |latency| latency.mean);
        add("p50", |latency| float(latency.p50));
        add("p99", |latency| float(latency.p99));
        add("p99.9", |latency| float(latency.p999));
    }

    fn speed(&mut self) {
        let group = "speed";
        self.row_if_any(group, "IOPS", |run| {
            (run.virtual_ns > 0).then(|| si(per_second(float(run.host.requests()), run)))
        });
        self.row_if_any(group, "read throughput", |run| throughput(run.host.read_pages, run));
        self.row_if_any(group, "write throughput", |run| throughput(run.host.write_pages, run));
        self.row_if_any(group, "bandwidth with remapped pages", |run| {
            (run.host.remap_pages > 0)
                .then(|| format!("{} MB/s", significant(run.bandwidth / 1e6, 3)))
        });
        self.row(group, "virtual time", |run| duration(float(run.virtual_ns)));
        self.row(group, "CPU time", |run| duration(run.cpu_s * 1e9));
        self.row_if_any(group, "page operations per CPU second", |run| {
            (run.cpu_s > 0.0).then(|| si(share(float(run.page_ops), run.cpu_s)))
        });
    }

    fn origin(&mut self) {
        self.row("origin", "seed", |run| run.seed.to_string());
        self.row("origin", "version", version);
    }
}

/// Version and, if known, commit of the program that ran.
pub(crate) fn version(run: &RunResult) -> String {
    let commit: String = run.onefold.commit.chars().take(12).collect();
    let text = format!("{} {commit}", run.onefold.version);
    text.trim().to_owned()
}

/// The causes at least one run programmed pages for, in report order.
pub(crate) fn causes(runs: &[RunResult]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut names: Vec<&str> = Cause::ALL.into_iter().map(Cause::name).collect();
    names.extend(runs.iter().flat_map(|run| run.flash.program_pages.iter().map(|(name, _)| name)));
    for cause in names {
        let programmed = runs.iter().any(|run| run.flash.program_pages.of(cause) > 0);
        if programmed && !found.iter().any(|name| name == cause) {
            found.push(cause.to_owned());
        }
    }
    found
}

/// The areas that some run evicted from, if it has more than one.
fn areas(runs: &[RunResult]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let several = runs.iter().filter(|run| run.buffer.areas.len() > 1);
    for area in several.flat_map(|run| &run.buffer.areas).filter(|area| area.evictions > 0) {
        if !found.contains(&area.name) {
            found.push(area.name.clone());
        }
    }
    found
}

fn positive(value: u64) -> Option<String> {
    (value > 0).then(|| count(value))
}

fn per_second(amount: f64, run: &RunResult) -> f64 {
    share(amount * 1e9, float(run.virtual_ns))
}

/// Host throughput in virtual time; MB are 10^6 bytes.
fn throughput(pages: u64, run: &RunResult) -> Option<String> {
    let rate = per_second(float(pages) * float(PAGE_BYTES), run) / 1e6;
    (pages > 0 && run.virtual_ns > 0).then(|| format!("{} MB/s", significant(rate, 3)))
}
