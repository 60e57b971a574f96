//! Reading Parquet.

use std::fs::File;
use std::path::{Path, PathBuf};

use onefold_trace::{Digest, Flags, Record, Summary, TraceOp};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::{DataType, FixedLenByteArrayType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};

use super::{SCHEMA_NAME, key};
use crate::error::TraceFileError;

/// Reads a file row group by row group.
pub(crate) struct ParquetReader {
    path: PathBuf,
    file: SerializedFileReader<File>,
    group: usize,
    devices: Vec<String>,
    epoch_unix_ns: Option<u64>,
}

impl std::fmt::Debug for ParquetReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ParquetReader").field("path", &self.path).finish_non_exhaustive()
    }
}

impl ParquetReader {
    pub(crate) fn open(path: &Path) -> Result<Self, TraceFileError> {
        let file = File::open(path).map_err(TraceFileError::io(path, "open"))?;
        let failed =
            |problem: String| TraceFileError::Parquet { path: path.to_path_buf(), problem };
        let file = SerializedFileReader::new(file).map_err(|error| failed(error.to_string()))?;
        let pairs = file.metadata().file_metadata().key_value_metadata().cloned();
        let schema = value(pairs.as_deref(), key::SCHEMA);
        if schema.as_deref() != Some(SCHEMA_NAME) {
            let found = schema.unwrap_or_else(|| "absent".to_owned());
            return Err(failed(format!("schema is {found}, expected {SCHEMA_NAME}")));
        }
        let devices = value(pairs.as_deref(), key::DEVICES).unwrap_or_default();
        let devices = devices.lines().map(str::to_owned).collect();
        let epoch = value(pairs.as_deref(), key::EPOCH).and_then(|text| text.parse().ok());
        Ok(Self { path: path.to_path_buf(), file, group: 0, devices, epoch_unix_ns: epoch })
    }

    /// Appends the rows of the next row group; false at the end.
    pub(crate) fn next(&mut self, out: &mut Vec<Record>) -> Result<bool, TraceFileError> {
        if self.group >= self.file.num_row_groups() {
            return Ok(false);
        }
        let result = self
            .file
            .get_row_group(self.group)
            .map_err(Problem::from)
            .and_then(|group| rows(group.as_ref(), out));
        result.map_err(|Problem(problem)| TraceFileError::Parquet {
            path: self.path.clone(),
            problem: format!("row group {}: {problem}", self.group),
        })?;
        self.group += 1;
        Ok(true)
    }

    pub(crate) fn device_number(&self, name: &str) -> Option<u16> {
        let at = self.devices.iter().position(|known| known == name)?;
        u16::try_from(at).ok()
    }

    pub(crate) fn summary(&self) -> Summary {
        Summary {
            devices: self.devices.clone(),
            skipped_lines: 0,
            dropped_records: 0,
            epoch_base_ns: self.epoch_unix_ns,
            untimed: false,
            split_requests: false,
            device_bytes: None,
            warnings: Vec::new(),
        }
    }
}

fn value(pairs: Option<&[KeyValue]>, key: &str) -> Option<String> {
    pairs?.iter().find(|pair| pair.key == key)?.value.clone()
}

struct Problem(String);

impl From<ParquetError> for Problem {
    fn from(error: ParquetError) -> Self {
        Self(error.to_string())
    }
}

/// A column by name.
fn column<T: DataType>(
    group: &dyn RowGroupReader,
    name: &str,
) -> Result<Option<(ColumnReaderImpl<T>, usize)>, Problem> {
    let schema = group.metadata().schema_descr_ptr();
    let at = schema
        .columns()
        .iter()
        .position(|column| column.path().parts().first().is_some_and(|part| part == name));
    let Some(at) = at else { return Ok(None) };
    let physical = schema.column(at).physical_type();
    if physical != T::get_physical_type() {
        let expected = T::get_physical_type();
        return Err(Problem(format!("column {name} is {physical}, expected {expected}")));
    }
    let reader: ColumnReader = group.get_column_reader(at)?;
    let rows = usize::try_from(group.metadata().num_rows())
        .map_err(|_| Problem("the count of rows is negative".to_owned()))?;
    Ok(Some((get_typed_column_reader(reader), rows)))
}

/// All values of a required column.
fn required<T: DataType>(group: &dyn RowGroupReader, name: &str) -> Result<Vec<T::T>, Problem> {
    let Some((mut reader, rows)) = column::<T>(group, name)? else {
        return Err(Problem(format!("column {name} is missing")));
    };
    let mut values = Vec::new();
    let mut definition = Vec::new();
    reader.read_records(rows, Some(&mut definition), None, &mut values)?;
    if values.len() != rows {
        return Err(Problem(format!("column {name} has {} values, expected {rows}", values.len())));
    }
    Ok(values)
}

