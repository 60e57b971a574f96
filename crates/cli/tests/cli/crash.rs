//! `onefold crash` as a user runs it. A small store forgets one fsync, and each time that is found.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use onefold_format::{WriteLogEntry, WriteLogSuper};
use onefold_testkit::budget;
use onefold_units::convert::index64;
use serde_json::Value;

use crate::common::{Folder, message, text};
use crate::schemas::{expect_junit, expect_valid};

fn onefold(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_onefold")).args(arguments).output().unwrap()
}

/// What the store forgets; `nothing` if it is right.
const STORE: &str = "ONEFOLD_TEST_STORE";
const COMMITS: u64 = 4;
const PAGE: u64 = 4096;
/// Pages of the table, both of which have to have the same number.
const TABLE: [u64; 2] = [0, 3];

/// A file that is made of pages with a word and a number.
fn page(word: &str, number: u64) -> Vec<u8> {
    let mut page = format!("{word} {number}\n").into_bytes();
    page.resize(usize::try_from(PAGE).unwrap(), 0);
    page
}

/// Keeps a number in three ways: in the next page of `log`; in two pages of `table`, which `intent` protects; and in `snapshot`, which is
/// replaced.
#[expect(clippy::print_stdout, reason = "what a program promises is what it prints")]
fn store(forgets: &str) {
    let open = |name: &str| {
        File::options().read(true).write(true).create(true).truncate(false).open(name).unwrap()
    };
    let sync = |file: &File, name: &str| {
        if name != forgets {
            file.sync_all().unwrap();
        }
    };
    let (log, table, intent, folder) =
        (open("log"), open("table"), open("intent"), File::open(".").unwrap());
    for at in 0..4 {
        table.write_all_at(&page("table", 0), at * PAGE).unwrap();
    }
    intent.write_all_at(&page("intent", 0), 0).unwrap();
    for at in 0..COMMITS {
        log.write_all_at(&page("log", 0), at * PAGE).unwrap();
    }
    for file in [&log, &table, &intent, &folder] {
        file.sync_all().unwrap();
    }
    for number in 1..=COMMITS {
        log.write_all_at(&page("log", number), (number - 1) * PAGE).unwrap();
        sync(&log, "log");
        intent.write_all_at(&page("intent", number), 0).unwrap();
        sync(&intent, "intent");
        for at in TABLE {
            table.write_all_at(&page("table", number), at * PAGE).unwrap();
        }
        sync(&table, "table");
        intent.write_all_at(&page("intent", 0), 0).unwrap();
        intent.sync_all().unwrap();
        fs::write("snapshot.new", page("snapshot", number)).unwrap();
        sync(&File::open("snapshot.new").unwrap(), "snapshot");
        fs::rename("snapshot.new", "snapshot").unwrap();
        sync(&folder, "folder");
        println!("committed {number}");
    }
}

/// The number in a page, if it is one.
fn number(bytes: &[u8], word: &str, at: u64) -> Option<u64> {
    let from = usize::try_from(at * PAGE).unwrap();
    let page = bytes.get(from..from + usize::try_from(PAGE).unwrap())?;
    let line = std::str::from_utf8(page).ok()?.lines().next()?;
    line.strip_prefix(word)?.trim().parse().ok()
}

/// What is wrong with a store that has committed so many numbers.
fn problem(committed: u64) -> Option<String> {
    let read = |name: &str| fs::read(name).unwrap_or_default();
    let log = read("log");
    if let Some(lost) = (1..=committed).find(|n| number(&log, "log", n - 1) != Some(*n)) {
        return Some(format!("log has no {lost}"));
    }
    let table = TABLE.map(|at| number(&read("table"), "table", at));
    let value = match number(&read("intent"), "intent", 0) {
        Some(0) if table[0] == table[1] => table[0],
        Some(intent) if intent > 0 => Some(intent),
        intent => return Some(format!("table is torn: {table:?}, intent {intent:?}")),
    };
    if value < Some(committed) {
        return Some(format!("table has {value:?} of {committed}"));
    }
    let snapshot = read("snapshot");
    let kept = number(&snapshot, "snapshot", 0);
    if kept < Some(committed).filter(|committed| *committed > 0)
        || kept.is_none() && Path::new("snapshot").exists()
    {
        return Some(format!("snapshot has {kept:?} of {committed}, {} bytes", snapshot.len()));
    }
    None
}

