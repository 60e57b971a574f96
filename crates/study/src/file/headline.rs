//! The sentence of an abstract: one policy against others, on average.

use serde::Serialize;

use super::Metric;

/// Mean ratios of a policy to others. Empty lists mean all.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Headline {
    /// The number.
    pub metric: Metric,
    /// Label of the latency model; the first of the study if `None`.
    pub latency: Option<String>,
    /// Label of the policy.
    pub policy: String,
    /// Labels of the policies it is divided by.
    pub baselines: Vec<String>,
    /// Names of the workloads.
    pub workloads: Vec<String>,
    /// Sizes in bytes.
    pub sizes: Vec<u64>,
    /// What was published, in words.
    pub published: String,
}
