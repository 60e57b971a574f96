//! What a program cost, hop by hop: the program, the file system, drives.
//!
//! | module | what |
//! |---|---|
//! | [`files`] | what the file system wrote: which file, journal, metadata, unknown |
//! | [`drives`] | what drives program for it, in virtual time, with a volume and without |
//! | [`budget`] | limits on any of the numbers |
//!
//! [`Account`] holds all of it, and prints it as a table, JSON, HTML or test cases.

mod behind;
pub mod budget;
pub mod drives;
pub mod files;
mod page;
mod table;

use std::collections::BTreeMap;

use onefold_sim::result::{Program, bytes};
use serde::{Deserialize, Serialize};

use crate::junit::{Case, Suite};
pub use behind::{BehindError, volume_keys};
pub use budget::{Budget, BudgetError, Verdict};
pub use drives::{Drive, DriveCost, DrivesError, Life, Replay};
pub use files::{ByOwner, FileCost, FileSystem, Look, Owner, Owners, Snapshot, Tally};

/// Name and version of the form, as its key `schema`.
pub const SCHEMA: &str = "onefold.account/1";

/// What a program cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Account {
    /// [`SCHEMA`].
    pub schema: String,
    /// The program that made it.
    pub onefold: Program,
    /// Seed of everything random.
    pub seed: u64,
    /// The command line that was run.
    pub command: Vec<String>,
    /// Seconds that it ran.
    pub seconds: f64,
    /// Bytes of its disk.
    pub disk_bytes: u64,
    /// State of drives before, as of `--age`.
    pub age: String,
    /// Bytes that the program dirtied; `null` if nobody counted them.
    pub program: Option<u64>,
    /// What the file system sent to the disk; `null` without a recording.
    pub file_system: Option<FileSystem>,
    /// What drives did, in the order of the list.
    pub drives: Vec<DriveCost>,
    /// What became of budgets.
    pub budgets: Vec<Verdict>,
}

impl Account {
    /// Judges budgets. Whether all of them hold.
    pub fn judge(&mut self, budgets: &[Budget]) -> bool {
        self.budgets = budgets.iter().flat_map(|budget| budget.judge(self)).collect();
        self.budgets.iter().all(|verdict| verdict.holds)
    }

    /// The account as indented JSON with a final line break.
    #[must_use]
    pub fn json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self)
            .expect("an account has only string keys, so it has a JSON form");
        text.push('\n');
        text
    }

    /// The account as tables for people.
    #[must_use]
    pub fn table(&self) -> String {
        table::of(self)
    }

    /// The account as one HTML file with pictures of the flow, and with what was found about power cuts.
    #[must_use]
    pub fn html(&self, power_cuts: &[String]) -> String {
        page::of(self, power_cuts)
    }

    /// The budgets as test cases.
    #[must_use]
    pub fn suite(&self) -> Suite {
        let case = |verdict: &Verdict| Case {
            name: verdict.budget.clone(),
            seconds: 0.0,
            failure: (!verdict.holds).then(|| verdict.found.clone()),
            details: verdict.blame.clone().unwrap_or_default(),
        };
        Suite { name: "budget".to_owned(), cases: self.budgets.iter().map(case).collect() }
    }

    /// The name of the command, for titles.
    fn title(&self) -> String {
        match self.command.join(" ") {
            command if command.is_empty() => "What it cost".to_owned(),
            command => format!("What {command} cost"),
        }
    }

    /// How drives were prepared, in words; `None` without drives.
    fn aged(&self) -> Option<String> {
        let first = self.drives.first()?;
        let waf = |drive: &DriveCost| {
            let aged = drive.precondition.as_ref().map(|aged| aged.waf_last);
            aged.filter(|waf| *waf > 0.0).map(|waf| format!("{} {waf:.2}", drive.label()))
        };
        let wafs: Vec<String> = self.drives.iter().filter_map(waf).collect();
        let capacity = bytes(first.device.logical_bytes);
        let with = self.drives.iter().any(|drive| drive.volume.is_some());
        let why = if with { "so that a volume exports" } else { "so that they hold" };
        let made = format!("drives were made {capacity}, {why} the disk, and aged: {}", self.age);
        Some(match wafs.len() {
            0 => made,
            _ => format!("{made}; WAF of their last overwrites: {}", wafs.join(", ")),
        })
    }

    /// Of which drives the lives are, in words.
    fn lives(&self) -> String {
        let mut sizes: Vec<String> = self
            .drives
            .iter()
            .filter(|drive| drive.volume.is_none())
            .map(|drive| format!("{} {}", drive.name, bytes(drive.life.raw_bytes)))
            .collect();
        sizes.dedup();
        format!(
            "life: at the rate of this run, of drives with flash of {}; twice as much lasts twice as long",
            sizes.join(", ")
        )
    }

    /// What speaks against the numbers of drives, each doubt once.
    fn doubts(&self) -> Vec<String> {
        let mut doubts: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for drive in &self.drives {
            for warning in &drive.warnings {
                doubts.entry(warning).or_default().push(drive.label());
            }
        }
        let all = self.drives.len();
        let line = |(warning, labels): (&str, Vec<String>)| match labels.len() {
            of if of == all => format!("doubt: {warning}"),
            _ => format!("doubt, {}: {warning}", labels.join(", ")),
        };
        doubts.into_iter().map(line).collect()
    }
}
