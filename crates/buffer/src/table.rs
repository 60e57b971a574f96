//! How policies are built: what their table says beyond name and parameters.

use onefold_units::policy::{Info, Parameters, Policies as Registry, Spec};

use crate::{BufferConfig, BufferError, Cache, Policy, Replacement, Sizes};

/// A buffer policy with the values of its parameters.
pub type PolicySpec = Spec<Build>;

/// Description of a buffer policy.
pub type PolicyInfo = Info<Build>;

/// The buffer policies that can be named.
pub type Policies = Registry<Build>;

/// What building a policy gives.
type Built = Result<Box<dyn Policy + Send>, BufferError>;

/// How a buffer policy is built.
#[derive(Clone, Copy)]
pub struct Build {
    new: &'static (dyn Fn(&BufferConfig, &Sizes) -> Built + Sync),
    asks_ftl: fn(&Parameters) -> bool,
}

impl Build {
    /// A policy over single entries.
    #[must_use]
    pub const fn of<R: Replacement>() -> Self {
        Self { new: &cache::<R>, asks_ftl: R::asks_ftl }
    }

    /// A policy that `new` builds. `asks_ftl` says whether, with such parameters, it uses the
    /// [`FtlView`](crate::FtlView) of a request.
    #[must_use]
    pub const fn with(
        new: &'static (dyn Fn(&BufferConfig, &Sizes) -> Built + Sync),
        asks_ftl: fn(&Parameters) -> bool,
    ) -> Self {
        Self { new, asks_ftl }
    }

    /// Whether the policy asks the FTL about pages ([`FtlView`](crate::FtlView)).
    #[must_use]
    pub fn asks_ftl(&self, parameters: &Parameters) -> bool {
        (self.asks_ftl)(parameters)
    }
}

/// The configured policy.
///
/// # Errors
/// The size does not fit the entries, the flash page, or what the policy needs.
pub fn new_policy(config: &BufferConfig, sizes: &Sizes) -> Built {
    (config.policy.info().build.new)(config, sizes)
}

/// Builds a policy over single entries.
pub(crate) fn cache<R: Replacement>(config: &BufferConfig, sizes: &Sizes) -> Built {
    Ok(Box::new(Cache::<R>::new(config, sizes)?))
}

#[cfg(test)]
mod tests {
    use super::{Policies, PolicySpec};

    #[test]
    fn defaults_are_within_their_limits_and_every_policy_could_be_added() {
        let mut names = Vec::new();
        for info in Policies::builtin().iter() {
            assert!(!names.contains(&info.name), "{}", info.name);
            names.push(info.name);
            assert!(info.parameters.len() <= 8 && info.about.ends_with('.'), "{}", info.name);
            for parameter in info.parameters {
                let mut spec = PolicySpec::new(info);
                let text = parameter.default.to_string();
                spec.set(parameter.name, &text).unwrap();
                assert_eq!(spec, PolicySpec::new(info), "{}.{}", info.name, parameter.name);
            }
            assert_eq!(PolicySpec::parse(info.name), Ok(PolicySpec::new(info)));
        }
    }
}
