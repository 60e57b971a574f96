//! Tests of files of traces, those that are committed too.

mod common;
mod damage;
mod files;
mod golden;
