//! What the figure of a paper shows, as far as its text gives numbers.

use serde::Serialize;

/// A published number: exact, a range, or a bound on one side. The unit is that of the figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PublishedRange {
    /// The least that was published; `None` if there is no lower limit.
    pub from: Option<f64>,
    /// The most that was published; `None` if there is no upper limit.
    pub to: Option<f64>,
}

/// A published number and the points of a figure that it is about. Empty lists mean all of the figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Published {
    /// Names of the workloads.
    pub workloads: Vec<String>,
    /// Sizes in bytes.
    pub sizes: Vec<u64>,
    /// Labels of the policies or devices.
    pub policies: Vec<String>,
    /// The number.
    pub range: PublishedRange,
    /// Where the paper says so, and about what.
    pub note: String,
}

impl PublishedRange {
    /// The number if it is exact.
    #[must_use]
    pub fn exact(self) -> Option<f64> {
        self.from.filter(|from| Some(*from) == self.to)
    }

    /// The greatest number that has to fit into a plot.
    #[must_use]
    pub fn greatest(self) -> f64 {
        self.to.or(self.from).unwrap_or(0.0)
    }
}

impl Published {
    /// Whether it is about a point of the figure.
    #[must_use]
    pub fn is_about(&self, workload: &str, size: u64, policy: &str) -> bool {
        let among = |names: &[String], name: &str| {
            names.is_empty() || names.iter().any(|other| other == name)
        };
        among(&self.workloads, workload)
            && (self.sizes.is_empty() || self.sizes.contains(&size))
            && among(&self.policies, policy)
    }
}
