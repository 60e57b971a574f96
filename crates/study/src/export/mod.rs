//! The results as one JSON object and as one table in Parquet and CSV, for other programs.

mod csv;
mod parquet;
mod table;

use std::io::{self, Write};
use std::path::Path;

use serde_json::{Value, json};

use table::Table;
pub use table::columns_markdown;

use crate::file::Study;
use crate::in_one_step::in_one_step;
use crate::summary::Summary;
use crate::{Program, Row, SCHEMA, StudyError};

/// Writes `results.json`, `results.csv` and `results.parquet` into the folder, each in one step.
pub(crate) fn write(
    study: &Study,
    folder: &Path,
    program: &Program,
    summary: &Summary,
) -> Result<(), StudyError> {
    in_one_step(&folder.join("results.json"), |file| {
        serde_json::to_writer_pretty(&mut *file, &object(study, program, summary))?;
        file.write_all(b"\n")
    })?;
    let table = Table::new(&summary.rows);
    in_one_step(&folder.join("results.csv"), |file| csv::write(file, &table))?;
    in_one_step(&folder.join("results.parquet"), |file| {
        parquet::write(file, &table).map_err(io::Error::other)
    })
}

/// The results as one object.
pub(crate) fn object(study: &Study, program: &Program, summary: &Summary) -> Value {
    let rows: Vec<&Row> = summary.rows.iter().collect();
    json!({
        "schema": SCHEMA,
        "onefold": program,
        "study": {"name": study.name, "description": study.description, "seed": study.seed,
                  "device_bytes": study.device_bytes, "entry_bytes": study.entry_bytes,
                  "flash_page_bytes": study.flash_page_bytes, "charge": study.charge.name(),
                  "volatile": study.volatile, "preset": study.preset},
        "partial": summary.partial,
        "left": summary.left,
        "rows": rows,
    })
}

impl Summary {
    /// The results as one JSON object, as in `results.json`.
    #[must_use]
    pub fn to_json(&self, study: &Study, program: &Program) -> Value {
        object(study, program, self)
    }
}
