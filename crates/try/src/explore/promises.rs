//! What the program had promised when the power was cut.

use std::fs;
use std::path::Path;

use onefold_crash::Log;

use crate::TryError;
use crate::tape::Line;

/// A line or mark, and from when on it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promise {
    /// The last entry of the log when it was heard of.
    pub entry: u64,
    /// The text.
    pub text: String,
    /// Position of the log from which on it counts: behind the first flush after it, or where the program had ended.
    from: usize,
}

/// What was promised, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Promises {
    /// Lines that the program printed.
    lines: Vec<Promise>,
    /// Marks of the log.
    marks: Vec<Promise>,
}

impl Promises {
    /// The marks of a log, and the lines that a program printed. `ended`: the last entry when the program had ended; from there on
    /// everything counts that it said.
    #[must_use]
    pub fn new(log: &Log, lines: &[Line], ended: Option<u64>) -> Self {
        let ended = ended.map(|entry| log.behind(entry));
        let line = |line: &Line| (line.entry, log.behind(line.entry), line.text.clone());
        let mark = |event: usize| {
            let text = log.mark(event)?;
            Some((log.events()[event].entry, event + 1, text.to_owned()))
        };
        Self {
            lines: counted(log, lines.iter().map(line), ended),
            marks: counted(log, (0..log.events().len()).filter_map(mark), ended),
        }
    }

    /// Positions from which on something more counts.
    #[must_use]
    pub fn positions(&self) -> Vec<usize> {
        self.lines.iter().chain(&self.marks).map(|promise| promise.from).collect()
    }

    /// What counts at a position: lines, and marks.
    #[must_use]
    pub fn at(&self, position: usize) -> (&[Promise], &[Promise]) {
        let counted = |all: &Vec<Promise>| all.partition_point(|one| one.from <= position);
        (&self.lines[..counted(&self.lines)], &self.marks[..counted(&self.marks)])
    }

    /// Writes what counts at a position into `stdout` and `marks` of a folder, a line each, for a check.
    ///
    /// # Errors
    /// The files cannot be written.
    pub fn write(&self, position: usize, folder: &Path) -> Result<(), TryError> {
        let (lines, marks) = self.at(position);
        for (name, promises) in [("stdout", lines), ("marks", marks)] {
            let path = folder.join(name);
            let line = |promise: &Promise| format!("{}\n", promise.text);
            let text: String = promises.iter().map(line).collect();
            fs::write(&path, text).map_err(TryError::io("write", &path))?;
        }
        Ok(())
    }

    /// The last one that counts at a position, and says something.
    #[must_use]
    pub fn last_at(&self, position: usize) -> Option<&Promise> {
        let (lines, marks) = self.at(position);
        let last = |all: &'_ [Promise]| all.iter().rposition(|one| !one.text.trim().is_empty());
        let both = [last(lines).map(|at| &lines[at]), last(marks).map(|at| &marks[at])];
        both.into_iter().flatten().max_by_key(|promise| promise.entry)
    }
}

/// Promises with the position from which on they count; others, which never do, are left out.
fn counted(
    log: &Log,
    texts: impl Iterator<Item = (u64, usize, String)>,
    ended: Option<usize>,
) -> Vec<Promise> {
    let mut promises = Vec::new();
    // The same flush covers many of them.
    let mut flushed = Some(0);
    for (entry, position, text) in texts {
        if flushed.is_some_and(|flushed| flushed <= position) {
            flushed = log.flushed(position);
        }
        let exit = ended.map(|ended| ended.max(position));
        let Some(from) = flushed.into_iter().chain(exit).min() else { continue };
        promises.push(Promise { entry, text, from });
    }
    promises
}
