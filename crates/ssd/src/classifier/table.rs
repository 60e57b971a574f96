//! The classifiers, and how they are built.

use onefold_units::policy::{Info, Policies, Spec};

use super::{Classifier, ClassifierSetup, Classify, UnitWrite};

/// A stream classifier with the values of its parameters.
pub type ClassifierSpec = Spec<BuildClassifier>;

/// Description of a stream classifier.
pub type ClassifierInfo = Info<BuildClassifier>;

/// The stream classifiers that can be named.
pub type ClassifierPolicies = Policies<BuildClassifier>;

/// How a stream classifier is built.
#[derive(Clone, Copy)]
pub struct BuildClassifier(Way);

#[derive(Clone, Copy)]
enum Way {
    None,
    New(fn(&ClassifierSetup) -> Box<dyn Classify>),
    Function(fn(&UnitWrite) -> u32),
}

impl BuildClassifier {
    /// None: requests say it all.
    pub(super) const NONE: Self = Self(Way::None);

    /// A classifier.
    #[must_use]
    pub const fn of<C: Classifier>() -> Self {
        Self(Way::New(|setup| Box::new(C::new(setup))))
    }

    /// A classifier without parameters or state of its own: what [`Classifier::stream`] does.
    #[must_use]
    pub const fn by(stream: fn(&UnitWrite) -> u32) -> Self {
        Self(Way::Function(stream))
    }

    /// Builds one.
    pub(super) fn build(&self, setup: &ClassifierSetup) -> Option<Box<dyn Classify>> {
        match self.0 {
            Way::None => None,
            Way::New(new) => Some(new(setup)),
            Way::Function(stream) => Some(Box::new(stream)),
        }
    }
}
