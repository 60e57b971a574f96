//! As the host says.

use super::{BuildClassifier, ClassifierInfo};

/// The classifier for whoever has no other in mind: none.
pub static INFO: ClassifierInfo = ClassifierInfo {
    name: "host",
    about: "The stream that the request names; append-only data of the buffer goes to the last.",
    source: "NVMe placement ids",
    parameters: &[],
    build: BuildClassifier::NONE,
};
