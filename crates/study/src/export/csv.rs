//! `results.csv`: what is in `results.parquet`, empty where that has nothing.

use std::io::{self, Write};

use onefold_config::Typed;

use super::table::Table;

/// Writes a line of names and one per row.
pub(super) fn write(out: impl Write, table: &Table) -> io::Result<()> {
    let mut file = ::csv::Writer::from_writer(out);
    file.write_record(table.columns.iter().map(|column| &column.name))?;
    let lines = table.columns.first().map_or(0, |column| column.cells.len());
    for line in 0..lines {
        let cell = |cell: &Option<Typed>| match cell {
            None => String::new(),
            Some(Typed::Text(text)) => text.clone(),
            Some(Typed::Count(count)) => count.to_string(),
            Some(Typed::Real(number)) => number.to_string(),
            Some(Typed::Flag(flag)) => flag.to_string(),
        };
        file.write_record(table.columns.iter().map(|column| cell(&column.cells[line])))?;
    }
    file.flush()
}