/// The values of an optional column, one per row; all absent if the column is.
fn optional<T: DataType>(
    group: &dyn RowGroupReader,
    name: &str,
    count: usize,
) -> Result<Vec<Option<T::T>>, Problem> {
    let Some((mut reader, rows)) = column::<T>(group, name)? else {
        return Ok(vec![None; count]);
    };
    let mut values = Vec::new();
    let mut definition = Vec::new();
    reader.read_records(rows, Some(&mut definition), None, &mut values)?;
    let mut values = values.into_iter();
    let spread: Vec<_> =
        definition.iter().map(|level| if *level > 0 { values.next() } else { None }).collect();
    if spread.len() != count {
        return Err(Problem(format!("column {name} has {} rows, expected {count}", spread.len())));
    }
    Ok(spread)
}

type DigestRows = Vec<Option<Box<[Digest]>>>;

fn digest_rows(group: &dyn RowGroupReader, count: usize) -> Result<DigestRows, Problem> {
    let Some((mut reader, rows)) = column::<FixedLenByteArrayType>(group, "digests")? else {
        return Ok(vec![None; count]);
    };
    let (mut definition, mut repetition, mut values) = (Vec::new(), Vec::new(), Vec::new());
    reader.read_records(rows, Some(&mut definition), Some(&mut repetition), &mut values)?;
    let mut values = values.iter();
    let mut lists: Vec<Option<Vec<Digest>>> = Vec::new();
    for (defined, repeated) in definition.iter().zip(&repetition) {
        if *repeated == 0 {
            lists.push((*defined > 0).then(Vec::new));
        }
        if *defined > 1
            && let (Some(Some(list)), Some(value)) = (lists.last_mut(), values.next())
        {
            let digest = value.data().try_into();
            list.push(digest.map_err(|_| Problem("a digest is not 16 bytes long".to_owned()))?);
        }
    }
    if lists.len() != count {
        return Err(Problem(format!("column digests has {} rows, expected {count}", lists.len())));
    }
    Ok(lists.into_iter().map(|list| list.map(Vec::into_boxed_slice)).collect())
}

fn rows(group: &dyn RowGroupReader, out: &mut Vec<Record>) -> Result<(), Problem> {
    let t_ns = required::<Int64Type>(group, "t_ns")?;
    let op = required::<Int32Type>(group, "op")?;
    let dev = required::<Int32Type>(group, "dev")?;
    let offset = required::<Int64Type>(group, "offset")?;
    let len = required::<Int64Type>(group, "len")?;
    let flags = required::<Int32Type>(group, "flags")?;
    let lat_ns = optional::<Int64Type>(group, "lat_ns", t_ns.len())?;
    let aux = optional::<Int64Type>(group, "aux", t_ns.len())?;
    let status = optional::<Int32Type>(group, "status", t_ns.len())?;
    let client = optional::<Int32Type>(group, "client", t_ns.len())?;
    let digests = digest_rows(group, t_ns.len())?;
    for (row, digests) in digests.into_iter().enumerate() {
        let (offset, len) = (offset[row].cast_unsigned(), len[row].cast_unsigned());
        let code = narrow::<u8>("op", op[row])?;
        let op = TraceOp::from_code(code)
            .ok_or_else(|| Problem(format!("row {row}: operation {code} names nothing")))?;
        let source = aux[row].map_or(0, i64::cast_unsigned);
        let remaps = op == TraceOp::Remap;
        if offset.checked_add(len).is_none() || (op.is_data() && !(1..=1 << 32).contains(&len)) {
            return Err(Problem(format!("row {row}: request of {len} bytes at {offset}")));
        }
        if remaps && (len == 0 || source.checked_add(len).is_none()) {
            return Err(Problem(format!(
                "row {row}: remap of {len} bytes from {source}, expected some bytes that end below 2^64"
            )));
        }
        let mut record = Record::new(t_ns[row].cast_unsigned(), op, offset, len);
        record.dev = narrow("dev", dev[row])?;
        record.flags = Flags::from_bits(narrow("flags", flags[row])?);
        record.lat_ns = lat_ns[row].map(i64::cast_unsigned);
        record.aux = source;
        record.status = narrow("status", status[row].unwrap_or(0))?;
        record.client = narrow("client", client[row].unwrap_or(0))?;
        record.digests = digests;
        out.push(record);
    }
    Ok(())
}

fn narrow<T: TryFrom<i32>>(column: &str, value: i32) -> Result<T, Problem> {
    T::try_from(value).map_err(|_| Problem(format!("column {column} holds {value}")))
}
