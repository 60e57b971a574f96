//! Figures of a study.
