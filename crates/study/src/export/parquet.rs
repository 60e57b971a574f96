//! `results.parquet`.

use std::io::Write;
use std::sync::Arc;

use onefold_config::Typed;
use onefold_sim::result::ColumnKind;
use parquet::basic::{
    Compression, ConvertedType, LogicalType, Repetition, Type as Physical, ZstdLevel,
};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use super::table::{Column, Table};
use crate::SCHEMA;

/// Writes all rows as one row group.
pub(super) fn write(out: impl Write + Send, table: &Table) -> Result<()> {
    let pair = KeyValue::new("schema".to_owned(), SCHEMA.to_owned());
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_key_value_metadata(Some(vec![pair]))
        .build();
    let mut file = SerializedFileWriter::new(out, schema(table)?, Arc::new(properties))?;
    let mut group = file.next_row_group()?;
    for column in &table.columns {
        write_column(&mut group, column)?;
    }
    group.close()?;
    file.close()?;
    Ok(())
}

const fn physical(kind: ColumnKind) -> Physical {
    match kind {
        ColumnKind::Text => Physical::BYTE_ARRAY,
        ColumnKind::Count => Physical::INT64,
        ColumnKind::Real => Physical::DOUBLE,
        ColumnKind::Flag => Physical::BOOLEAN,
    }
}

fn schema(table: &Table) -> Result<Arc<Type>> {
    let field = |column: &Column| {
        let field = Type::primitive_type_builder(&column.name, physical(column.kind))
            .with_repetition(Repetition::OPTIONAL);
        let field = match column.kind {
            ColumnKind::Text => field.with_logical_type(Some(LogicalType::String)),
            ColumnKind::Count => field.with_converted_type(ConvertedType::UINT_64),
            ColumnKind::Real | ColumnKind::Flag => field,
        };
        field.build().map(Arc::new)
    };
    let fields = table.columns.iter().map(field).collect::<Result<Vec<_>>>()?;
    Type::group_type_builder("onefold_study").with_fields(fields).build().map(Arc::new)
}

fn write_column<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    column: &Column,
) -> Result<()> {
    match column.kind {
        ColumnKind::Text => values::<ByteArrayType, W>(group, column, |value| match value {
            Typed::Text(text) => Some(ByteArray::from(text.as_bytes().to_vec())),
            _ => None,
        }),
        ColumnKind::Count => values::<Int64Type, W>(group, column, |value| match value {
            Typed::Count(count) => Some(count.cast_signed()),
            _ => None,
        }),
        ColumnKind::Real => values::<DoubleType, W>(group, column, |value| match value {
            Typed::Real(number) => Some(*number),
            _ => None,
        }),
        ColumnKind::Flag => values::<BoolType, W>(group, column, |value| match value {
            Typed::Flag(flag) => Some(*flag),
            _ => None,
        }),
    }
}

/// Writes the values that are there, and where they are.
fn values<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    column: &Column,
    value: fn(&Typed) -> Option<T::T>,
) -> Result<()> {
    let missing = || ParquetError::General("the schema has no further column".to_owned());
    let mut out = group.next_column()?.ok_or_else(missing)?;
    let cells: Vec<Option<T::T>> =
        column.cells.iter().map(|cell| cell.as_ref().and_then(value)).collect();
    let levels: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
    let present: Vec<T::T> = cells.into_iter().flatten().collect();
    out.typed::<T>().write_batch(&present, Some(&levels), None)?;
    out.close()
}
