//! The page `docs/own-policy.md` shows this crate, and what it prints.

use std::path::Path;
use std::process::Command;

const PAGE: &str = include_str!("../../../docs/own-policy.md");

/// A file of this crate as the page has it: beside a clone.
fn on_page(text: &str) -> String {
    text.replace("\"../../", "\"../onefold/")
}

#[test]
fn the_page_shows_all_files() {
    let manifest = include_str!("../Cargo.toml");
    let (_, dependencies) = manifest.split_once("[dependencies]\n").unwrap();
    for (language, text) in [
        ("toml", dependencies),
        ("rust", include_str!("../src/main.rs")),
        ("toml", include_str!("../buffer.toml")),
        ("toml", include_str!("../drive.toml")),
    ] {
        let block = format!("```{language}\n{}```\n", on_page(text));
        assert!(PAGE.contains(&block), "docs/own-policy.md lacks:\n{block}");
    }
}

#[test]
fn the_page_shows_what_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    for file in ["buffer.toml", "drive.toml"] {
        let run = Command::new(env!("CARGO_BIN_EXE_own-policy"))
            .arg(crate_folder.join(file))
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        let printed = String::from_utf8(run.stdout).unwrap();
        let block = format!("```\n$ cargo run --release -- {file}\n{printed}```\n");
        assert!(PAGE.contains(&block), "docs/own-policy.md lacks:\n{block}");
    }
}
