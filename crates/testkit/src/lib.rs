//! Reference models, closed forms and the crash driver (not published).
pub mod closed_forms;
