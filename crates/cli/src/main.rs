//! The `onefold` command: parse, call, print.

mod cmd;
mod error;
mod exit;
mod interrupt;
mod output;
mod replace;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::exit::Exit;
use crate::output::Global;

/// Write every flash page once: simulate, serve and measure flash storage.
#[derive(Debug, Parser)]
#[command(name = "onefold", version, propagate_version = true, max_term_width = 100, after_long_help = Exit::help())]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a program on a disk that keeps a tape: what it writes to flash, and which power cuts it survives
    Try(cmd::r#try::Try),
    /// Say in the tape of `onefold try` that something is promised from now on; for the program that it runs
    Mark(cmd::r#try::Mark),
    /// Power cuts of a tape: list their outcomes, check them, look at one
    #[command(subcommand)]
    Crash(cmd::crash::Crash),
    /// Look into, convert and generate block traces
    #[command(subcommand)]
    Trace(cmd::trace::Trace),
    /// Run a workload or a trace on a modelled SSD, in virtual time
    #[command(subcommand)]
    Sim(cmd::sim::Sim),
    /// Compare buffer policies over sizes and workloads, in parallel and resumable
    #[command(subcommand)]
    Study(cmd::study::Study),
    /// Create, serve, check and inspect an emulated SSD
    #[command(subcommand)]
    Ssd(cmd::ssd::Ssd),
    /// Create, serve, check and inspect a volume: random writes become sequential
    #[command(subcommand)]
    Volume(cmd::volume::Volume),
    /// Create, serve, check and inspect layers on devices, as a configuration has them
    #[command(subcommand)]
    Stack(cmd::stack::Stack),
    /// Turn results into one self-contained HTML report, or into one table (--format table)
    Report(cmd::report::Report),
    /// Explain configuration keys and presets
    #[command(subcommand)]
    Config(cmd::config::Config),
    /// Print what a shell needs to complete the commands of this program
    Completions(cmd::packaging::Completions),
    /// Write the manual pages of this program into a folder
    Man(cmd::packaging::Man),
}

impl Command {
    /// Whether `-o` names the file of what else goes to standard output.
    const fn prints(&self) -> bool {
        match self {
            Self::Crash(crash) => crash.prints(),
            Self::Trace(trace) => trace.prints(),
            Self::Study(study) => study.prints(),
            _ => true,
        }
    }

    /// Whether the result may be one of tests.
    const fn tests(&self) -> bool {
        match self {
            Self::Try(_) => true,
            Self::Crash(crash) => crash.tests(),
            _ => false,
        }
    }

    /// Whether the result may be a page of HTML.
    const fn draws(&self) -> bool {
        match self {
            Self::Trace(trace) => trace.draws(),
            Self::Study(study) => study.draws(),
            Self::Report(_) | Self::Try(_) => true,
            _ => false,
        }
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    cli.global.start_logging();
    cli.global.interrupt.watch(cli.global.quiet);
    let checked = if cli.command.prints() { cli.global.expect_output() } else { Ok(()) };
    let drawn = if cli.command.draws() { Ok(()) } else { cli.global.expect_no_pictures() };
    let tested = if cli.command.tests() { Ok(()) } else { cli.global.expect_no_tests() };
    let result = drawn.and(tested).and(checked).and_then(|()| match cli.command {
        Command::Try(tried) => tried.run(&cli.global),
        Command::Mark(mark) => mark.run(),
        Command::Crash(crash) => crash.run(&cli.global),
        Command::Trace(trace) => trace.run(&cli.global),
        Command::Sim(sim) => sim.run(&cli.global),
        Command::Study(study) => study.run(&cli.global),
        Command::Ssd(ssd) => ssd.run(&cli.global),
        Command::Volume(volume) => volume.run(&cli.global),
        Command::Stack(stack) => stack.run(&cli.global),
        Command::Report(report) => report.run(&cli.global),
        Command::Config(config) => config.run(&cli.global),
        Command::Completions(completions) => completions.run(Cli::command(), &cli.global),
        Command::Man(man) => man.run(Cli::command(), &cli.global),
    });
    match result {
        Ok(code) => code,
        Err(error) => error.report(cli.global.colour_on_stderr()),
    }
}
