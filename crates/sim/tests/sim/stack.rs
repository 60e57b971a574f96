//! Stacks of layers that nobody wrote by hand, from their configuration to their result.

use std::fs;
use std::path::PathBuf;

use crate::common::{sets, setup, workload};
use onefold_config::{Config, ConfigError, Sources};
use onefold_sim::result::{RunResult, StackPlace};
use onefold_sim::{Control, Setup, SimError, simulate};
use tempfile::TempDir;

/// A configuration from its text, as a file.
fn load(text: &str, more: &[&str]) -> Result<Config, ConfigError> {
    let dir = TempDir::new().expect("a folder for a test");
    let file = PathBuf::from(dir.path()).join("stack.toml");
    fs::write(&file, text).expect("a file for a test");
    Config::load(&Sources { file: Some(file), sets: &sets(more), ..Sources::default() })
}

fn stack_of(text: &str, load_text: &str) -> Setup {
    let config = load(text, &[]).unwrap_or_else(|error| panic!("{error}"));
    let load = workload(load_text);
    Setup { config: config.with_load(&load), ..setup("s1", &[], &load) }
}

fn run(setup: &Setup) -> RunResult {
    simulate(setup, &Control::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// 240 log segments of 1 MiB on one channel of `s1`.
const SMALL: &str = r#"
[[stack]]
name = "flash"
kind = "ssd"
geometry = { channels = 1, ways = 1, blocks = 280 }
capacity.logical = "240MiB"
"#;

const ZONES: &str = r#"
[[stack]]
name = "zones"
kind = "zns"
extends = "preset:choi2022"
geometry = { pages = 64, blocks = 257 }
namespace.zone_size = "16MiB"
"#;

fn place<'a>(result: &'a RunResult, name: &str) -> &'a StackPlace {
    let found = result.stack.iter().find(|place| place.name == name);
    found.unwrap_or_else(|| panic!("{name} is in {:?}", result.stack))
}

/// Each place is asked for what the one above says that it sent.
fn check_joints(result: &RunResult) {
    for upper in result.stack.iter().filter(|place| !place.on.is_empty()) {
        let below: u64 = upper.on.iter().map(|name| place(result, name).host.write_pages).sum();
        assert_eq!(upper.written_pages, below, "{} on {:?}", upper.name, upper.on);
    }
}

/// A result without the configuration, and without times of this machine.
fn without_names(result: RunResult) -> RunResult {
    let device = onefold_sim::result::Device { name: String::new(), ..result.device };
    RunResult {
        config: serde_json::Value::Null,
        config_sha256: String::new(),
        cpu_s: 0.0,
        precondition: None,
        device,
        ..result
    }
}

/// A stack that has a short name gives the result of that name, to the last digit.
#[test]
fn a_volume_on_a_drive_is_the_same_by_either_name() {
    let load =
        "mix,bs=4KiB:4/12KiB:1/2KiB:1,align=2KiB,qd=16,requests=4k,trim_share=0.05,flush_every=50";
    let text = format!(
        "[precondition]\nfill = 1\n{SMALL}[[stack]]\nname = \"data\"\nkind = \"log\"\non = \"flash\"\n"
    );
    let by_stack = run(&stack_of(&text, load));
    let names = [
        "geometry.channels=1",
        "geometry.ways=1",
        "geometry.blocks=280",
        "capacity.logical=240MiB",
        "precondition.fill=1",
        "volume.mode=log",
    ];
    let by_name = run(&setup("s1", &sets(&names), &workload(load)));
    assert_eq!(without_names(by_stack), without_names(by_name));
}

