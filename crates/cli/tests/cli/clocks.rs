//! One model, two clocks: what a served drive programs, the simulator says of its image and of what was recorded.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;

use crate::common::{Folder, Server, message, text};
use onefold_device::mailbox;
use onefold_format::{RemapFlags, VectorRange};
use onefold_serve::nbd::{Client, Endpoint};
use onefold_trace::oft::{self, Encoder, Header};
use onefold_trace::{Record, TraceOp};
use onefold_units::Rng;
use serde_json::Value;

const BLOCK: u64 = 4096;

/// MD5 of a page of zeroes, by which traces know them.
const ZEROES: [u8; 16] = *b"\x62\x0f\x0b\x67\xa9\x1f\x7f\x74\x15\x1b\xc5\xbe\x74\x5b\x71\x10";

/// Superblocks of 256 KiB, so that a small drive has some to choose from.
const DRIVE: [&str; 10] = [
    "--preset",
    "s1",
    "--size",
    "96MiB",
    "--set",
    "geometry.channels=1",
    "--set",
    "geometry.ways=1",
    "--set",
    "geometry.pages=64",
];

fn onefold(arguments: &[&str]) -> Vec<u8> {
    let output = Command::new(env!("CARGO_BIN_EXE_onefold")).args(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", message(&output));
    output.stdout
}

/// A server that tells its counters, and a client of it.
struct Served {
    server: Server,
    client: Client,
    counters: u16,
}

impl Served {
    fn start(noun: &str, image: &Path, socket: &Path, more: &[&str]) -> Self {
        let counters = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let tell = ["--ui", &format!("127.0.0.1:{counters}")];
        let server = Server::start_noun(noun, image, socket, &[&tell, more].concat());
        let client = Client::device(&Endpoint::Unix(socket.to_owned())).unwrap();
        Self { server, client, counters }
    }

    /// Pages that the drive programmed, by cause.
    fn programs(&self) -> Value {
        let mut stream = TcpStream::connect(("127.0.0.1", self.counters)).unwrap();
        stream.write_all(b"GET /api/v1/stats HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        serde_json::from_str::<Value>(body).unwrap()["device"]["nand_written_pages"].take()
    }

    /// Writes at random places, 1 to 4 blocks each, and flushes now and then.
    fn overwrite(&mut self, rng: &mut Rng, writes: u64, flush_every: u64) {
        let blocks = self.client.size() / BLOCK;
        for n in 1..=writes {
            let len = 1 + rng.below(4);
            let at = rng.below(blocks - len) * BLOCK;
            self.client.write(at, &vec![n.to_le_bytes()[0]; bytes(len)], false).unwrap();
            if n % flush_every == 0 {
                self.client.flush().unwrap();
            }
        }
        self.client.flush().unwrap();
    }
}

fn bytes(blocks: u64) -> usize {
    usize::try_from(blocks * BLOCK).unwrap()
}

fn total(programs: &Value) -> f64 {
    programs.as_object().unwrap().values().map(|pages| pages.as_f64().unwrap()).sum()
}

/// What a used drive programmed while it was served, and what the simulator says.
fn both_clocks(noun: &str) -> (Value, Value) {
    let folder = Folder::new(&format!("clocks-{noun}"));
    let (image, socket) = (folder.0.join("disk.img"), folder.0.join("nbd"));
    let (used, trace) = (folder.0.join("used.img"), folder.0.join("trace.oft"));
    onefold(&[&["ssd", "create", text(&image)], &DRIVE[..]].concat());
    if noun == "volume" {
        onefold(&["volume", "create", text(&image), "--segment", "512KiB"]);
    }
    let mut rng = Rng::new(31);
    let mut served = Served::start(noun, &image, &socket, &["--latency", "none"]);
    let mib = served.client.size() / 10 * 8 / (1 << 20);
    for at in (0..mib).map(|part| part << 20) {
        served.client.write(at, &vec![1; 1 << 20], false).unwrap();
    }
    served.overwrite(&mut rng, 10_000, 64);
    drop(served.client);
    assert_eq!(served.server.terminate(), Some(0));
    std::fs::copy(&image, &used).unwrap();

    let mut served =
        Served::start(noun, &image, &socket, &["--latency", "model", "--record", text(&trace)]);
    served.overwrite(&mut rng, 3000, 8);
    let programs = served.programs();
    drop(served.client);
    assert_eq!(served.server.terminate(), Some(0));

    let replay = ["sim", "run", "--image", text(&used), "--trace", text(&trace)];
    let recorded = ["--format", "json"];
    let before = std::fs::read(&used).unwrap();
    let result = onefold(&[&replay[..], &recorded].concat());
    assert!(before == std::fs::read(&used).unwrap(), "the image was changed");
    let mut result: Value = serde_json::from_slice(&result).unwrap();
    assert_eq!(result["volume"].is_null(), noun == "ssd");
    (programs, result["flash"]["program_pages"].take())
}

#[test]
fn a_drive_programs_the_same_pages_in_both_clocks() {
    let (served, simulated) = both_clocks("ssd");
    assert!(served["gc"].as_u64() > Some(0), "{served}");
    assert_eq!(served, simulated);
}

/// A drive that is written, remaps runs of it by copies and moves, and overwrites both sides: the replay of what was recorded
/// counts as much as the server did, whether the server took the time of the model or none.
#[test]
fn remaps_are_recorded_and_count_the_same_in_both_clocks() {
    for latency in ["none", "model"] {
        let folder = Folder::new(&format!("clocks-remap-{latency}"));
        let (image, socket) = (folder.0.join("disk.img"), folder.0.join("nbd"));
        let (fresh, trace) = (folder.0.join("fresh.img"), folder.0.join("trace.oft"));
        let log = ["--set", "ftl.remap=lh", "--set", "ftl.remap_log=64KiB"];
        onefold(&[&["ssd", "create", text(&image)], &DRIVE[..], &log].concat());
        std::fs::copy(&image, &fresh).unwrap();
        let more = ["--latency", latency, "--record", text(&trace)];
        let mut served = Served::start("ssd", &image, &socket, &more);
        let mut rng = Rng::new(7);
        let mut asked = 0;
        let control = Client::control(&Endpoint::Unix(socket.clone())).unwrap();
        let mut mailbox = mailbox::Client::new(control);
        for round in 0..40 {
            served.overwrite(&mut rng, 50, 20);
            let [src, dst] = [rng.below(10_000), rng.below(10_000)];
            let moves = round % 4 == 0;
            if round == 0 {
                // As a user does it. A process for each of them would take most of the time of this test.
                let [src, dst] = [src, dst].map(|page| format!("{}KiB", page * 4));
                let range = ["--copy", &dst, &src, "256KiB", "--move", "--cmd-id", "01"];
                onefold(&[&["ssd", "remap", text(&socket)], &range[..]].concat());
            } else {
                let flag = if moves { RemapFlags::MOVE } else { RemapFlags::COPY };
                let id = moves.then_some(round << 4 | 1);
                mailbox.remap(flag, id, &[VectorRange { dst, src, len: 64 }]).unwrap();
            }
            asked += 64;
        }
        drop(mailbox);
        let programs = served.programs();
        let info = onefold(&["ssd", "info", text(&image), "--format", "json"]);
        let info: Value = serde_json::from_slice(&info).unwrap();
        drop(served.client);
        assert_eq!(served.server.terminate(), Some(0));

        let replay = ["sim", "run", "--image", text(&fresh), "--trace", text(&trace)];
        let result = onefold(&[&replay[..], &["--format", "json"]].concat());
        let result: Value = serde_json::from_slice(&result).unwrap();
        assert_eq!(result["host"]["remap_requests"], 40, "{latency}");
        assert_eq!(result["host"]["remap_pages"], asked, "{latency}");
        assert_eq!(result["flash"]["program_pages"], programs, "{latency}");
        let told = &info["device"]["remap"];
        for (counted, served) in
            [("remapped", "remapped_units"), ("copied", "copied_units"), ("entries", "log_entries")]
        {
            assert_eq!(result["remap"][counted], told[served], "{latency}: {counted} of {told}");
        }
        assert!(told["remapped_units"].as_u64() > Some(1000), "{told}");
    }
}

/// Pages that were programmed by cause, and saved by kind.
fn flash(told: &Value) -> [&Value; 2] {
    [&told["flash"]["program_pages"], &told["flash"]["saved_pages"]]
}

/// A drive that sees copies, under writes of few contents, reads and copies, deduplicates what the simulator says of the same
/// requests with digests of what they wrote.
#[test]
fn copies_and_zeroes_save_the_same_pages_in_both_clocks() {
    for scope in ["reads", "writes", "all"] {
        let folder = Folder::new(&format!("clocks-copies-{scope}"));
        let (image, socket) = (folder.0.join("disk.img"), folder.0.join("nbd"));
        let (fresh, path) = (folder.0.join("fresh.img"), folder.0.join("trace.oft"));
        let scope = format!("dedup.scope={scope}");
        let keys = [
            "ftl.remap=lh",
            &scope,
            "dedup.hash=xxh3",
            "dedup.fingerprints=2000",
            "ftl.zeroes=unmap",
        ];
        let sets: Vec<&str> = keys.iter().flat_map(|key| ["--set", key]).collect();
        let small = [&DRIVE[..3], &["32MiB"], &DRIVE[4..]].concat();
        onefold(&[&["ssd", "create", text(&image)], &small[..], &sets].concat());
        std::fs::copy(&image, &fresh).unwrap();
        let mut served = Served::start("ssd", &image, &socket, &["--latency", "none"]);
        let trace = copying(&mut served.client);
        let info = onefold(&["ssd", "info", text(&image), "--format", "json"]);
        let info: Value = serde_json::from_slice(&info).unwrap();
        drop(served.client);
        assert_eq!(served.server.terminate(), Some(0));

        std::fs::write(&path, trace).unwrap();
        let replay =
            ["sim", "run", "--image", text(&fresh), "--trace", text(&path), "--format", "json"];
        let one_by_one = ["--set", "run.mode=closed", "--set", "run.qd=1"];
        let result = onefold(&[&replay[..], &one_by_one].concat());
        let result: Value = serde_json::from_slice(&result).unwrap();
        assert_eq!(flash(&result), flash(&info["device"]), "{scope}");
        let [programs, saved] = flash(&result);
        assert!(
            saved["zero"].as_u64() > Some(500) && programs["gc"].as_u64() > Some(0),
            "{saved}, {programs}"
        );
        for (kind, asked) in
            [("copy_read", !scope.ends_with("writes")), ("copy_write", !scope.ends_with("reads"))]
        {
            assert_eq!(saved[kind].as_u64() > Some(1000), asked, "{scope}: {kind} of {saved}");
        }
    }
}

/// Sends a load, and tells it as a trace with digests. A page repeats a number, which is its digest. Every other turn copies what
/// it reads.
fn copying(client: &mut Client) -> Vec<u8> {
    let header = Header {
        flags: oft::FLAG_DIGESTS,
        epoch_unix_ns: 0,
        device_bytes: client.size(),
        device_uuid: [0; 16],
        lba_bytes: 4096,
    };
    let mut encoder = Encoder::new(header);
    let mut bytes = encoder.header().to_vec();
    let mut rng = Rng::new(37);
    let blocks = client.size() / BLOCK;
    let mut ask = |client: &mut Client, op: TraceOp, block: u64, page: &mut [u8; 4096]| {
        let mut record = Record::new(0, op, block * BLOCK, BLOCK);
        if op == TraceOp::Read {
            client.read(block * BLOCK, page).unwrap();
        } else {
            client.write(block * BLOCK, page, false).unwrap();
            let digest = if *page == [0; 4096] { ZEROES } else { page[..16].try_into().unwrap() };
            record.digests = Some(Box::new([digest]));
        }
        encoder.push(&record, &mut bytes);
    };
    for turn in 0..30_000_u64 {
        let mut page = [0; 4096];
        if turn % 2 == 0 {
            let content = if rng.below(40) == 0 { 0 } else { 1 + rng.below(8000) };
            page.chunks_mut(8).for_each(|word| word.copy_from_slice(&content.to_le_bytes()));
            ask(client, TraceOp::Write, rng.below(blocks), &mut page);
        } else {
            ask(client, TraceOp::Read, rng.below(blocks), &mut page);
            ask(client, TraceOp::Write, rng.below(blocks), &mut page);
        }
    }
    encoder.finish(&mut bytes);
    bytes
}

/// When a batch leaves depends on time, so a few differ: 1 % here, and more where the machine that serves is busy.
#[test]
fn a_volume_programs_as_much_in_both_clocks() {
    let (served, simulated) = both_clocks("volume");
    let ratio = total(&simulated) / total(&served);
    assert!((0.95..1.05).contains(&ratio), "served {served}, simulated {simulated}");
}

#[test]
fn what_is_of_the_image_cannot_be_set() {
    let folder = Folder::new("clocks-fixed");
    let image = folder.image();
    let run = ["sim", "run", "--image", text(&image), "--workload", "randwrite,requests=10"];
    for (set, said) in [
        (["--set", "ftl.victim=fifo"], "ftl.victim cannot change on a device that exists"),
        (["--preset", "tlc"], "cannot be used with"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_onefold"))
            .args([&run[..], &set].concat())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", message(&output));
        assert!(message(&output).contains(said), "{}", message(&output));
    }
    let zoned = folder.zoned_image("128MiB");
    let output = Command::new(env!("CARGO_BIN_EXE_onefold"))
        .args(["sim", "run", "--image", text(&zoned), "--workload", "write,requests=10"])
        .output()
        .unwrap();
    assert!(
        message(&output).contains("has zones, expected an SSD without"),
        "{}",
        message(&output)
    );
    onefold(&["volume", "create", text(&image), "--segment", "256KiB", "--compress", "lz4"]);
    let output = Command::new(env!("CARGO_BIN_EXE_onefold")).args(run).output().unwrap();
    assert!(message(&output).contains("the volume compresses"), "{}", message(&output));
}

/// A drive that was aged when it was made goes on as a simulated one that was preconditioned alike.
#[test]
fn an_aged_drive_is_a_preconditioned_one() {
    let folder = Folder::new("clocks-aged");
    let image = folder.0.join("aged.img");
    let create = ["ssd", "create", text(&image), "--age", "fill=0.8,overwrite=100%"];
    let output = Command::new(env!("CARGO_BIN_EXE_onefold"))
        .args([&create, &DRIVE[..]].concat())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", message(&output));
    let said = message(&output);
    assert!(said.contains("80 % written, and overwritten 1 times at random"), "{said}");

    let load = ["--workload", "randwrite,bs=4KiB,requests=20k,range=80%", "--format", "json"];
    let aged = onefold(&[&["sim", "run", "--image", text(&image)][..], &load].concat());
    let aged: Value = serde_json::from_slice(&aged).unwrap();
    let of_image = |section: &str, key: &str| {
        let value = &aged["config"][section][key];
        format!(
            "{section}.{key}={}",
            value.as_str().map_or_else(|| value.to_string(), str::to_owned)
        )
    };
    let sets = [
        "geometry.channels=1".to_owned(),
        "geometry.ways=1".to_owned(),
        "geometry.pages=64".to_owned(),
        of_image("geometry", "blocks"),
        of_image("capacity", "logical"),
        "precondition.range=0.8".to_owned(),
        "precondition.overwrite=1".to_owned(),
    ];
    let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
    let fresh = ["sim", "run", "--preset", "s1"];
    let fresh = onefold(&[&fresh[..], &sets, &load].concat());
    let fresh: Value = serde_json::from_slice(&fresh).unwrap();
    let programs = |result: &Value| result["flash"]["program_pages"].clone();
    // What was open when the image was closed is not gone on with.
    let ratio = total(&programs(&aged)) / total(&programs(&fresh));
    assert!((0.97..1.03).contains(&ratio), "{aged} and {fresh}");
    assert!(programs(&aged)["gc"].as_u64() > Some(10_000));
}

/// `--size` makes the same drive in both clocks; a short trace is replayed again.
#[test]
fn a_size_and_passes_over_a_trace() {
    let folder = Folder::new("clocks-size");
    let image = folder.0.join("disk.img");
    let drive = ["--preset", "s1", "--size", "64MiB"];
    onefold(&[&["ssd", "create", text(&image)], &drive[..]].concat());
    let load = ["--workload", "randwrite,requests=100", "--format", "json"];
    let result = |arguments: &[&str]| -> Value {
        serde_json::from_slice(&onefold(&[&["sim", "run"], arguments].concat())).unwrap()
    };
    let served = result(&[&["--image", text(&image)], &load[..]].concat());
    let simulated = result(&[&drive, &load[..]].concat());
    assert_eq!(simulated["device"]["logical_bytes"], 64 << 20);
    assert_eq!(served["config"]["geometry"], simulated["config"]["geometry"]);

    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/rec-ext4-postmark.oft.zst");
    let replay = ["--preset", "s1", "--trace", trace, "--fit", "compact", "--format", "json"];
    let (once, thrice) = (result(&replay), result(&[&replay[..], &["--repeat", "3"]].concat()));
    assert_eq!((&once["trace"]["passes"], &thrice["trace"]["passes"]), (&1.into(), &3.into()));
    let steady = result(&[&replay[..], &["--repeat", "until-steady"]].concat());
    assert!(steady["trace"]["passes"].as_u64() > Some(2));
    let refused = Command::new(env!("CARGO_BIN_EXE_onefold"))
        .args(["sim", "run", "--trace", trace, "--repeat", "0"])
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2), "{}", message(&refused));
}
