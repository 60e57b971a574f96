//! `results.parquet`: one row per point and tenant.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{
    Compression, ConvertedType, LogicalType, Repetition, Type as Physical, ZstdLevel,
};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use onefold_sim::result::Remap;

use crate::row::AccessRow;
use crate::{DeviceRow, Row, SCHEMA, TenantRow};

/// One cell of the table.
enum Value {
    Text(String),
    Count(u64),
    Real(f64),
    Flag(bool),
}

type Column = (&'static str, Physical, fn(&Row, &TenantRow) -> Value);

const TEXT: Physical = Physical::BYTE_ARRAY;
const COUNT: Physical = Physical::INT64;
const REAL: Physical = Physical::DOUBLE;
const FLAG: Physical = Physical::BOOLEAN;

/// Every column: name, type, value.
const COLUMNS: &[Column] = &[
    ("key", TEXT, |row, _| Value::Text(row.key.clone())),
    ("workload", TEXT, |row, _| Value::Text(row.workload.clone())),
    ("policy", TEXT, |row, _| Value::Text(row.policy.clone())),
    ("label", TEXT, |row, _| Value::Text(row.label.clone())),
    ("bound", FLAG, |row, _| Value::Flag(row.bound)),
    ("size_bytes", COUNT, |row, _| Value::Count(row.size_bytes)),
    ("slots", COUNT, |row, _| Value::Count(row.slots.into())),
    ("error", TEXT, |row, _| Value::Text(row.error.clone().unwrap_or_default())),
    ("scale", REAL, |row, _| Value::Real(row.scale)),
    ("seed", COUNT, |row, _| Value::Count(row.seed)),
    ("version", TEXT, |row, _| Value::Text(row.onefold.version.clone())),
    ("commit", TEXT, |row, _| Value::Text(row.onefold.commit.clone())),
    ("cpu_s", REAL, |row, _| Value::Real(row.cpu_s)),
    ("lookups", COUNT, |row, _| Value::Count(row.lookups)),
    ("tenant", TEXT, |_, tenant| Value::Text(tenant.name.clone())),
    ("target", FLAG, |_, tenant| Value::Flag(tenant.target)),
    ("read_requests", COUNT, |_, tenant| Value::Count(tenant.reads.requests)),
    ("read_full_hits", COUNT, |_, tenant| Value::Count(tenant.reads.full_hits)),
    ("read_pages", COUNT, |_, tenant| Value::Count(tenant.reads.pages)),
    ("read_hits", COUNT, |_, tenant| Value::Count(tenant.reads.hits)),
    ("read_bytes_hit", COUNT, |_, tenant| Value::Count(tenant.reads.bytes_hit)),
    ("write_requests", COUNT, |_, tenant| Value::Count(tenant.writes.requests)),
    ("write_full_hits", COUNT, |_, tenant| Value::Count(tenant.writes.full_hits)),
    ("write_pages", COUNT, |_, tenant| Value::Count(tenant.writes.pages)),
    ("write_hits", COUNT, |_, tenant| Value::Count(tenant.writes.hits)),
    ("write_bytes_hit", COUNT, |_, tenant| Value::Count(tenant.writes.bytes_hit)),
    ("hit_ratio", REAL, |_, tenant| Value::Real(hit_ratio(tenant))),
    ("trim_requests", COUNT, |_, tenant| Value::Count(tenant.trim_requests)),
    ("trim_pages", COUNT, |_, tenant| Value::Count(tenant.trim_pages)),
    ("flash_reads", COUNT, |_, tenant| Value::Count(tenant.flash_reads)),
    ("pad_reads", COUNT, |_, tenant| Value::Count(tenant.pad_reads)),
    ("pages_programmed", COUNT, |_, tenant| Value::Count(tenant.pages_programmed)),
    ("programs", COUNT, |_, tenant| Value::Count(tenant.programs)),
    ("short_programs", COUNT, |_, tenant| Value::Count(tenant.short_programs)),
    ("overwritten", COUNT, |_, tenant| Value::Count(tenant.overwritten)),
    ("trim_discards", COUNT, |_, tenant| Value::Count(tenant.trim_discards)),
    ("dirty", COUNT, |_, tenant| Value::Count(tenant.dirty)),
    ("read_latency_ns", REAL, |_, tenant| Value::Real(tenant.latency_ns.read.mean)),
    ("write_latency_ns", REAL, |_, tenant| Value::Real(tenant.latency_ns.write.mean)),
    ("bandwidth", REAL, |row, _| Value::Real(of_device(row, |d| d.bandwidth))),
    ("waf", REAL, |row, _| Value::Real(of_device(row, |d| d.waf))),
    ("device_write_latency_ns", REAL, |row, _| Value::Real(of_device(row, |d| d.write_latency_ns))),
    ("virtual_ns", COUNT, |row, _| Value::Count(row.device.as_ref().map_or(0, |d| d.virtual_ns))),
    ("deduplicated", COUNT, |row, _| Value::Count(of_remap(row, |remap| remap.deduplicated))),
    ("log_full", COUNT, |row, _| Value::Count(of_remap(row, |remap| remap.log_full))),
    ("look_up_ns", COUNT, |row, _| Value::Count(of_remap(row, |remap| remap.lookup_ns))),
];

/// 0 where the row is not of a device.
fn of_device(row: &Row, number: fn(&DeviceRow) -> f64) -> f64 {
    row.device.as_ref().map_or(0.0, |device| number(device))
}

fn of_remap(row: &Row, number: fn(&Remap) -> u64) -> u64 {
    row.device.as_ref().and_then(|device| device.remap.as_ref()).map_or(0, number)
}

fn hit_ratio(tenant: &TenantRow) -> f64 {
    let sum = |of: fn(&AccessRow) -> u64| of(&tenant.reads) + of(&tenant.writes);
    crate::row::ratio(sum(|access| access.hits), sum(|access| access.pages))
}

/// Writes all rows as one row group.
pub(super) fn write(out: impl Write + Send, rows: &[Row]) -> Result<()> {
    let pair = KeyValue::new("schema".to_owned(), SCHEMA.to_owned());
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_key_value_metadata(Some(vec![pair]))
        .build();
    let mut file = SerializedFileWriter::new(out, schema()?, Arc::new(properties))?;
    let nobody = TenantRow::default();
    let mut lines: Vec<(&Row, &TenantRow)> = Vec::new();
    for row in rows {
        lines.extend(row.tenants.iter().map(|tenant| (row, tenant)));
        if row.tenants.is_empty() {
            lines.push((row, &nobody));
        }
    }
    let mut group = file.next_row_group()?;
    for column in COLUMNS {
        write_column(&mut group, column, &lines)?;
    }
    group.close()?;
    file.close()?;
    Ok(())
}

fn schema() -> Result<Arc<Type>> {
    let field = |(name, physical, _): &Column| {
        let mut field =
            Type::primitive_type_builder(name, *physical).with_repetition(Repetition::REQUIRED);
        if *physical == TEXT {
            field = field.with_logical_type(Some(LogicalType::String));
        } else if *physical == COUNT {
            field = field.with_converted_type(ConvertedType::UINT_64);
        }
        field.build().map(Arc::new)
    };
    let fields = COLUMNS.iter().map(field).collect::<Result<Vec<_>>>()?;
    Type::group_type_builder("onefold_study").with_fields(fields).build().map(Arc::new)
}

fn write_column<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    (_, physical, value): &Column,
    lines: &[(&Row, &TenantRow)],
) -> Result<()> {
    let missing = || ParquetError::General("the schema has no further column".to_owned());
    let mut column = group.next_column()?.ok_or_else(missing)?;
    let values = lines.iter().map(|(row, tenant)| value(row, tenant));
    match *physical {
        TEXT => {
            let texts = values.filter_map(|value| match value {
                Value::Text(text) => Some(ByteArray::from(text.into_bytes())),
                _ => None,
            });
            let texts: Vec<ByteArray> = texts.collect();
            column.typed::<ByteArrayType>().write_batch(&texts, None, None)?;
        }
        COUNT => {
            let counts = values.filter_map(|value| match value {
                Value::Count(count) => Some(count.cast_signed()),
                _ => None,
            });
            let counts: Vec<i64> = counts.collect();
            column.typed::<Int64Type>().write_batch(&counts, None, None)?;
        }
        REAL => {
            let reals = values.filter_map(|value| match value {
                Value::Real(real) => Some(real),
                _ => None,
            });
            let reals: Vec<f64> = reals.collect();
            column.typed::<DoubleType>().write_batch(&reals, None, None)?;
        }
        _ => {
            let flags = values.filter_map(|value| match value {
                Value::Flag(flag) => Some(flag),
                _ => None,
            });
            let flags: Vec<bool> = flags.collect();
            column.typed::<BoolType>().write_batch(&flags, None, None)?;
        }
    }
    column.close()
}