/// Not a test, but the store, where the environment says so: tests run this binary again.
#[test]
#[expect(clippy::exit, clippy::print_stdout, reason = "a check says why and ends with a code")]
fn store_or_check() {
    if let Ok(promised) = std::env::var("ONEFOLD_STDOUT") {
        let promised = fs::read_to_string(promised).unwrap();
        let committed = promised.lines().filter(|line| line.contains("committed ")).count();
        // Before the first line the store may not be there.
        let problem =
            if committed == 0 { None } else { problem(u64::try_from(committed).unwrap()) };
        if let Some(problem) = problem {
            println!("{problem}");
            std::io::stdout().flush().unwrap();
            std::process::exit(1);
        }
    } else if let Ok(forgets) = std::env::var(STORE) {
        store(&forgets);
    }
}

/// This binary, as a command that runs the store or its check.
fn this() -> Vec<String> {
    let binary = std::env::current_exe().unwrap();
    let arguments = ["--exact", "crash::store_or_check", "--nocapture", "--test-threads=1"];
    [text(&binary).to_owned()].into_iter().chain(arguments.map(str::to_owned)).collect()
}

/// A tape of the store; `None` where nothing can be mounted.
fn taped(folder: &Folder, forgets: &str) -> Option<PathBuf> {
    let tape = folder.0.join(format!("{forgets}.tape"));
    let output = Command::new(env!("CARGO_BIN_EXE_onefold"))
        .args([
            "try",
            "--size",
            "256MiB",
            "--mount",
            "noauto_da_alloc",
            "--tape",
            text(&tape),
            "--",
        ])
        .args(this())
        .env(STORE, forgets)
        .output()
        .unwrap();
    let said = message(&output);
    if ["needs root", "is missing", "cannot mount", "failed to setup loop"]
        .iter()
        .any(|why| said.contains(why))
    {
        eprintln!("skipped 1 case: {said}");
        return None;
    }
    assert!(output.status.success(), "{said}");
    Some(tape)
}

fn explored(tape: &Path, more: &[&str]) -> (Option<i32>, Value) {
    let check = this().join(" ");
    let explore = ["crash", "explore", text(tape), "--check", &check, "--format", "json"];
    let output = onefold(&[&explore[..], more].concat());
    let json = serde_json::from_slice(&output.stdout);
    let json = json.unwrap_or_else(|_| panic!("{}", message(&output)));
    expect_valid(&json);
    (output.status.code(), json)
}

/// What was written by the request that a finding names: its first word.
fn word(folder: &Folder, tape: &Path, request: &Value) -> String {
    let image = folder.0.join("state.img");
    let state = format!("e{}-all", request["entry"]);
    let output = onefold(&["crash", "export", text(tape), &state, "-o", text(&image)]);
    assert!(output.status.success(), "{}", message(&output));
    let mut bytes = [0; 16];
    let read =
        File::open(&image).unwrap().read_exact_at(&mut bytes, request["offset"].as_u64().unwrap());
    read.unwrap();
    fs::remove_file(image).unwrap();
    let word = bytes.iter().take_while(|byte| byte.is_ascii_alphabetic());
    word.map(|byte| char::from(*byte)).collect()
}

/// Five stores forget an fsync each. Each is found within 1,000 states, and the request that is named is of that file. A small
/// budget leaves out the last of them.
#[test]
fn a_forgotten_fsync_is_found_and_shrunk_to_the_request() {
    let folder = Folder::new("crash-fsync");
    // Of the states that are not random, 180 to 210 of 250: all where few fail, half of them where a tenth or more do. The goal is
    // 1,000.
    let stores = [
        ("log", "log has no ", "120"),
        ("folder", "snapshot has ", "250"),
        ("intent", "table is torn: ", "250"),
        ("table", "table has ", "250"),
        ("snapshot", "snapshot has None of ", "120"),
    ];
    for (forgets, expected, states) in stores.into_iter().take(index64(budget(5))) {
        // The kernel may write what was forgotten by itself, and early: on a busy machine a tape can have few states that show it. The
        // second look is at all states of the goal, the third at a tape of its own.
        let mut tape = None;
        let mut found = Value::Null;
        let sentence = [states, "1000", "1000"].iter().enumerate().find_map(|(look, states)| {
            if look != 1 {
                tape = Some(taped(&folder, forgets)?);
            }
            let tape = tape.as_ref()?;
            let code;
            (code, found) = explored(tape, &["--states", states]);
            let sentence = named(&folder, tape, &found, forgets, expected)?;
            assert_eq!(code, Some(7), "{forgets}: {found:#}");
            if forgets == "log" {
                let (_, again) = explored(tape, &["--states", states, "--jobs", "1"]);
                assert_eq!(again["findings"], found["findings"], "once more, on one thread");
            }
            Some(sentence)
        });
        if tape.is_none() {
            return;
        }
        let sentence = sentence.unwrap_or_else(|| panic!("{forgets}: {found:#}"));
        eprintln!("{forgets}: {} states: {sentence}", found["states"]["tried"]);
    }
}

