//! `onefold volume info`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use onefold_modes::open_read_only;
use onefold_units::PAGE_BYTES;
use onefold_units::convert::float;
use onefold_volume::{Geometry, Options, Volume, read_label};
use serde_json::{Value, json};

use super::{dmz, faulty, journals, scrub};
use crate::cmd::control;
use crate::cmd::ssd::{render, room};
use crate::cmd::written;
use crate::error::CliError;
use crate::output::{Format, Global};

/// Options of `onefold volume info`.
#[derive(Debug, Args)]
pub(crate) struct Info {
    /// What the volume lies on
    #[arg(value_name = "PATH")]
    path: PathBuf,
    #[command(flatten)]
    cache: dmz::Cache,
    /// Unix socket of its server [default: PATH.sock]
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
}

impl Info {
    pub(super) fn run(&self, global: &Global) -> Result<ExitCode, CliError> {
        let socket = super::server_of(&self.path, self.control.as_deref());
        let served = socket.is_some();
        let (mut info, described) = match (socket, self.cache.path()) {
            (Some(socket), _) => self.served(&socket)?,
            (None, cache) if cache.is_some() || dmz::is_alone(&self.path, global)? => {
                dmz::info(&self.path, cache, global)?
            }
            (None, _) => self.at_rest(global)?,
        };
        let files = [Some(self.path.as_path()), self.cache.path()];
        let files = files.into_iter().flatten();
        info["host"] = files.clone().filter_map(room::describe).collect();
        let shortages: String = files.filter_map(room::warning).collect();
        let state = match (served, info["closed"] == true) {
            _ if info["mode"] == "dmz" => dmz::state(&info),
            (true, _) => live(&info["live"]),
            (_, true) => "closed".to_owned(),
            _ => format!("not closed: {} batches to replay", info["batches_to_replay"]),
        };
        let word = |key: &str| info[key].as_str().unwrap_or_default().to_owned();
        let text = match global.format() {
            Format::Json => format!("{info:#}\n"),
            Format::Table => {
                format!("{shortages}volume {} {}\n{described}{state}\n", word("uuid"), word("name"))
            }
        };
        global.emit(&text)?;
        Ok(ExitCode::SUCCESS)
    }

    /// What the server says, and how that reads.
    fn served(&self, server: &Path) -> Result<(Value, String), CliError> {
        let mut info = control::ask(server, "stats")?;
        info["schema"] = "onefold.volume.info/1".into();
        info["path"] = self.path.display().to_string().into();
        info["served"] = true.into();
        let described = match info["mode"].as_str() {
            Some("log") => {
                table(&info) + &journals::lines(&info["content"]) + &set(&info["journal"])
            }
            Some("dmz") => dmz::table(&info),
            _ => String::new(),
        };
        Ok((info, described))
    }

    fn at_rest(&self, global: &Global) -> Result<(Value, String), CliError> {
        let below = super::open_backing(&self.path, false, global)?;
        let mut backing = below.clone();
        let blocks = backing.blocks();
        let label = read_label(&mut backing, blocks)?;
        let (mut volume, recovery, _) = open_read_only(&mut backing, blocks, Options::default())?;
        let (mut info, described) = match (volume.as_log(), volume.downcast_ref()) {
            (Some(log), _) => {
                let info = Self::log(log);
                let described = table(&info);
                (info, described)
            }
            (_, Some(partitioned)) => super::modes::info(partitioned),
            (None, None) => (json!({}), String::new()),
        };
        let content = journals::of_volume(volume.as_mut(), &mut backing);
        let described = described + &journals::table(&content);
        info["content"] = journals::as_json(&content);
        info["path"] = self.path.display().to_string().into();
        info["served"] = false.into();
        info["uuid"] = render::uuid(&label.uuid).into();
        info["name"] = label.name.as_str().into();
        info["mode"] = label.mode.name().into();
        info["closed"] = recovery.clean.into();
        info["batches_to_replay"] = recovery.batches.into();
        Ok((info, described))
    }

    fn log(volume: &Volume) -> Value {
        let (geometry, layout) = (volume.layout().geometry(), volume.layout());
        let bytes = |blocks: u64| blocks * PAGE_BYTES;
        let (members, usage): (Vec<_>, _) = (volume.members().collect(), volume.usage());
        json!({
            "schema": "onefold.volume.info/1",
            "logical_bytes": bytes(geometry.logical_blocks),
            "backing_bytes": bytes(geometry.writable_blocks()),
            "log_bytes": bytes(layout.log_blocks()),
            "segment_bytes": bytes(geometry.segment_blocks.into()),
            "unit_bytes": bytes(geometry.unit_blocks.into()),
            "compress": compress(geometry),
            "segments": layout.usable_segments(),
            "free_segments": volume.free_segments(),
            "live_bytes": bytes(volume.live_blocks()),
            "data_bytes": bytes(usage.data_blocks),
            "capacity_bytes": bytes(usage.capacity_blocks),
            "thin": layout.is_thin(),
            "faulty": faulty::as_json(volume.faulty()),
            "members": super::members::describe(&members),
            "utilisation": float(volume.live_blocks()) / float(layout.log_blocks()),
        })
    }
}

