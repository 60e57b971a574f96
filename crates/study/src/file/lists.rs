//! Lists, and how much of anything there may be.

use std::collections::BTreeSet;

use super::reader::Field;
use crate::StudyError;

/// Largest address space: 2^32 entries of 64 KiB.
pub(super) const DEVICE_MOST: u64 = 1 << 48;
/// Most items of any list: a slip of the keyboard should not start a year of work.
const ITEMS_MOST: usize = 256;

/// The items of a list that is neither empty nor endless.
pub(super) fn items<'a>(field: &Field<'a>) -> Result<Vec<Field<'a>>, StudyError> {
    let items = field.items()?;
    if items.is_empty() {
        return Err(field.refuse("expected at least one item, or the grid is empty"));
    }
    if items.len() > ITEMS_MOST {
        return Err(field.refuse(format_args!("expected at most {ITEMS_MOST} items")));
    }
    Ok(items)
}

/// Sizes of a study, ascending.
pub(super) fn sizes_of_study(field: &Field<'_>) -> Result<Vec<u64>, StudyError> {
    let mut sizes = BTreeSet::new();
    for item in items(field)? {
        if !sizes.insert(item.size(1, DEVICE_MOST)?) {
            return Err(item.refuse("expected every size once"));
        }
    }
    Ok(sizes.into_iter().collect())
}