/// What is said of the request that `forgets` left behind, if a finding is of that request alone. A later commit can make good what
/// this one lost, and is named then: when the kernel writes what was forgotten differs.
fn named(
    folder: &Folder,
    tape: &Path,
    found: &Value,
    forgets: &str,
    expected: &str,
) -> Option<String> {
    let wanted = match forgets {
        // The page of the table that the intent should have protected.
        "intent" => "table",
        // The journal of the file system, in which the name or the size is.
        "folder" | "snapshot" => "",
        other => other,
    };
    let findings = found["findings"].as_array().unwrap();
    let finding = findings.iter().find(|finding| {
        let requests = finding["requests"].as_array().unwrap();
        requests.len() == 1
            && finding["sentence"].as_str().unwrap().contains(expected)
            && word(folder, tape, &requests[0]) == wanted
    })?;
    Some(finding["sentence"].as_str().unwrap().to_owned())
}

#[test]
fn a_store_that_forgets_nothing_survives_all_power_cuts() {
    let folder = Folder::new("crash-right");
    let Some(tape) = taped(&folder, "nothing") else { return };
    let (code, found) = explored(&tape, &["--states", "all"]);
    assert_eq!(code, Some(0), "{found:#}");
    assert_eq!(found["schema"], "onefold.crash.explore/1");
    assert_eq!(found["findings"].as_array().unwrap().len(), 0);
    let (all, tried) = (&found["states"]["numbered"], &found["states"]["tried"]);
    assert!(all == tried && tried.as_u64() > Some(100), "{found:#}");
    eprintln!("{tried} states in {} s", found["seconds"]);
    // Parts of it are tried elsewhere: each eighth, from the first on and from the eighth on.
    let part = |part: &str| explored(&tape, &["--states", "all", "--shard", part]).1;
    let parts = ["1/8", "8/8"].map(|name| part(name)["states"]["tried"].as_u64().unwrap());
    let all = tried.as_u64().unwrap();
    assert_eq!(parts, [all.div_ceil(8), all / 8]);
}

/// A log with these entries, texts of marks and data, and the empty disk of four pages that it is of.
fn log_of(folder: &Folder, entries: &[(WriteLogEntry, &str, Vec<u8>)]) -> (PathBuf, PathBuf) {
    let mut log = vec![0; 512];
    let head = WriteLogSuper { entries: entries.len().try_into().unwrap(), sector_bytes: 512 };
    log[..28].copy_from_slice(&head.encode());
    for (entry, text, data) in entries {
        let mut sector = [0; 512];
        sector[..32].copy_from_slice(&entry.encode());
        sector[32..32 + text.len()].copy_from_slice(text.as_bytes());
        log.extend_from_slice(&sector);
        log.extend_from_slice(data);
    }
    let (path, base) = (folder.0.join("writes.log"), folder.0.join("base.img"));
    fs::write(&path, log).unwrap();
    File::create(&base).unwrap().set_len(4 * PAGE).unwrap();
    (path, base)
}

/// A write of one page with a word.
fn written(at: u64, word: &str) -> (WriteLogEntry, &'static str, Vec<u8>) {
    (WriteLogEntry::write(8 * at, 8), "", page(word, 1))
}

const FLUSHED: (WriteLogEntry, &str, Vec<u8>) = (WriteLogEntry::FLUSH, "", Vec::new());

fn marked() -> (WriteLogEntry, &'static str, Vec<u8>) {
    (WriteLogEntry::mark("half", 512).unwrap(), "half", Vec::new())
}

/// A write of two pages, a flush, a mark, and a write of another.
fn small(folder: &Folder) -> (PathBuf, PathBuf) {
    let two = [page("one", 1), page("two", 1)].concat();
    let first = (WriteLogEntry::write(0, 16), "", two);
    log_of(folder, &[first, FLUSHED, marked(), written(2, "three"), FLUSHED])
}

