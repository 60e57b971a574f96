//! Bytes on media: encode, decode, checksums, versions, feature bits.
#![forbid(unsafe_code)]
#![deny(clippy::as_conversions)]
