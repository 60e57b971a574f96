//! What `onefold try` says in the end.

use std::fmt::Write;
use std::process::ExitCode;

use onefold_crash::Log;
use onefold_try::account::Account;
use onefold_try::explore::{Checks, Report, Shard};
use onefold_try::junit;
use onefold_try::run::Ran;
use serde_json::{Value, json};

use crate::cmd::crash::report::{self, Context};
use crate::error::Exit;
use crate::output::{Global, Named};

/// All that is known of a program that was tried.
pub(super) struct Tried<'a> {
    pub(super) ran: &'a Ran,
    pub(super) account: Account,
    /// What was found in states after power cuts, if any were looked at.
    pub(super) cuts: Option<Cuts>,
    /// The folder of the tape, if it stays.
    pub(super) tape: Option<String>,
    pub(super) seed: u64,
}

/// What was found in states after power cuts.
pub(super) struct Cuts {
    pub(super) report: Report,
    pub(super) checks: Checks,
    pub(super) log: std::sync::Arc<Log>,
}

impl Tried<'_> {
    fn context<'a>(&'a self, cuts: &'a Cuts) -> Context<'a> {
        Context {
            log: &cuts.log,
            named: self.tape.as_deref(),
            checks: &cuts.checks,
            shard: Shard::WHOLE,
            seed: self.seed,
        }
    }

    /// In the format that was asked for.
    pub(super) fn text(&self, global: &Global) -> String {
        match global.named {
            Some(Named::Json) => format!("{:#}\n", self.json()),
            Some(Named::Junit) => self.junit(),
            Some(Named::Html) => self.html(),
            _ => self.table(),
        }
    }

    fn table(&self) -> String {
        let mut text = self.account.table();
        // Writing to a string cannot fail.
        if let Some(cuts) = &self.cuts {
            let _ =
                write!(text, "\npower cuts: {}", report::table(&cuts.report, &self.context(cuts)));
            if cuts.checks.command.is_none() {
                let check = cuts.checks.fs.check_command();
                let _ = writeln!(text, "no --check: only mounting and `{check}` counted");
            }
        }
        text
    }

    /// As a page with pictures.
    pub(super) fn html(&self) -> String {
        let found = self
            .cuts
            .as_ref()
            .map_or_else(String::new, |cuts| report::table(&cuts.report, &self.context(cuts)));
        let lines = found.lines().filter(|line| !line.is_empty()).map(str::to_owned);
        self.account.html(&lines.collect::<Vec<_>>())
    }

    fn json(&self) -> Value {
        json!({
            "schema": "onefold.try/1",
            "program": self.ran.tape.about().program,
            "is_late": self.ran.end.is_late,
            "is_full": self.ran.end.is_full,
            "left_processes": self.ran.end.left,
            "account": self.account,
            "power_cuts": self.cuts.as_ref().map(|cuts| report::json(&cuts.report, &self.context(cuts))),
        })
    }

    fn junit(&self) -> String {
        let cuts = self.cuts.iter().map(|cuts| cuts.report.suite());
        junit::document(&std::iter::once(self.account.suite()).chain(cuts).collect::<Vec<_>>())
    }

    /// The code of the program if it failed, as a shell has it; else what became of power cuts and budgets.
    pub(super) fn code(&self) -> ExitCode {
        let program = self.ran.tape.about().program.clone().unwrap_or_default();
        let signal = program.signal.map(|signal| 128 + signal);
        let code = program.exit_code.or(signal).unwrap_or(0);
        if code != 0 {
            return ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX));
        }
        let fails = self.cuts.as_ref().is_some_and(|cuts| !cuts.report.failing.is_empty());
        let is_broken = self.account.budgets.iter().any(|verdict| !verdict.holds);
        match (fails, is_broken) {
            (true, _) => Exit::PowerCut.into(),
            (false, true) => Exit::Budget.into(),
            (false, false) => ExitCode::SUCCESS,
        }
    }
}