/// What was promised is there for a while, is overwritten, and comes at last: the last request that makes it good is named.
#[test]
fn of_requests_that_came_late_the_last_one_is_named() {
    let folder = Folder::new("crash-late");
    let promised = [written(0, "one"), FLUSHED, marked(), FLUSHED];
    let comes_and_goes = [written(2, "there"), FLUSHED, written(3, "else"), FLUSHED];
    let comes_at_last = [written(2, "gone"), FLUSHED, written(1, "two"), FLUSHED];
    let (log, base) = log_of(&folder, &[&promised[..], &comes_and_goes, &comes_at_last].concat());
    let check = "[ ! -s $ONEFOLD_MARKS ] || grep -aq 'two\\|there' $ONEFOLD_DEVICE";
    let of = ["--log", text(&log), "--base", text(&base), "--check", check, "--format", "json"];
    let output = onefold(&[&["crash", "explore", "--states", "all"], &of[..]].concat());
    if message(&output).contains("cannot mount on") {
        eprintln!("skipped 1 case: cannot mount a FUSE file system here");
        return;
    }
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    expect_valid(&found);
    let findings = found["findings"].as_array().unwrap();
    assert_eq!(findings.len(), 1, "{found:#}");
    assert_eq!(
        (&findings[0]["cause"], &findings[0]["requests"][0]["entry"]),
        (&"late".into(), &11.into())
    );
}

/// A command that finds a state that fails.
pub(crate) fn failing(folder: &Folder) -> Output {
    let (log, base) = small(folder);
    let of = ["--log", text(&log), "--base", text(&base)];
    let check = ["--check", "[ $ONEFOLD_STATE = e5-all ]"];
    onefold(&[&["crash", "explore"], &of[..], &check].concat())
}

#[test]
fn states_of_a_log_are_listed_and_written_as_images() {
    let folder = Folder::new("crash-list");
    let (log, base) = small(&folder);
    let of = ["--log", text(&log), "--base", text(&base)];
    let run = |arguments: &[&str]| onefold(&[&["crash"], arguments, &of[..]].concat());
    let listed = run(&["list", "--format", "json"]);
    let json: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(json["schema"], "onefold.crash.list/1");
    expect_valid(&json);
    assert_eq!(
        json["kinds"],
        serde_json::json!({"durable": 3, "prefix": 1, "one": 2, "random": 0})
    );
    let names: Vec<_> =
        json["states"].as_array().unwrap().iter().map(|state| &state["name"]).collect();
    assert_eq!(names, ["e0", "e2", "e5", "e4-all", "e1-miss1.1", "e1-miss1.0"]);
    let digests: Vec<_> =
        json["states"].as_array().unwrap().iter().map(|state| &state["digest"]).collect();
    assert_eq!((digests[0], digests[2] == digests[3]), (&"0".repeat(32).into(), true), "{json:#}");
    assert_eq!(digests.iter().map(|digest| digest.as_str()).collect::<BTreeSet<_>>().len(), 5);
    let lines = String::from_utf8(run(&["list"]).stdout).unwrap();
    assert!(lines.contains("\ndurable         3\n") && lines.ends_with("e1-miss1.0\n"), "{lines}");
    let image = folder.0.join("state.img");
    let export = ["export", "e1-miss1.0", "-o", text(&image)];
    assert!(run(&export).status.success());
    let bytes = fs::read(&image).unwrap();
    assert_eq!((number(&bytes, "one", 0), number(&bytes, "two", 1)), (None, Some(1)));
    for (arguments, code, said) in [
        (&export[..], 1, "cannot write"),
        (&["export", "e1-miss1.0"], 2, "name a new file, such as -o state.img"),
        (&["export", "e9", "-o", "x"], 2, "the log has entries 1 to 5"),
        (&["export", "-o", "x"], 2, ""),
        (&["export", "x", "e1", "-o", "x"], 2, "found 2 arguments, expected STATE"),
        (&["mount", "e1", "x"], 2, "no file system"),
        (&["list", "--sectors", "1024"], 2, "the sectors of the log have 512 bytes"),
        (&["list", "--format", "junit"], 2, "this command tests nothing"),
        (&["explore", "--from", "never"], 2, "the log has no such mark"),
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", message(&output));
        assert!(message(&output).contains(said), "{arguments:?}: {}", message(&output));
    }
    let sectors = run(&["list", "--sectors", "512", "--format", "json"]);
    let sectors: Value = serde_json::from_slice(&sectors.stdout).unwrap();
    assert_eq!(sectors["unit_bytes"], 512);
}