/// How a volume compresses, as `volume create --compress` takes it.
pub(super) const fn compress(geometry: &Geometry) -> &'static str {
    match geometry.compress {
        Some(codec) => codec.name(),
        None => "off",
    }
}

fn table(info: &Value) -> String {
    let size = |key: &str| render::size(info[key].as_u64().unwrap_or(0));
    let number = |key: &str| info[key].as_u64().unwrap_or(0);
    let thin = if info["thin"] == true {
        format!("thin: {} of data in {}\n", size("data_bytes"), size("capacity_bytes"))
    } else {
        String::new()
    };
    format!(
        "exports {} on {} ({} of log), unit {}{}\n\
         {} log segments of {}, {} free; {} live, {:.1} % of the log; {} snapshots and clones\n{thin}{}",
        size("logical_bytes"),
        size("backing_bytes"),
        size("log_bytes"),
        size("unit_bytes"),
        info["compress"]
            .as_str()
            .filter(|how| *how != "off")
            .map_or(String::new(), |how| format!(", compressed by {how}")),
        number("segments"),
        size("segment_bytes"),
        number("free_segments"),
        size("live_bytes"),
        100.0 * info["utilisation"].as_f64().unwrap_or(0.0),
        info["members"].as_array().map_or(0, Vec::len),
        faulty::line(&info["faulty"]),
    )
}

/// The journal set of a served volume, if it looks for journals.
fn set(set: &Value) -> String {
    if !set.is_object() {
        return String::new();
    }
    format!(
        "journal set: {} log segments, {} copied, given up {} times\n",
        set["segments"],
        render::size(set["copied_bytes"].as_u64().unwrap_or(0)),
        set["demotions"],
    )
}

/// What a served volume counts.
fn live(live: &Value) -> String {
    let size = |value: &Value| render::size(value.as_u64().unwrap_or(0));
    let (recovery, checkpoint, stalls) = (&live["recovery"], &live["checkpoint"], &live["stalls"]);
    let sent = live["sent_bytes"].as_object();
    let causes: Vec<String> = sent
        .into_iter()
        .flatten()
        .map(|(cause, bytes)| format!("{cause} {}", size(bytes)))
        .collect();
    let waf = live["waf_host"].as_f64().map_or_else(|| "-".to_owned(), |waf| format!("{waf:.3}"));
    let opened = if recovery["closed"] == true {
        "was closed".to_owned()
    } else {
        format!(
            "recovered {} batches in {:.0} ms",
            recovery["batches"],
            recovery["ms"].as_f64().unwrap_or(0.0)
        )
    };
    let flash =
        written::flash(&live["written"]).map_or_else(String::new, |line| format!("\n{line}"));
    let frozen = live["frozen"].as_str().map_or_else(String::new, |why| {
        format!("\nTAKES NO MORE CHANGES: {why}; check it when it is not served")
    });
    let refuses = live["refuses_changes"].as_str().map_or_else(String::new, |why| {
        format!("\nREFUSES CHANGES NOW: {why}; it goes on by itself")
    });
    let scrub = match live["scrub"]["state"].as_str() {
        None | Some("never") => String::new(),
        Some(_) => format!("\n{}", scrub::line(&live["scrub"])),
    };
    format!(
        "served now, by {}; {opened}\n\
         {} written, {} read; sent per byte written {waf} ({}){flash}\n\
         {} not flushed yet, last flush {:.1} ms; {} checkpoints, {} of log since the last\n\
         memory of the map {}, of the server {}\n\
         {} calls waited, {:.1} ms at most; {} checksum errors, {} failed requests to the backing{scrub}{refuses}{frozen}",
        live["io"].as_str().unwrap_or_default(),
        size(&live["written_bytes"]),
        size(&live["read_bytes"]),
        causes.join(", "),
        size(&live["unflushed_bytes"]),
        live["flush_ms"].as_f64().unwrap_or(0.0),
        checkpoint["taken"],
        size(&checkpoint["log_since_bytes"]),
        size(&live["memory"]["map_bytes"]),
        size(&live["memory"]["process_bytes"]),
        stalls["count"],
        stalls["longest_ms"].as_f64().unwrap_or(0.0),
        live["crc_errors"],
        live["failed_requests"],
    )
}
