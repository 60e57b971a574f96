//! The classifiers, and how they are built.

use onefold_units::policy::{Info, Kind, Policies, Spec};

use super::{Classifier, ClassifierSetup, host, hot_cold};

/// A stream classifier with the values of its parameters.
pub type ClassifierSpec = Spec<BuildClassifier>;

/// Description of a stream classifier.
pub type ClassifierInfo = Info<BuildClassifier>;

/// The stream classifiers that can be named.
pub type ClassifierPolicies = Policies<BuildClassifier>;

/// How a stream classifier is built.
#[derive(Clone, Copy)]
pub struct BuildClassifier(Option<fn(&ClassifierSetup) -> Box<dyn Classifier>>);

impl BuildClassifier {
    /// None: requests say it all.
    pub(super) const NONE: Self = Self(None);

    /// A classifier.
    #[must_use]
    pub const fn of<C: Classifier>() -> Self {
        Self(Some(|setup| Box::new(C::new(setup))))
    }

    /// Builds one.
    pub(super) fn build(&self, setup: &ClassifierSetup) -> Option<Box<dyn Classifier>> {
        self.0.map(|new| new(setup))
    }
}

impl Kind for BuildClassifier {
    const NOUN: &'static str = "stream classifier";
    const BUILTIN: &'static [&'static Info<Self>] = &[&host::INFO, &hot_cold::INFO];
}
