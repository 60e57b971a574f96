//! `onefold study grid`: a grid without a study file.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use onefold_study::{GridText, Options, Study as File, keep_grid};

use super::{QuestionArgs, carry_out, program, with_threads};
use crate::error::{CliError, Exit};
use crate::output::Global;

/// Name of the study file in the folder of the results.
const STUDY: &str = "grid.toml";

/// Arguments of `onefold study grid`.
#[derive(Debug, Args)]
pub(crate) struct GridArgs {
    /// Presets, such as tlc,qlc-16k
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',')]
    preset: Vec<String>,
    /// Configuration files instead, also those of stacks (may be given often)
    #[arg(short, long, value_name = "FILE", conflicts_with = "preset")]
    config: Vec<PathBuf>,
    /// Capacities that the host sees, such as 8GiB,16GiB; geometry.blocks is chosen to fit
    #[arg(long, value_name = "SIZE,SIZE", value_delimiter = ',')]
    size: Vec<String>,
    /// Values of a key, such as ftl.victim=greedy,d-choices (may be given often)
    #[arg(long = "set", value_name = "KEY=VALUE,VALUE")]
    sets: Vec<String>,
    /// Replay this trace (may be given often)
    #[arg(long, value_name = "FILE", required_unless_present = "workload")]
    trace: Vec<PathBuf>,
    /// Run this generated workload (may be given often)
    #[arg(long, value_name = "SPEC", conflicts_with = "trace")]
    workload: Vec<String>,
    /// Seeds, such as 1,2,3: numbers are means with intervals then
    #[arg(long, value_name = "N,N", value_delimiter = ',')]
    seeds: Vec<u64>,
    /// Axes that go together instead of all with all, such as preset,size (may be given often)
    #[arg(long, value_name = "AXIS,AXIS")]
    zip: Vec<String>,
    /// Title of the report
    #[arg(long, default_value = "grid", value_name = "TITLE")]
    name: String,
    /// Points that run at the same time [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    #[command(flatten)]
    question: QuestionArgs,
}

impl GridArgs {
    pub(super) fn run(self, global: &Global) -> Result<ExitCode, CliError> {
        let folder = global.output.clone().unwrap_or_else(|| PathBuf::from("grid-results"));
        let path = folder.join(STUDY);
        let text = self.text()?.to_toml();
        let mut study = File::parse(&path, &text)?;
        study.seed = global.seed;
        self.question.question(&study)?;
        keep_grid(&path, &text)?;
        let options = Options { program: program(), ..Options::new(folder) };
        let options = with_threads(options, self.threads);
        let code = carry_out(&study, &options, &self.question, global)?;
        let shown = path.display();
        global.say(format_args!("`onefold study report {shown} -o report.html` draws it"));
        Ok(code)
    }

    fn text(&self) -> Result<GridText, CliError> {
        let mut grid = GridText { name: self.name.clone(), ..GridText::default() };
        // The study lies in another folder than the files.
        let file = |path: &PathBuf| {
            let whole = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            whole.display().to_string()
        };
        let files = |paths: &[PathBuf]| paths.iter().map(file).collect::<Vec<_>>();
        let seeds = self.seeds.iter().map(u64::to_string).collect();
        let axes = [
            ("preset", self.preset.clone()),
            ("config", files(&self.config)),
            ("size", self.size.clone()),
        ];
        let loads =
            [("trace", files(&self.trace)), ("workload", self.workload.clone()), ("seed", seeds)];
        let add = |grid: &mut GridText, axes: [(&str, Vec<String>); 3]| {
            for (axis, values) in axes {
                if !values.is_empty() {
                    grid.add(axis, values);
                }
            }
        };
        add(&mut grid, axes);
        for set in &self.sets {
            grid.set(set).map_err(|problem| {
                CliError::new(Exit::Usage, "usage::set", format!("--set: {problem}"))
            })?;
        }
        add(&mut grid, loads);
        let names = |names: &String| names.split(',').map(|name| name.trim().to_owned()).collect();
        grid.zip = self.zip.iter().map(names).collect();
        grid.metrics.clone_from(&self.question.metrics);
        Ok(grid)
    }
}

/// The folder of the results of a study, if none is named: that of a grid is where its file lies.
pub(super) fn results_of(study: &Path) -> PathBuf {
    let folder = study.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder
        && study.file_name().is_some_and(|name| name == STUDY)
        && folder.join("results.jsonl").exists()
    {
        return folder.to_path_buf();
    }
    let stem = study.file_stem().unwrap_or_default().to_string_lossy();
    PathBuf::from(format!("{stem}-results"))
}