/// As above, with requests that wait for the cache.
#[test]
fn a_zoned_volume_is_the_same_by_either_name() {
    let load = "mix,bs=4KiB:4/12KiB:1,qd=64,requests=4k,trim_share=0.05,flush_every=100,range=1GiB";
    let text = format!(
        "[precondition]\nfill = 0.1\n[[stack]]\nname = \"cache\"\nextends = \"preset:choi2022-regular\"\n{ZONES}
[[stack]]
name = \"placed\"
kind = \"dmz\"
on = [\"cache\", \"zones\"]
zoned.regular_depth = 4
"
    );
    let by_stack = run(&stack_of(&text, load));
    let names = [
        "geometry.pages=64",
        "geometry.blocks=257",
        "namespace.zone_size=16MiB",
        "zoned.regular_depth=4",
        "precondition.fill=0.1",
    ];
    let by_name = run(&setup("choi2022", &sets(&names), &workload(load)));
    assert_eq!(without_names(by_stack), without_names(by_name));
}

#[test]
fn a_volume_on_a_zoned_volume_on_a_drive_with_a_buffer_that_remaps_and_zones() {
    let text = format!(
        "[precondition]\nfill = 0.3\n{}ftl.remap = \"lh\"\nbuffer = {{ size = \"4MiB\", policy = \"lru\" }}\n{ZONES}
[[stack]]
name = \"placed\"
kind = \"dmz\"
on = [\"cache\", \"zones\"]

[[stack]]
name = \"data\"
kind = \"log\"
on = \"placed\"
volume.op = 0.3
",
        SMALL.replace("\"flash\"", "\"cache\"")
    );
    let result = run(&stack_of(&text, "randwrite,bs=4KiB,qd=16,requests=10k,flush_every=100"));
    check_joints(&result);
    let names: Vec<_> = result.stack.iter().map(|place| place.name.as_str()).collect();
    assert_eq!(names, ["cache", "zones", "placed", "data"]);
    assert_eq!(place(&result, "data").host.write_pages, result.host.write_pages);
    assert!(place(&result, "zones").host.write_pages > 0, "{:?}", result.stack);
    // Random writes beyond the cache cost a zoned volume three times as much: the log is sequential.
    let placed = place(&result, "placed");
    assert!(placed.write_ratio < 1.5, "{placed:?}");
    assert!(result.volume.is_some() && result.zoned_volume.is_some());
}

#[test]
fn a_volume_on_a_volume() {
    let text = format!(
        "[precondition]\nfill = 1\n{SMALL}
[[stack]]
name = \"lower\"
kind = \"log\"
on = \"flash\"

[[stack]]
name = \"upper\"
kind = \"log\"
on = \"lower\"
volume.op = 0.2
"
    );
    let load =
        "mix,bs=4KiB:3/8KiB:1/2KiB:1,align=2KiB,qd=16,requests=20k,trim_share=0.05,flush_every=200";
    let setup = stack_of(&text, load);
    let result = run(&setup);
    check_joints(&result);
    let again = run(&setup);
    assert_eq!(result.stack, again.stack);
    assert_eq!(result.latency_ns, again.latency_ns);
    // Both clean; what the upper one trims the lower one need not copy.
    assert!(place(&result, "upper").write_ratio > 1.0, "{:?}", result.stack);
    assert!(place(&result, "lower").write_ratio > 1.0, "{:?}", result.stack);
    assert!(place(&result, "lower").host.trim_pages > 0);
}

#[test]
fn a_zoned_volume_whose_cache_is_a_volume() {
    let text = format!(
        "{SMALL}
[[stack]]
name = \"cache\"
kind = \"log\"
on = \"flash\"
volume.op = 0.3
{ZONES}
[[stack]]
name = \"placed\"
kind = \"dmz\"
on = [\"cache\", \"zones\"]
"
    );
    let result = run(&stack_of(&text, "randwrite,bs=4KiB,qd=4,requests=3k,range=512MiB"));
    check_joints(&result);
    assert!(place(&result, "cache").host.write_pages > 0);
    assert!(place(&result, "cache").host.read_pages > 0, "reclaim reads through the volume");
}

/// Configurations that say what a stack cannot be are refused with the place and the reason.
#[test]
fn what_does_not_fit_is_named() {
    let layer = |more: &str| format!("{SMALL}[[stack]]\nname = \"data\"\n{more}");
    let cases = [
        (layer("kind = \"log\""), "`data` needs `on`"),
        (layer("kind = \"log\"\non = \"flsh\""), "is it `flash`?"),
        (layer("kind = \"dmz\"\non = \"flash\""), "`data` lies on a place for random writes"),
        (
            layer("kind = \"log\"\non = \"flash\"\nftl.victim = \"fifo\""),
            "log has nothing to say about ftl.victim",
        ),
        (layer("kind = \"log\"\non = \"flash\"\nextends = \"preset:s1\""), "only a device extends"),
        (
            layer("kind = \"log\"\non = \"flash\"\nvolume.clean_move = \"remap\""),
            "the place below cannot",
        ),
        (layer("kind = \"tape\"\non = \"flash\""), "stack.kind is \"tape\""),
        (layer("on = \"flash\""), "`data` is a device, which lies on nothing"),
        ("[[stack]]\nkind = \"ssd\"".to_owned(), "needs a name"),
        (SMALL.to_owned(), "is a device alone"),
        (format!("{SMALL}{}", SMALL.replace("flash", "other")), "no place lies on it"),
        (
            layer("kind = \"log\"\non = [\"flash\", \"flash\"]"),
            "lies on `flash`, as another place does",
        ),
        (
            format!("ftl.victim = \"fifo\"\n{}", layer("kind = \"log\"\non = \"flash\"")),
            "belongs to a place",
        ),
        (
            format!(
                "precondition.overwrite = 1\n{SMALL}{ZONES}[[stack]]\nname = \"data\"\nkind = \"dmz\"\non = [\"flash\", \"zones\"]"
            ),
            "is only filled before a run",
        ),
        (
            "[[stack]]\nname = \"flash\"\nextends = \"stack.toml\"".to_owned(),
            "extends a file that has [[stack]] itself",
        ),
        ("stack = 3".to_owned(), "`stack` is not a configuration key"),
    ];
    for (text, expected) in cases {
        let error = load(&text, &[]).expect_err(&text).to_string();
        assert!(error.contains(expected), "{error}\nexpected: {expected}\n{text}");
    }
}

#[test]
fn places_are_set_by_their_names_and_read_back() -> Result<(), Box<dyn std::error::Error>> {
    let text = format!("{SMALL}[[stack]]\nname = \"data\"\nkind = \"log\"\non = \"flash\"\n");
    let config = load(&text, &["stack.data.volume.op=0.4", "stack.flash.buffer.size=1MiB"])?;
    let canonical = config.to_toml();
    assert!(canonical.contains("volume.op = 0.4") && canonical.contains("buffer.size = \"1MiB\""));
    assert_eq!(Config::from_canonical(&canonical)?, config);
    assert_ne!(config.sha256(), load(&text, &[])?.sha256());
    let larger = load(&text, &[])?.host_bytes()?;
    assert!(config.host_bytes()? < larger);
    assert!(config.ssd(0).expect_err("no single device").to_string().contains("[[stack]]"));
    Ok(())
}

/// A load that leaves the whole blocks which a zoned volume takes.
#[test]
fn a_request_that_the_top_cannot_take_is_an_error() {
    let text = format!(
        "{}{ZONES}[[stack]]\nname = \"placed\"\nkind = \"dmz\"\non = [\"cache\", \"zones\"]\n",
        SMALL.replace("\"flash\"", "\"cache\"")
    );
    let setup = stack_of(&text, "randwrite,bs=2KiB,align=2KiB,qd=1,requests=10");
    let error = simulate(&setup, &Control::default()).map(|_| ()).expect_err("2 KiB");
    assert!(matches!(error, SimError::ZoneAlignment { .. }), "{error}");
}
