//! `onefold study export` and `verify`: results as a small table, and whether it still holds.

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use onefold_study::report::{Report, pictures};
use onefold_study::{
    Control, Options, Row, Study as File, Table, Verified, read_table, table, verify,
};

use super::{Common, program, with_threads};
use crate::error::{CliError, Exit, written};
use crate::output::{Format, Global};

/// Most differences that are listed.
const LISTED: usize = 20;

/// Arguments of `onefold study verify`.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    common: Common,
    /// Points to run; an arbitrary choice, always the same [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    points: Option<u32>,
    /// Threads that run points [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

/// Whether `--results` names a table and no folder.
pub(super) fn is_table(results: &Path) -> bool {
    results.is_file() || results.extension().is_some_and(|end| end == "csv")
}

impl Common {
    /// Refuses a table where a folder is needed.
    pub(super) fn expect_folder(&self, why: &str) -> Result<(), CliError> {
        match &self.results {
            Some(path) if is_table(path) => {
                let text = format!("--results is {}, expected a folder: {why}", path.display());
                Err(CliError::new(Exit::Usage, "study::table", text))
            }
            _ => Ok(()),
        }
    }

    /// Writes the small table of the results in a folder.
    pub(super) fn export(&self, global: &Global) -> Result<ExitCode, CliError> {
        self.expect_folder("a table is made of all that a run measured")?;
        if global.format() == Format::Json {
            let text = "--format is `json`, expected none: the table is CSV";
            return Err(CliError::new(Exit::Usage, "usage::format", text));
        }
        let (study, options, rows) = self.results(global)?;
        let (text, missing) = table(&study, &options)?;
        global.write(&text)?;
        if missing > 0 {
            global.say(format_args!("{missing} points of the study have no result yet"));
        }
        if let Some(path) = &global.output {
            global.say(format_args!("table of {} points: {}", rows.len(), path.display()));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Reads the table that `--results` names, and says what is to be known of it.
pub(super) fn read(
    path: &Path,
    (study, options): (&File, &Options),
    global: &Global,
) -> Result<Table, CliError> {
    let table = read_table(study, options, path)?;
    let shown = path.display();
    if !table.absent.is_empty() {
        let names = table.absent.join(", ");
        global.say(format_args!("{shown} has no column {names}: write it again with export"));
    }
    if table.strangers > 0 {
        let count = table.strangers;
        global.say(format_args!("{count} rows of {shown} belong to other versions of the study"));
    }
    if table.missing > 0 {
        global.say(format_args!("{} points of the study are not in {shown}", table.missing));
    }
    Ok(table)
}

/// Writes each figure that is drawn as an SVG file into a folder.
pub(super) fn draw(
    folder: &Path,
    (study, rows, report): (&File, &[Row], &Report),
    global: &Global,
) -> Result<(), CliError> {
    let name = |path: &Path| path.display().to_string();
    written(std::fs::create_dir_all(folder), &name(folder))?;
    let pictures = pictures(study, rows, report);
    for picture in &pictures {
        let path = folder.join(&picture.name);
        written(std::fs::write(&path, &picture.svg), &name(&path))?;
    }
    global.say(format_args!("{} figures: {}", pictures.len(), folder.display()));
    if !report.left_out.is_nothing() {
        global.say(report.left_out);
    }
    Ok(())
}

impl VerifyArgs {
    pub(super) fn run(&self, global: &Global) -> Result<ExitCode, CliError> {
        let Some(path) = self.common.results.as_ref().filter(|path| is_table(path)) else {
            let text = "--results names no table, expected one such as docs/papers/results/x.csv";
            return Err(CliError::new(Exit::Usage, "study::no_table", text)
                .help("`onefold study export` writes one"));
        };
        let (study, options) = self.common.load(global)?;
        let table = read(path, (&study, &options), global)?;
        let options = with_threads(options, self.threads);
        let count = self.points.and_then(|count| usize::try_from(count).ok());
        let verified = global.interrupt.softly(|interrupt| {
            let control = Control { interrupt: Some(interrupt), progress: None };
            verify(&study, &options, &control, (&table, count)).map_err(CliError::from)
        })?;
        tell(path, &verified, global)
    }
}

/// Says what became of a comparison with a table.
fn tell(path: &Path, found: &Verified, global: &Global) -> Result<ExitCode, CliError> {
    if found.partial {
        global.say("interrupted: not all points were run");
        return Ok(global.interrupt.code());
    }
    let shown = path.display();
    if found.points == 0 {
        let text = format!("{shown} has no numbers of the chosen points");
        return Err(CliError::new(Exit::Failed, "study::no_results", text)
            .help("write it again with `onefold study export`, or choose other points"));
    }
    for difference in found.differences.iter().take(LISTED) {
        global.say(difference);
    }
    let (points, numbers) = (found.points, found.numbers);
    if found.differences.is_empty() {
        global.say(format_args!(
            "{points} points were run again: all {numbers} numbers are those of {shown}"
        ));
        return Ok(ExitCode::SUCCESS);
    }
    let text = format!(
        "{} of {numbers} numbers of {points} points are not those of {shown}; onefold is {}",
        found.differences.len(),
        program().version
    );
    Err(CliError::new(Exit::Failed, "study::verify", text).help(
        "if the change is meant, run the study and write the table again with `study export`",
    ))
}
