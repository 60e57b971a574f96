//! The name a user most likely meant.

/// The candidate nearest to `typed`, if one is near enough to be a slip of the finger.
#[must_use]
pub fn nearest<'a>(typed: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    // Nothing that long is a slip, and the distance takes quadratic time.
    if typed.len() > 64 {
        return None;
    }
    let lower = typed.to_lowercase();
    candidates
        .into_iter()
        .map(|name| (distance(&lower, &name.to_lowercase()), name))
        .filter(|(distance, name)| *distance <= name.len().max(3) / 3)
        .min()
        .map(|(_, name)| name.to_owned())
}

/// Letters to insert, delete, replace or swap with the next (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replace = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replace.min(last[j] + 1).min(row[j - 1] + 1);
            let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if swapped {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn distances_count_edits() {
        assert_eq!(distance("fifo", "fifo"), 0);
        assert_eq!(distance("fiof", "fifo"), 1);
        assert_eq!(distance("greddy", "greedy"), 1);
        assert_eq!(distance("", "abc"), 3);
    }

    #[test]
    fn only_near_names_are_suggested() {
        let names = ["ftl.victim", "ftl.gc_start", "geometry.blocks"];
        assert_eq!(nearest("ftl.victm", names).as_deref(), Some("ftl.victim"));
        assert_eq!(nearest("geometry.block", names).as_deref(), Some("geometry.blocks"));
        assert_eq!(nearest("colour", names), None);
        assert_eq!(nearest(&"x".repeat(10_000), names), None);
    }
}
