//! Repository checks that rustc, clippy and rustfmt cannot make: `cargo xtask tidy`.

mod tidy;

use std::env;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask tidy

  tidy           check dependency arrows, core fences, vocabulary, markers, paths and lengths
";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if words.as_slice() != ["tidy"] {
        eprint!("{USAGE}");
        return ExitCode::from(2);
    }
    // xtask lives one level below the workspace root, wherever the checkout is.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or_else(|| Path::new("."));
    match tidy::run(root) {
        Ok(report) => {
            let mut stdout = io::stdout().lock();
            if stdout.write_all(report.text.as_bytes()).is_err() {
                return ExitCode::FAILURE;
            }
            if report.clean { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("tidy could not run: {error}");
            ExitCode::from(8)
        }
    }
}
