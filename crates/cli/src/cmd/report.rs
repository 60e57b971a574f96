//! `onefold report`.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use onefold_sim::report::render;
use onefold_sim::result::{RunResult, table};
use onefold_try::account::Account;
use onefold_try::tape::{self, Tape};

use crate::error::{CliError, Exit};
use crate::output::{Global, Named};

/// Largest result that is read. A result is some hundred KiB; more is another kind of file.
const RESULT_BYTES_MAX: u64 = 256 << 20;

/// Arguments of `onefold report`: HTML, or one table with a column per run (`--format table`).
#[derive(Debug, Args)]
pub(crate) struct Report {
    /// Results of `onefold sim run --format json`; `-` is standard input. Or one tape of `onefold try`
    #[arg(required = true, value_name = "RUN.json|TAPE")]
    runs: Vec<PathBuf>,
}

impl Report {
    /// Runs the command.
    pub(crate) fn run(self, global: &Global) -> Result<ExitCode, CliError> {
        self.check(global)?;
        if let [path] = &self.runs[..]
            && Tape::is_at(path)
        {
            let account = account(path)?;
            let is_table = global.named == Some(Named::Table);
            global.emit(&if is_table { account.table() } else { account.html(&[]) })?;
            return Ok(ExitCode::SUCCESS);
        }
        let runs = self.runs.iter().map(|path| read_run(path)).collect::<Result<Vec<_>, _>>()?;
        if global.named == Some(Named::Table) {
            global.emit(&table(&runs))?;
            return Ok(ExitCode::SUCCESS);
        }
        global.write(&render(&runs))?;
        if let Some(path) = &global.output {
            let what =
                if runs.len() == 1 { "1 run".to_owned() } else { format!("{} runs", runs.len()) };
            global.say(format_args!("report of {what}: {}", path.display()));
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Refuses what can be seen to be a mistake before anything is read.
    fn check(&self, global: &Global) -> Result<(), CliError> {
        match global.named {
            Some(Named::Json) => {
                let text = "--format is `json`, expected html or table";
                return Err(CliError::new(Exit::Usage, "usage::format", text)
                    .help("the results themselves are JSON"));
            }
            Some(Named::Table) => {}
            Some(Named::Html | Named::Junit) | None => global.expect_page_can_go()?,
        }
        if self.runs.iter().filter(|path| is_stdin(path)).count() > 1 {
            let text = "standard input (`-`) is named more than once, expected at most once";
            return Err(CliError::new(Exit::Usage, "usage::stdin", text)
                .help("write the other results to files"));
        }
        let overwritten = global.output.as_ref().and_then(|output| {
            self.runs.iter().find(|path| !is_stdin(path) && same_file(path, output))
        });
        overwritten.map_or(Ok(()), |path| {
            let text = format!("-o would overwrite the result {}", path.display());
            Err(CliError::new(Exit::Usage, "usage::output", text)
                .help("name another file, such as report.html"))
        })
    }
}

/// What the program of a tape cost.
fn account(path: &Path) -> Result<Account, CliError> {
    let kept = Tape::open(path)?.kept(tape::ACCOUNT)?;
    kept.ok_or_else(|| {
        let text = format!("{} has no account: a server kept it", path.display());
        CliError::new(Exit::Usage, "report::tape", text)
            .help("replay it: `onefold sim run --tape`, and report the result")
    })
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn same_file(a: &Path, b: &Path) -> bool {
    let resolved = (fs::canonicalize(a), fs::canonicalize(b));
    matches!(resolved, (Ok(a), Ok(b)) if a == b)
}

/// Reads one result; every error names the file.
fn read_run(path: &Path) -> Result<RunResult, CliError> {
    let name =
        if is_stdin(path) { "standard input".to_owned() } else { path.display().to_string() };
    let unreadable = |error: io::Error| {
        CliError::new(Exit::Failed, "report::read", format!("cannot read {name}: {error}"))
    };
    let bytes = if is_stdin(path) {
        read_limited(io::stdin().lock())
    } else {
        fs::File::open(path).and_then(read_limited)
    };
    let bytes = bytes.map_err(unreadable)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > RESULT_BYTES_MAX {
        let limit = RESULT_BYTES_MAX >> 20;
        let text = format!("{name}: larger than {limit} MiB, too large for a result");
        return Err(CliError::new(Exit::Failed, "report::size", text)
            .help("give the JSON of `onefold sim run`, not a trace or an image"));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let text = format!("{name}: not text (invalid UTF-8 at byte {at}), expected JSON");
        CliError::new(Exit::Failed, "report::not_json", text)
            .help("give the output of `onefold sim run --format json`, uncompressed")
    })?;
    RunResult::from_json(&text)
        .map_err(|error| CliError::new(Exit::Failed, "report::result", format!("{name}: {error}")))
}

/// Reads to the end, or one byte past the limit.
fn read_limited(source: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(RESULT_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
