//! Parquet: one row per request, schema `onefold.trace/1`.
//!
//! Columns `t_ns` u64, `op` u8, `dev` u16, `offset` u64, `len` u64, `flags` u8, `lat_ns` u64?,
//! `aux` u64?, `digests` list<16 B>?, and `status` u16?, `client` u16?, so that nothing of a record is
//! lost. The file metadata say where the trace came from.

mod read;
mod write;

pub(crate) use read::ParquetReader;
pub(crate) use write::ParquetWriter;

/// Value of the metadata key `schema`.
const SCHEMA_NAME: &str = "onefold.trace/1";

/// The columns, in Parquet's own language.
const SCHEMA: &str = "message onefold_trace {
  required int64 t_ns (INTEGER(64,false));
  required int32 op (INTEGER(8,false));
  required int32 dev (INTEGER(16,false));
  required int64 offset (INTEGER(64,false));
  required int64 len (INTEGER(64,false));
  required int32 flags (INTEGER(8,false));
  optional int64 lat_ns (INTEGER(64,false));
  optional int64 aux (INTEGER(64,false));
  optional int32 status (INTEGER(16,false));
  optional int32 client (INTEGER(16,false));
  optional group digests (LIST) {
    repeated group list {
      required fixed_len_byte_array(16) element;
    }
  }
}";

/// Rows of a row group: what is held in memory.
const GROUP_ROWS: usize = 1 << 17;

/// Keys of the file metadata.
mod key {
    pub(super) const SCHEMA: &str = "schema";
    pub(super) const SOURCE_FORMAT: &str = "source_format";
    pub(super) const EPOCH: &str = "epoch_unix_ns";
    pub(super) const DEVICES: &str = "devices";
    pub(super) const OPTIONS: &str = "options";
    pub(super) const SHA256: &str = "source_sha256";
}
