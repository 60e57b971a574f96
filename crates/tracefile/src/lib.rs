//! Trace files on disk: decompression, sorting, Parquet, conversion.
