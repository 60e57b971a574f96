//! What a run came to.

use crate::Row;

/// What a run came to.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Every point of the chosen workloads that has a result, in the order of the study.
    pub rows: Vec<Row>,
    /// Points computed now.
    pub computed: usize,
    /// Points that were there already.
    pub found: usize,
    /// Points without a result because the run was interrupted.
    pub left: usize,
    /// Whether the run was interrupted.
    pub partial: bool,
}
