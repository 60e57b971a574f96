//! Writing Parquet.

use std::io::Write;
use std::sync::Arc;

use onefold_trace::Record;
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{
    ByteArray, FixedLenByteArray, FixedLenByteArrayType, Int32Type, Int64Type,
};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use super::{GROUP_ROWS, SCHEMA, SCHEMA_NAME, key};
use crate::source::Meta;

/// Writes records as row groups.
pub(crate) struct ParquetWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    rows: Vec<Record>,
}

impl<W: Write + Send> std::fmt::Debug for ParquetWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ParquetWriter").field("rows", &self.rows.len()).finish_non_exhaustive()
    }
}

impl<W: Write + Send> ParquetWriter<W> {
    pub(crate) fn new(out: W, meta: &Meta, options: &str) -> Result<Self> {
        let pair = |key: &str, value: String| KeyValue::new(key.to_owned(), value);
        let mut pairs = vec![
            pair(key::SCHEMA, SCHEMA_NAME.to_owned()),
            pair(key::SOURCE_FORMAT, meta.spec.format.name().to_owned()),
            pair(key::DEVICES, meta.devices.join("\n")),
            pair(key::OPTIONS, options.to_owned()),
            pair(key::SHA256, meta.sha256.clone()),
        ];
        if let Some(epoch) = meta.epoch_unix_ns {
            pairs.push(pair(key::EPOCH, epoch.to_string()));
        }
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_key_value_metadata(Some(pairs))
            .build();
        let schema = Arc::new(parse_message_type(SCHEMA)?);
        let file = SerializedFileWriter::new(out, schema, Arc::new(properties))?;
        Ok(Self { file, rows: Vec::new() })
    }

    pub(crate) fn push(&mut self, record: &Record) -> Result<()> {
        self.rows.push(record.clone());
        if self.rows.len() >= GROUP_ROWS { self.group() } else { Ok(()) }
    }

    pub(crate) fn finish(mut self) -> Result<W> {
        self.group()?;
        self.file.into_inner()
    }

    /// Writes the rows held as a row group.
    fn group(&mut self) -> Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let rows = std::mem::take(&mut self.rows);
        let mut group = self.file.next_row_group()?;
        int64(&mut group, &rows, |r| r.t_ns)?;
        int32(&mut group, &rows, |r| r.op.code().into())?;
        int32(&mut group, &rows, |r| r.dev.into())?;
        int64(&mut group, &rows, |r| r.offset)?;
        int64(&mut group, &rows, |r| r.len)?;
        int32(&mut group, &rows, |r| r.flags.bits().into())?;
        optional64(&mut group, &rows, |r| r.lat_ns)?;
        optional64(&mut group, &rows, |r| (r.aux != 0).then_some(r.aux))?;
        optional32(&mut group, &rows, |r| r.status)?;
        optional32(&mut group, &rows, |r| r.client)?;
        digests(&mut group, &rows)?;
        group.close()?;
        self.rows = rows;
        self.rows.clear();
        Ok(())
    }
}

type Group<'a, W> = SerializedRowGroupWriter<'a, W>;

/// The next column of a row group.
fn column<'a, W: Write + Send>(
    group: &'a mut Group<'_, W>,
) -> Result<parquet::file::writer::SerializedColumnWriter<'a>> {
    let missing = || ParquetError::General("the schema has no further column".to_owned());
    group.next_column()?.ok_or_else(missing)
}

fn int64<W: Write + Send>(
    group: &mut Group<'_, W>,
    rows: &[Record],
    value: impl Fn(&Record) -> u64,
) -> Result<()> {
    let values: Vec<i64> = rows.iter().map(|row| value(row).cast_signed()).collect();
    let mut column = column(group)?;
    column.typed::<Int64Type>().write_batch(&values, None, None)?;
    column.close()
}

fn int32<W: Write + Send>(
    group: &mut Group<'_, W>,
    rows: &[Record],
    value: impl Fn(&Record) -> i32,
) -> Result<()> {
    let values: Vec<i32> = rows.iter().map(value).collect();
    let mut column = column(group)?;
    column.typed::<Int32Type>().write_batch(&values, None, None)?;
    column.close()
}

fn optional64<W: Write + Send>(
    group: &mut Group<'_, W>,
    rows: &[Record],
    value: impl Fn(&Record) -> Option<u64>,
) -> Result<()> {
    let levels: Vec<i16> = rows.iter().map(|row| i16::from(value(row).is_some())).collect();
    let values: Vec<i64> = rows.iter().filter_map(value).map(u64::cast_signed).collect();
    let mut column = column(group)?;
    column.typed::<Int64Type>().write_batch(&values, Some(&levels), None)?;
    column.close()
}

/// A number that is null where it is zero.
fn optional32<W: Write + Send>(
    group: &mut Group<'_, W>,
    rows: &[Record],
    value: impl Fn(&Record) -> u16,
) -> Result<()> {
    let levels: Vec<i16> = rows.iter().map(|row| i16::from(value(row) != 0)).collect();
    let values: Vec<i32> = rows.iter().map(value).filter(|v| *v != 0).map(i32::from).collect();
    let mut column = column(group)?;
    column.typed::<Int32Type>().write_batch(&values, Some(&levels), None)?;
    column.close()
}

/// Lists: definition level 0 is no list, 1 an empty one, 2 an element; repetition level 0 starts a
/// row.
fn digests<W: Write + Send>(group: &mut Group<'_, W>, rows: &[Record]) -> Result<()> {
    let mut values = Vec::new();
    let mut definition = Vec::new();
    let mut repetition = Vec::new();
    for row in rows {
        let Some(digests) = row.digests.as_deref() else {
            definition.push(0);
            repetition.push(0);
            continue;
        };
        if digests.is_empty() {
            definition.push(1);
            repetition.push(0);
        }
        for (at, digest) in digests.iter().enumerate() {
            definition.push(2);
            repetition.push(i16::from(at > 0));
            values.push(FixedLenByteArray::from(ByteArray::from(digest.to_vec())));
        }
    }
    let mut column = column(group)?;
    column.typed::<FixedLenByteArrayType>().write_batch(
        &values,
        Some(&definition),
        Some(&repetition),
    )?;
    column.close()
}
