//! Front ends: NBD, FUSE, metrics.
