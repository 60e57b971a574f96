//! `onefold completions` and `onefold man`.

use std::fs;
use std::process::{Command, Output};

use crate::common::{Folder, message, text};

fn onefold(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_onefold")).args(arguments).output().unwrap()
}

#[test]
fn shells_complete_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let output = onefold(&["completions", shell]);
        assert!(output.status.success(), "{}", message(&output));
        let script = String::from_utf8(output.stdout).unwrap();
        for word in ["write-log", "mrc", "sample-pages", "trace-format"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    assert_eq!(onefold(&["completions", "csh"]).status.code(), Some(2));
}

#[test]
fn manual_pages_replace_themselves_and_nothing_else() {
    let folder = Folder::new("man");
    let pages = folder.0.join("share/man1");
    for _ in 0..2 {
        let output = onefold(&["man", text(&pages)]);
        assert!(output.status.success(), "{}", message(&output));
    }
    let page = fs::read_to_string(pages.join("onefold-trace-mrc.1")).unwrap();
    assert!(page.contains("miss\\-ratio curve"), "{page}");
    assert!(pages.join("onefold.1").exists() && !pages.join("onefold-help.1").exists());
    fs::write(pages.join("onefold.1"), "mine").unwrap();
    let refused = onefold(&["man", text(&pages)]);
    assert_eq!(refused.status.code(), Some(2), "{}", message(&refused));
    assert!(message(&refused).contains("--force"));
    assert!(onefold(&["man", text(&pages), "--force"]).status.success());
}
