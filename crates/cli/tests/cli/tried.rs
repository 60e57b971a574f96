//! `onefold try` as a user runs it: programs that end in every way, and what is left of them.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::{Folder, Server, message, text};
use crate::schemas::expect_valid;

fn onefold(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onefold"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Runs a script of the shell on ext4 with these options of `try`. `None` where nothing can be mounted.
fn tried(options: &[&str], script: &str) -> Option<Output> {
    let defaults = [["--size", "256MiB"], ["--states", "0"], ["--drives", "none"]];
    let missing = defaults.iter().filter(|default| !options.contains(&default[0])).flatten();
    let small: Vec<&str> = ["try"].iter().chain(missing).copied().collect();
    let output = onefold(&small).args(options).args(["--", "sh", "-c", script]).output().unwrap();
    let said = message(&output);
    let cannot = ["needs root", "is missing", "cannot mount", "`mount"];
    if cannot.iter().any(|text| said.contains(text)) {
        eprintln!("skipped: {said}");
        return None;
    }
    Some(output)
}

fn result(output: &Output) -> Value {
    let result =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", message(output)));
    expect_valid(&result);
    result
}

/// What is mounted below a folder, and loop devices on its files.
fn mounts(folder: &Path) -> Vec<String> {
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    let loops = Command::new("losetup").args(["--list", "--noheadings"]).output().unwrap();
    let loops = String::from_utf8(loops.stdout).unwrap();
    let lines = mounts.lines().chain(loops.lines());
    lines.filter(|line| line.contains(text(folder))).map(str::to_owned).collect()
}

#[test]
fn one_run_gives_the_account_of_every_hop() {
    let folder = Folder::new("try-account");
    let tape = folder.0.join("x.tape");
    let options = ["--tape", text(&tape), "--drives", "tlc", "--volume", "--budget", "fs<=1GiB"];
    let script = "head -c 1M /dev/urandom > f && sync f && echo done";
    let Some(output) = tried(&[&options[..], &["--format", "json"]].concat(), script) else {
        return;
    };
    assert_eq!(output.status.code(), Some(0), "{}", message(&output));
    let result = result(&output);
    assert_eq!(result["schema"], "onefold.try/1");
    let account = &result["account"];
    assert!(account["program"].as_u64().unwrap() >= 1 << 20, "{account:#}");
    let fs = &account["file_system"];
    assert_eq!(fs["files"][0]["path"], "f", "{fs:#}");
    assert_eq!(fs["files"][0]["write_bytes"], 1 << 20);
    assert!(fs["by"]["journal"].as_u64().unwrap() > 0, "{fs:#}");
    let drives = account["drives"].as_array().unwrap();
    assert_eq!(drives.len(), 2, "alone and behind a volume");
    assert!(drives.iter().all(|drive| drive["nand_bytes"].as_u64().unwrap() > 1 << 20));
    assert_eq!(account["budgets"][0]["holds"], true);
    assert!(result["power_cuts"].is_null());

    // The tape is a trace, and has what the program printed.
    let printed = fs::read_to_string(tape.join("stdout.log")).unwrap();
    assert!(printed.ends_with("\tdone\n"), "{printed}");
    let ran = onefold(&["sim", "run", "--preset", "tlc", "--tape", text(&tape)]).output().unwrap();
    assert_eq!(ran.status.code(), Some(0), "{}", message(&ran));
    let listed = onefold(&["crash", "list", text(&tape)]).output().unwrap();
    assert_eq!(listed.status.code(), Some(0), "{}", message(&listed));
    let again = tried(&["--tape", text(&tape)], "true").unwrap();
    assert_eq!(again.status.code(), Some(2));
    assert!(message(&again).contains("a tape is a new folder"), "{}", message(&again));
}

#[test]
fn exit_codes_say_what_happened() {
    let code = |options: &[&str], script: &str| Some(tried(options, script)?.status.code());
    let Some(passed) = code(&[], "exit 3") else { return };
    assert_eq!(passed, Some(3), "that of the program");
    assert_eq!(code(&[], "kill -TERM $$").unwrap(), Some(143));
    let broken = tried(&["--budget", "fs<=4KiB"], "echo x > f; sync f").unwrap();
    assert_eq!(broken.status.code(), Some(6));
    let table = String::from_utf8(broken.stdout).unwrap();
    assert!(table.contains("budget fs<=4KiB broken") && table.contains("`f`"), "{table}");
    assert_eq!(code(&["--budget", "fs<=4KiB"], "echo x > f; sync f; exit 9").unwrap(), Some(9));
    let folder = Folder::new("try-codes");
    let tape = folder.0.join("x.tape");
    let missing = ["try", "--size", "256MiB", "--tape", text(&tape), "--", "./no-such-program"];
    let missing = onefold(&missing).output().unwrap();
    assert_eq!(missing.status.code(), Some(127));
    assert!(!tape.exists(), "nothing was kept");
    assert!(message(&missing).contains("cannot run `./no-such-program`"), "{}", message(&missing));
    let check = ["--states", "20", "--check", "test ! -e f"];
    let fails = tried(&check, "echo x > f; sync f").unwrap();
    let said = message(&fails);
    assert!(said.contains("fix the check first: it fails without a power cut"), "{said}");
    // Everything that is synced is there; what only was printed is not.
    let check = ["--states", "200", "--check", "test $(wc -l < $ONEFOLD_STDOUT) = 0 || test -s f"];
    let right = tried(&check, "echo x > f; sync f; sync .; echo done; echo y > g; sync g").unwrap();
    assert_eq!(right.status.code(), Some(0), "{}", message(&right));
    let wrong = tried(&check, "echo x > f; echo done; echo y > g; sync g").unwrap();
    assert_eq!(wrong.status.code(), Some(7), "{}", message(&wrong));
    let table = String::from_utf8(wrong.stdout).unwrap();
    assert!(table.contains("after mark `done`"), "{table}");
}

#[test]
fn what_the_program_leaves_is_ended_and_told() {
    let Some(output) = tried(&["--timeout", "60s"], "(sleep 1000 &) ; echo x > f") else { return };
    assert_eq!(output.status.code(), Some(0));
    assert!(message(&output).contains("1 processes that the program left were ended"));
    let late = tried(&["--timeout", "1s"], "sleep 1000").unwrap();
    assert_eq!(late.status.code(), Some(137));
    assert!(message(&late).contains("longer than --timeout"), "{}", message(&late));
    let full = tried(&[], "head -c 300M /dev/zero > f").unwrap();
    assert_ne!(full.status.code(), Some(0));
    assert!(message(&full).contains("the disk was full"), "{}", message(&full));
}

/// A run whose program sleeps, in a folder for temporary files of its own.
fn sleeping(folder: &Path) -> Option<Child> {
    tried(&[], "true")?;
    let ready = folder.join("ready");
    let script = format!("echo x > f; echo $$ > {}; sleep 1000", text(&ready));
    let child =
        onefold(&["try", "--size", "256MiB", "--drives", "none", "--", "sh", "-c", &script])
            .env("TMPDIR", folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
    while fs::read_to_string(&ready).unwrap_or_default().is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
    Some(child)
}

/// Whether the sleeping program runs. One that nobody waited for has no environment any more.
fn is_running(folder: &Path) -> bool {
    let sleeper = fs::read_to_string(folder.join("ready")).unwrap();
    let environment = fs::read(Path::new("/proc").join(sleeper.trim()).join("environ"));
    environment.is_ok_and(|environment| !environment.is_empty())
}

/// Nothing is left of a run but what the program wrote elsewhere.
fn expect_nothing_left(folder: &Path) {
    assert!(!is_running(folder), "the program is gone");
    assert_eq!(mounts(folder), [""; 0]);
    let left: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["ready"]);
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

#[test]
fn an_interrupted_run_leaves_nothing() {
    let folder = Folder::new("try-interrupted");
    let Some(mut child) = sleeping(&folder.0) else { return };
    signal(&child, Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    expect_nothing_left(&folder.0);
}

#[test]
fn what_a_killed_run_leaves_goes_with_the_next_one() {
    let folder = Folder::new("try-killed");
    let Some(mut child) = sleeping(&folder.0) else { return };
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    let next =
        onefold(&["try", "--size", "256MiB", "--drives", "none", "--states", "0", "--", "true"])
            .env("TMPDIR", &folder.0)
            .output()
            .unwrap();
    assert_eq!(next.status.code(), Some(0), "{}", message(&next));
    assert!(
        message(&next).contains("removed what a run left that was killed"),
        "{}",
        message(&next)
    );
    expect_nothing_left(&folder.0);
}

/// Where there is no file system the program has the disk as a file, and it needs no root.
#[test]
fn a_program_can_have_the_disk_itself() {
    let script = "printf 1 | dd of=$ONEFOLD_DEVICE conv=notrunc,fdatasync; echo one";
    let check = "test $(wc -l < $ONEFOLD_STDOUT) = 0 || test $(head -c 1 $ONEFOLD_DEVICE) = 1";
    let output = onefold(&["try", "--fs", "none", "--size", "64MiB", "--drives", "none"])
        .args(["--check", check, "--format", "json", "--", "sh", "-c", script])
        .output()
        .unwrap();
    let said = message(&output);
    if said.contains("/dev/fuse") {
        eprintln!("skipped: {said}");
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{said}");
    let result = result(&output);
    assert_eq!(result["power_cuts"]["states"]["failing"], 0);
    assert!(result["power_cuts"]["states"]["tried"].as_u64().unwrap() >= 2, "{result:#}");
    let never = onefold(&["mark", "too late"]).env_remove("ONEFOLD_TRY").output().unwrap();
    assert_eq!(never.status.code(), Some(2));
    assert!(message(&never).contains("no tape is kept of this"), "{}", message(&never));
}

#[test]
fn marks_are_promises() {
    let mark = format!("{} mark 'it is there'", env!("CARGO_BIN_EXE_onefold"));
    let check = ["--states", "200", "--check", "test ! -s $ONEFOLD_MARKS || test -s f"];
    let script = format!("echo x > f; {mark}; echo y > g; sync g");
    let Some(output) = tried(&check, &script) else { return };
    assert_eq!(output.status.code(), Some(7), "{}", message(&output));
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.contains("after mark `it is there`"), "{table}");
}

/// A check that fails by itself is told from one that a power cut makes fail.
#[test]
fn a_check_that_is_unsteady_is_called_so() {
    let folder = Folder::new("try-unsteady");
    let turns = folder.0.join("turns");
    // The last state comes first, and is good.
    let check = format!("echo >> {0}; test $(wc -l < {0}) != 3", text(&turns));
    let options = ["--states", "20", "--jobs", "1", "--check", &check];
    let Some(output) = tried(&options, "echo x > f; sync f; echo y > g; sync g") else { return };
    assert_eq!(output.status.code(), Some(7), "{}", message(&output));
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.contains("so the check is unsteady"), "{table}");
    assert!(table.contains("findings: 1"), "{table}");
}

/// Database servers refuse root.
#[test]
fn a_program_may_give_up_root() {
    let mark = format!("{} mark there", env!("CARGO_BIN_EXE_onefold"));
    let program = format!("echo x > $ONEFOLD_DIR/own/f && cat own/f && {mark}");
    let script = format!(
        "mkdir own && chown 65534 own && setpriv --reuid 65534 --clear-groups sh -c '{program}'"
    );
    let Some(output) = tried(&[], &script) else { return };
    assert_eq!(output.status.code(), Some(0), "{}", message(&output));
}

/// Any served device keeps a tape.
#[test]
fn a_served_ssd_keeps_a_tape() {
    let folder = Folder::new("serve-tape");
    let (image, tape, socket) = (folder.image(), folder.0.join("x.tape"), folder.0.join("nbd"));
    let server = Server::start_with(&image, &socket, &["--tape", text(&tape)]);
    assert_eq!(server.terminate(), Some(0));
    let about: Value = serde_json::from_slice(&fs::read(tape.join("tape.json")).unwrap()).unwrap();
    assert_eq!(about["schema"], "onefold.tape/1");
    assert_eq!(about["bytes"], 64 << 20);
    assert!(about["seconds"].as_f64().is_some(), "{about:#}");
    let listed = onefold(&["crash", "list", text(&tape), "--format", "json"]).output().unwrap();
    assert_eq!(listed.status.code(), Some(0), "{}", message(&listed));
}
