//! Journals of file systems on served volumes on zones: found, placed and shown; and what was promised is there after a SIGKILL.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

use crate::common::{Folder, Server, message, text};
use onefold_serve::nbd::{Client, Endpoint};
use serde_json::{Value, json};

const BLOCK: u64 = 4096;
/// Blocks of a zone.
const ZONE: u64 = 1024;
/// Blocks of a write.
const PIECE: u64 = 32;

fn volume(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_onefold")).arg("volume").args(arguments).output().unwrap()
}

/// What a command says that has to end well.
fn says(arguments: &[&str]) -> Value {
    let output = volume(&[arguments, &["--format", "json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", message(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// An ext4 of which nothing is there but what leads to its journal: blocks `first` to `end`, the header being the first one.
#[derive(Clone, Copy)]
struct Ext4 {
    first: u64,
    end: u64,
}

impl Ext4 {
    /// The first block of the file system: its header with the backup of the journal's inode.
    fn header(self, blocks: u64) -> Vec<u8> {
        let mut block = vec![0; 4096];
        let mut put =
            |at: usize, bytes: &[u8]| block[1024 + at..][..bytes.len()].copy_from_slice(bytes);
        let len = self.end - self.first;
        let fields = [(0x04, blocks), (0x18, 2), (0x5C, 0x4), (0xE0, 8), (0x14C, len * BLOCK)];
        for (at, value) in fields {
            put(at, &u32::try_from(value).unwrap().to_le_bytes());
        }
        put(0x38, &0xEF53_u16.to_le_bytes());
        put(0xFD, &[1]);
        // One extent.
        put(0x10C, &[0x0A, 0xF3, 1, 0, 4, 0]);
        put(0x10C + 16, &u16::try_from(len).unwrap().to_le_bytes());
        put(0x10C + 20, &u32::try_from(self.first).unwrap().to_le_bytes());
        block
    }

    /// The header of the journal, which is in use.
    fn journal_header(self) -> Vec<u8> {
        let mut block = vec![0; 4096];
        let len = u32::try_from(self.end - self.first).unwrap();
        let fields = [(0, 0xC03B_3998), (4, 4), (0xC, 4096), (0x10, len), (0x14, 1), (0x1C, 1)];
        for (at, value) in fields {
            block[at..at + 4].copy_from_slice(&value.to_be_bytes());
        }
        block
    }
}

/// A volume on an image with zones of 4 MiB.
struct Made {
    folder: Folder,
    image: PathBuf,
    cache: Option<PathBuf>,
    served: u32,
}

impl Made {
    fn image(name: &str, size: &str) -> Self {
        let folder = Folder::new(name);
        let image = folder.zoned_image(size);
        Self { folder, image, cache: None, served: 0 }
    }

    /// Policy dmz: 8 cache zones and 31 sequential ones.
    fn dmz(name: &str) -> Self {
        let mut made = Self::image(name, "128MiB");
        let cache = made.folder.0.join("cache.img");
        let create = ["create", text(&made.image), "--zoned", "dmz", "--cache", text(&cache)];
        says(&[&create[..], &["--cache-size", "40MiB"]].concat());
        made.cache = Some(cache);
        made
    }

    /// Policy log on 40 zones.
    fn log(name: &str) -> Self {
        let made = Self::image(name, "160MiB");
        let label = says(&["create", text(&made.image), "--zoned", "log", "--op", "0.4"]);
        assert_eq!(label["segment_bytes"], ZONE * BLOCK);
        made
    }

    /// A verb on it, with what every command on it needs.
    fn says(&self, verb: &str, more: &[&str]) -> Value {
        let mut arguments = vec![verb, text(&self.image)];
        if let Some(cache) = &self.cache {
            arguments.extend(["--cache", text(cache)]);
        }
        says(&[&arguments, more].concat())
    }

    /// `info` for people.
    fn shows(&self) -> String {
        let output = volume(&["info", text(&self.image)]);
        assert_eq!(output.status.code(), Some(0), "{}", message(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn serve(&mut self, journal: &[&str]) -> (Server, Client) {
        self.served += 1;
        let socket = self.folder.0.join(format!("nbd{}", self.served));
        let mut more = journal.to_vec();
        if let Some(cache) = &self.cache {
            more.extend(["--cache", text(cache)]);
        }
        let server = Server::start_noun("volume", &self.image, &socket, &more);
        (server, Client::device(&Endpoint::Unix(socket)).unwrap())
    }

    /// Waits until `info` says so: a device is read a second after it was written to.
    fn wait(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..600 {
            let info = says(&["info", text(&self.image)]);
            if is_so(&info) {
                return info;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("{what}: {:#}", says(&["info", text(&self.image)]));
    }

    fn is_clean(&self) {
        let check = self.says("check", &["--data"]);
        assert_eq!((&check["found"], &check["closed"]), (&0.into(), &true.into()), "{check:#}");
        assert!(check["checked_blocks"].as_u64() > Some(0));
    }
}

/// Versions of blocks: the last one that is durable, and the last one that was written.
struct Model(Vec<(u8, u8)>);

impl Model {
    fn new(blocks: u64) -> Self {
        Self(vec![(0, 0); usize::try_from(blocks).unwrap()])
    }

    fn content(block: u64, version: u8) -> Vec<u8> {
        if version == 0 {
            vec![0; 4096]
        } else {
            (u64::from(version) << 32 | block).to_le_bytes().repeat(512)
        }
    }

    /// Writes the next version of some blocks, every eighth piece of them with FUA.
    fn write(&mut self, client: &mut Client, blocks: std::ops::Range<u64>) {
        for first in blocks.clone().step_by(usize::try_from(PIECE).unwrap()) {
            let (mut bytes, fua) = (Vec::new(), (first - blocks.start) / PIECE % 8 == 7);
            for block in first..(first + PIECE).min(blocks.end) {
                let (durable, issued) = &mut self.0[usize::try_from(block).unwrap()];
                *issued += 1;
                bytes.extend(Self::content(block, *issued));
                if fua {
                    *durable = *issued;
                }
            }
            client.write(first * BLOCK, &bytes, fua).unwrap();
        }
    }

    fn flush(&mut self, client: &mut Client) {
        client.flush().unwrap();
        for (durable, issued) in &mut self.0 {
            *durable = *issued;
        }
    }

    /// Every block is as durable as it was said to be; what is there counts from now on.
    fn verify(&mut self, client: &mut Client, blocks: std::ops::Range<u64>) {
        for block in blocks {
            let mut found = vec![0xEE; 4096];
            client.read(block * BLOCK, &mut found).unwrap();
            let (durable, issued) = &mut self.0[usize::try_from(block).unwrap()];
            let version =
                (*durable..=*issued).find(|version| found == Self::content(block, *version));
            assert!(
                version.is_some(),
                "block {block}: version {durable} to {issued}, found {:?}",
                &found[..8]
            );
            (*durable, *issued) = (version.unwrap(), version.unwrap());
        }
    }
}

/// A file system is made on a served volume and used; the server is killed, and everything is there that has to be. `look` sees
/// what `info` says, and how that reads, before the kill and after the next opening.
fn lives(
    made: &mut Made,
    journal: &[&str],
    ext4: Ext4,
    is_found: bool,
    look: impl Fn(&Value, &str),
) {
    let blocks = 12 * ZONE;
    let ring = ext4.first + 1..ext4.end;
    let mut model = Model::new(blocks);
    let (server, mut client) = made.serve(journal);
    client.write(0, &ext4.header(client.size() / BLOCK), true).unwrap();
    client.write(ext4.first * BLOCK, &ext4.journal_header(), true).unwrap();
    let ranges = |info: &Value| info["content"]["ranges"].as_array().map_or(0, Vec::len);
    if is_found {
        let info = made.wait("a journal", |info| ranges(info) == 2);
        let (log, hot) = (&info["content"]["ranges"][0], &info["content"]["ranges"][1]);
        assert_eq!((&log["class"], &log["first_block"]), (&"jlog".into(), &ring.start.into()));
        assert_eq!(
            (&log["blocks"], &log["system"]),
            (&(ring.end - ring.start).into(), &"ext4".into())
        );
        assert_eq!((&hot["class"], &hot["first_block"]), (&"jhot".into(), &ext4.first.into()));
    }
    model.write(&mut client, ring.clone());
    client.write(ext4.first * BLOCK, &ext4.journal_header(), true).unwrap();
    model.write(&mut client, 10 * ZONE..11 * ZONE);
    // The second lap is cut off.
    let half = ring.start + (ring.end - ring.start) / 2;
    model.write(&mut client, ring.start..half);
    model.flush(&mut client);
    model.write(&mut client, half..half + 3 * PIECE);
    look(&says(&["info", text(&made.image)]), &made.shows());
    drop(client);
    // SIGKILL.
    drop(server);
    let check = made.says("check", &["--data"]);
    assert_eq!(check["found"], 0, "{check:#}");

    let (server, mut client) = made.serve(journal);
    let mut header = vec![0xEE; 4096];
    client.read(ext4.first * BLOCK, &mut header).unwrap();
    assert_eq!(header, ext4.journal_header());
    model.verify(&mut client, ring.clone());
    model.verify(&mut client, 10 * ZONE..11 * ZONE);
    if is_found {
        made.wait("the journal", |info| ranges(info) == 2);
    }
    // What was not flushed may be lost, and is written again.
    model.write(&mut client, half..ring.end);
    model.write(&mut client, ring.start..half);
    look(&says(&["info", text(&made.image)]), &made.shows());
    drop(client);
    assert_eq!(server.terminate(), Some(0));
    made.is_clean();
    let found = made.says("journals", &[]);
    assert_eq!(found["ranges"][0]["first_block"], ring.start, "also where nobody looked for it");

    let (server, mut client) = made.serve(journal);
    model.flush(&mut client);
    model.verify(&mut client, ring);
    drop(client);
    assert_eq!(server.terminate(), Some(0));
    made.is_clean();
}

/// One zone of journal in two chunks.
const STRADDLES: Ext4 = Ext4 { first: 1100, end: 1100 + ZONE };
/// Four zones of journal in five of the eight cache zones: too much to be pinned.
const LARGE: Ext4 = Ext4 { first: 4 * ZONE + 900, end: 8 * ZONE + 900 };

#[test]
fn a_journal_is_data_unless_it_is_asked_for() {
    let mut made = Made::dmz("joff");
    lives(&mut made, &["--journal", "off"], STRADDLES, false, |info, shown| {
        let journal = &info["journal"];
        assert_eq!((&journal["mode"], &journal["zones"]), (&"off".into(), &0.into()));
        assert!(info["content"]["ranges"].as_array().is_some_and(Vec::is_empty));
        assert_eq!(info["live"]["journal_outside_bytes"], 0);
        assert!(shown.contains("journal off: no chunk is pinned"), "{shown}");
    });
}

#[test]
fn the_chunk_where_a_journal_begins_is_pinned() {
    let mut made = Made::dmz("jone");
    lives(&mut made, &["--journal", "one"], STRADDLES, true, |info, shown| {
        let journal = &info["journal"];
        assert_eq!((&journal["mode"], &journal["pinned_chunks"]), (&"one".into(), &json!([1])));
        assert!(info["live"]["journal_outside_bytes"].as_u64() > Some(0), "the second chunk");
        assert!(shown.contains("journal one: pinned chunks 1\n"), "{shown}");
        assert!(shown.contains("log of the journal, by the backup of its inode"), "{shown}");
    });
}

#[test]
fn a_journal_in_two_chunks_has_zones_of_its_own() {
    let mut made = Made::dmz("jset");
    lives(&mut made, &["--journal", "set"], STRADDLES, true, |info, shown| {
        let journal = &info["journal"];
        assert_eq!((&journal["mode"], &journal["pinned_chunks"]), (&"set".into(), &json!([])));
        let zones = (&journal["hot_zones"], &journal["appended_blocks"]);
        assert_eq!(zones, (&1.into(), &ZONE.into()));
        assert!(matches!(journal["log_zones"].as_u64(), Some(1 | 2)), "{journal}");
        assert_eq!(info["live"]["journal_outside_bytes"], 0);
        assert!(shown.contains("journal set: 1024 blocks in"), "{shown}");
    });
}

/// Blocks of a journal block map, and the version that the kernel looks at first.
fn format(made: &Made) -> (u64, u32) {
    let blocks = made.says("dump", &["label"])["journal_blocks"].as_u64().unwrap();
    let root = fs::read(made.cache.as_ref().unwrap()).unwrap();
    (blocks, u32::from_le_bytes(root[4..8].try_into().unwrap()))
}

#[test]
fn a_large_journal_is_appended_and_goes_back() {
    let mut made = Made::dmz("jbig");
    lives(&mut made, &["--journal", "set"], LARGE, true, |info, shown| {
        let journal = &info["journal"];
        assert_eq!((&journal["mode"], &journal["pinned_chunks"]), (&"set".into(), &json!([])));
        assert_eq!(
            (&journal["hot_zones"], &journal["appended_blocks"]),
            (&1.into(), &(4 * ZONE).into())
        );
        assert!(matches!(journal["log_zones"].as_u64(), Some(4 | 5)), "{journal}");
        let live = &info["live"];
        assert_eq!(
            (&live["journal_outside_bytes"], &live["sent_bytes"]["journal_copied"]),
            (&0.into(), &0.into())
        );
        assert!(shown.contains("journal set: 4096 blocks in"), "{shown}");
    });
    let info = made.says("info", &[]);
    assert_eq!(info["journal"]["appended_blocks"], 4 * ZONE, "known without a server");
    let zones = made.says("dump", &["segments"]);
    let of = |stream: &str| {
        zones.as_array().unwrap().iter().filter(|zone| zone["stream"] == stream).count()
    };
    assert!(of("jlog") >= 4 && of("jhot") == 1);
    let (blocks, version) = format(&made);
    assert!(
        blocks > 0 && version == 0x8000_0002,
        "not a volume of the kernel's: {blocks}, {version:#x}"
    );

    // Without the mode, and without knowing where the journal is: it is a volume of dm-zoned's again.
    let (server, mut client) = made.serve(&[]);
    made.wait("blocks in their chunks", |info| info["journal"]["appended_blocks"] == 0);
    let mut header = vec![0xEE; 4096];
    client.read(LARGE.first * BLOCK, &mut header).unwrap();
    assert_eq!(header, LARGE.journal_header());
    drop(client);
    assert_eq!(server.terminate(), Some(0));
    assert_eq!(format(&made), (0, 2));
    made.is_clean();
}

/// A range that is given counts at once, and nothing is looked for.
#[test]
fn a_journal_is_where_the_user_says() {
    let mut made = Made::dmz("jgiven");
    let set = ["--journal", "set", "--journal-range", "4MiB-8MiB,12MiB-13MiB"];
    let (server, mut client) = made.serve(&set);
    client.write(0, &STRADDLES.header(client.size() / BLOCK), true).unwrap();
    let mut model = Model::new(4 * ZONE);
    model.write(&mut client, 0..4 * ZONE);
    let info = says(&["info", text(&made.image)]);
    let zone = 4 * 1024 * 1024 / BLOCK;
    assert_eq!(info["journal"]["appended_blocks"], zone + zone / 4);
    assert_eq!(info["content"]["ranges"][1]["why"], "you gave this range");
    drop(client);
    assert_eq!(server.terminate(), Some(0));
    made.is_clean();
}

#[test]
fn a_volume_of_mode_log_on_zones_looks_for_journals_by_itself() {
    for (name, journal) in [("jlogd", &[][..]), ("jlogs", &["--journal", "set"])] {
        let mut made = Made::log(name);
        lives(&mut made, journal, STRADDLES, true, |info, shown| {
            let journal = &info["journal"];
            assert_eq!((&journal["mode"], &journal["demotions"]), (&"set".into(), &0.into()));
            assert!((2..=4).contains(&journal["segments"].as_u64().unwrap()), "{journal}");
            assert_eq!(journal["copied_bytes"], 0);
            assert!(info["live"]["sent_bytes"]["journal"].as_u64() > Some(0));
            assert!(shown.contains("journal set: "), "{shown}");
        });
    }
}

#[test]
fn a_volume_of_mode_log_leaves_journals_alone_if_asked_to() {
    let mut made = Made::log("jlogo");
    lives(&mut made, &["--journal", "off"], STRADDLES, false, |info, shown| {
        assert!(info["journal"].is_null() && !shown.contains("journal set"), "{shown}");
        assert!(info["live"]["sent_bytes"]["journal"].as_u64().is_none_or(|bytes| bytes == 0));
    });
}

#[test]
fn what_cannot_be_asked_of_journals_is_refused() {
    let folder = Folder::new("jno");
    let image = folder.0.join("plain");
    let (plain, han) = (text(&image), folder.0.join("han"));
    let han = text(&han);
    says(&["create", plain, "--backing-size", "64MiB"]);
    says(&["create", han, "--backing-size", "64MiB", "--mode", "han"]);
    let dmz = Made::dmz("jnodmz");
    let (zoned, cache) = (text(&dmz.image), text(dmz.cache.as_ref().unwrap()));
    let many = ["0-1"; 65].join(",");
    let cases: [(&[&str], &str); 11] = [
        (&[plain, "--journal", "one"], "--journal one is of policy dmz"),
        (
            &[plain, "--journal", "one", "--journal-range", "0-1MiB"],
            "--journal one is of policy dmz",
        ),
        (
            &[plain, "--journal", "off", "--journal-range", "0-1MiB"],
            "--journal-range needs --journal set",
        ),
        (&[plain, "--journal", "two"], "possible values: off, one, set"),
        (&[plain, "--journal-range", "1MiB"], "expected `auto`, `off`, or ranges of bytes"),
        (&[plain, "--journal-range", "1mx-2mb"], "expected `auto`, `off`, or ranges of bytes"),
        (
            &[plain, "--journal-range", "2MiB-1MiB"],
            "is empty; give the end as the first byte behind it",
        ),
        (&[plain, "--journal-range", &many], "65 journal ranges; expected at most 64"),
        (&[han, "--journal", "set"], "has no log segments of their own for journals"),
        (&[han, "--journal-range", "0-1MiB"], "has no log segments of their own for journals"),
        (&[zoned, "--cache", cache, "--journal", "set", "--journal-range", "1-1"], "is empty"),
    ];
    for (arguments, words) in cases {
        // Nowhere to listen: what is not refused ends as well.
        let output = volume(&[&["serve"], arguments, &["--nbd", "unix:/nonexistent/nbd"]].concat());
        let said = message(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
    // Without zones a volume of mode log does what it is asked to.
    let mut made = Made { image, cache: None, folder, served: 0 };
    let (server, client) = made.serve(&["--journal", "set", "--journal-range", "1MiB-2MiB"]);
    let info = says(&["info", text(&made.image)]);
    assert_eq!(info["content"]["ranges"][0]["first_block"], 256);
    drop(client);
    assert_eq!(server.terminate(), Some(0));
}
