//! Policies from their configuration.

use crate::config::Built;
use crate::{BufferConfig, Build, Cache, Replacement, Sizes};

impl Build {
    /// A policy over single entries.
    #[must_use]
    pub const fn of<R: Replacement>() -> Self {
        Self { new: &cache::<R>, asks_ftl: R::asks_ftl }
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
    use crate::{Policies, PolicySpec};

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