/// Without a file system a check has the disk itself. What was promised by a mark counts from the next flush on.
#[test]
fn a_disk_without_file_system_is_explored() {
    let folder = Folder::new("crash-none");
    let (log, base) = small(&folder);
    let explore = |check: &str, more: &[&str]| {
        let of = ["--log", text(&log), "--base", text(&base), "--check", check];
        onefold(&[&["crash", "explore"], &of[..], more].concat())
    };
    // The mark promises the second page, and the third one with `three`.
    let check = "n=$(grep -c . $ONEFOLD_MARKS); [ $n = 0 ] || grep -aq two $ONEFOLD_DEVICE";
    let good = explore(check, &["--format", "json", "--states", "all"]);
    if message(&good).contains("cannot mount on") {
        eprintln!("skipped 1 case: cannot mount a FUSE file system here");
        return;
    }
    assert_eq!(good.status.code(), Some(0), "{}", message(&good));
    let json: Value = serde_json::from_slice(&good.stdout).unwrap();
    assert_eq!((&json["file_system"], &json["states"]["tried"]), (&"none".into(), &6.into()));

    let torn =
        "grep -aq one $ONEFOLD_DEVICE || ! grep -aq two $ONEFOLD_DEVICE || { echo torn; exit 3; }";
    let bad = explore(torn, &[]);
    assert_eq!(bad.status.code(), Some(7), "{}", message(&bad));
    let said = String::from_utf8(bad.stdout).unwrap();
    let sentence = "1. cut behind entry 1, lost: entry 1, 4 KiB at byte 0; check exited 3: torn\n";
    assert!(said.contains(sentence) && said.contains("e1-miss1.0"), "{said}");
    let xml = String::from_utf8(explore(torn, &["--format", "junit"]).stdout).unwrap();
    expect_junit(&folder, &xml);
    for part in [
        "<testsuites name=\"onefold\" tests=\"2\" failures=\"1\"",
        "name=\"e1-miss1.0\"",
        "<failure message=\"cut behind",
        "</testsuites>\n",
    ] {
        assert!(xml.contains(part), "{part}: {xml}");
    }
    let kept = folder.0.join("kept");
    assert_eq!(explore(torn, &["--keep-failing", text(&kept)]).status.code(), Some(7));
    assert!(kept.join("e1-miss1.0.img").exists());

    let anyway = explore("exit 1", &[]);
    assert_eq!(anyway.status.code(), Some(1));
    assert!(message(&anyway).contains("fix the check first: it fails without a power cut"));
    // It would hang for a minute.
    let slow = explore(
        "[ $ONEFOLD_STATE = e5-all ] || sleep 60",
        &["--timeout", "200ms", "--states", "1"],
    );
    assert!(String::from_utf8(slow.stdout).unwrap().contains("check took too long"));
}

/// A state is mounted for a shell, and nothing of it is left.
#[test]
fn a_shell_runs_in_a_state() {
    let folder = Folder::new("crash-shell");
    let Some(tape) = taped(&folder, "nothing") else { return };
    let last = {
        let listed = onefold(&["crash", "list", text(&tape), "--format", "json"]);
        let json: Value = serde_json::from_slice(&listed.stdout).unwrap();
        format!("e{}-all", json["entries"])
    };
    let shell = |command: &str| onefold(&["crash", "shell", text(&tape), &last, "-c", command]);
    let output = shell("head -c 10 table; echo lost > new; exit 9");
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(9), &b"table 4\n\0\0"[..]));
    let output = shell("test ! -e new && echo $ONEFOLD_STATE; grep -c committed $ONEFOLD_STDOUT");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{last}\n{COMMITS}\n"));

    let (fuse, mnt) = (folder.0.join("fuse"), folder.0.join("mnt"));
    fs::create_dir(&fuse).unwrap();
    fs::create_dir(&mnt).unwrap();
    for (arguments, there) in [
        (&["mount", text(&tape), &last, text(&mnt)][..], mnt.join("table")),
        (&["serve", text(&tape), "--fuse", text(&fuse)][..], fuse.join(&last)),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onefold"));
        let mut server = command.arg("crash").args(arguments).spawn().unwrap();
        while !there.exists() {
            assert!(server.try_wait().unwrap().is_none(), "{arguments:?}");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let id = server.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        assert_eq!(server.wait().unwrap().code(), Some(0), "{arguments:?}");
        assert!(!there.exists(), "{arguments:?}");
    }
}
