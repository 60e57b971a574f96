//! The account of recordings: drives, files, budgets and what is printed.

mod drives;
mod files;
mod print;
