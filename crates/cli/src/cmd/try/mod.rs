//! `onefold try`.

mod failure;
