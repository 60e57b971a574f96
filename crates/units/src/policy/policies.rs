//! The policies that a name can mean.

use std::fmt;

use super::error::shorten;
use super::parameters::PARAMETERS_MOST;
use super::{Info, Kind, PolicyError, Spec};

/// The policies of one kind that can be named: those that Onefold has, and those that a program adds.
#[derive(Clone)]
pub struct Policies<B: 'static> {
    own: Vec<&'static Info<B>>,
}

impl<B: Kind> fmt::Debug for Policies<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Policies({})", self.names())
    }
}

impl<B: Kind> Default for Policies<B> {
    fn default() -> Self {
        Self::builtin()
    }
}

impl<B: Kind> Policies<B> {
    /// Those that Onefold has.
    #[must_use]
    pub const fn builtin() -> Self {
        Self { own: Vec::new() }
    }

    /// One more, last in tables.
    ///
    /// # Panics
    /// A mistake in the description: the name is taken or has other characters than `a-z`, `0-9`
    /// and `-`, or there are more than 8 parameters.
    #[must_use]
    pub fn with(mut self, policy: &'static Info<B>) -> Self {
        let Info { name, parameters, .. } = policy;
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(
            !name.is_empty() && name.chars().all(is_plain),
            "the {} `{name}` needs a name of a-z, 0-9 and -",
            B::NOUN
        );
        assert!(self.get(name).is_none(), "there is a {} `{name}` already", B::NOUN);
        assert!(
            parameters.len() <= PARAMETERS_MOST,
            "the {} `{name}` has {} parameters, expected at most {PARAMETERS_MOST}",
            B::NOUN,
            parameters.len()
        );
        self.own.push(policy);
        self
    }

    /// All of them, in the order of tables.
    pub fn iter(&self) -> impl Iterator<Item = &'static Info<B>> {
        B::BUILTIN.iter().copied().chain(self.own.iter().copied())
    }

    /// The one with a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'static Info<B>> {
        self.iter().find(|policy| policy.name == name)
    }

    /// Names, as a message lists them.
    #[must_use]
    pub fn names(&self) -> String {
        self.iter().map(|policy| policy.name).collect::<Vec<_>>().join(", ")
    }

    /// Reads `NAME` or `NAME:KEY=VALUE,KEY=VALUE`.
    ///
    /// # Errors
    /// Says what is wrong, and what is accepted.
    pub fn parse(&self, text: &str) -> Result<Spec<B>, PolicyError> {
        let (name, settings) = text.split_once(':').unwrap_or((text, ""));
        let name = name.trim();
        let info = self.get(name).ok_or_else(|| PolicyError::UnknownPolicy {
            noun: B::NOUN,
            name: shorten(name),
            known: self.names(),
        })?;
        let mut spec = Spec::new(info);
        for setting in settings.split(',').map(str::trim).filter(|setting| !setting.is_empty()) {
            let (key, value) = setting.split_once('=').ok_or_else(|| PolicyError::NoValue {
                policy: info.name,
                setting: shorten(setting),
            })?;
            spec.set(key.trim(), value.trim())?;
        }
        Ok(spec)
    }
}

impl<B: Kind> Spec<B> {
    /// Reads `NAME` or `NAME:KEY=VALUE,KEY=VALUE` of a policy that Onefold has;
    /// [`Policies::parse`] knows others, too.
    ///
    /// # Errors
    /// Says what is wrong, and what is accepted.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        Policies::builtin().parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::{Policies, PolicyError};
    use crate::policy::{Info, Kind, Limits, Parameter, Ratio, Value};

    #[derive(Clone, Copy, Debug)]
    struct Plain;

    impl Kind for Plain {
        const NOUN: &'static str = "plain policy";
        const BUILTIN: &'static [&'static Info<Self>] = &[&PLAIN, &SHARED];
    }

    static PLAIN: Info<Plain> = Info::new("plain", "Does nothing.", Plain);
    static OWN: Info<Plain> = Info::new("own", "Does nothing, too.", Plain);
    static SHARED: Info<Plain> = Info {
        parameters: &[
            Parameter {
                name: "p",
                default: Value::Ratio(Ratio::new(1, 3)),
                limits: Limits::Ratio,
                about: "A share.",
            },
            Parameter {
                name: "chunk",
                default: Value::Bytes(1 << 20),
                limits: Limits::PowerOfTwo { least: 512, most: 1 << 30 },
                about: "A size.",
            },
        ],
        ..Info::new("shared", "Has parameters.", Plain)
    };

    #[test]
    fn text_there_and_back() {
        let policies = Policies::<Plain>::builtin();
        for text in ["plain", "shared", "shared:p=1/2", "shared:p=1/2,chunk=4KiB"] {
            assert_eq!(policies.parse(text).unwrap().to_string(), text);
        }
        let spaced = policies.parse(" shared : p = 0.50 , ").unwrap();
        assert_eq!(spaced.to_string(), "shared:p=1/2");
        assert_eq!(policies.parse("shared:chunk=1048576").unwrap().to_string(), "shared");
        assert_eq!(spaced.value("p"), Value::Ratio(Ratio::new(1, 2)));
    }

    #[test]
    fn refusals_name_what_is_accepted() {
        let error = |text: &str| Policies::<Plain>::builtin().parse(text).unwrap_err().to_string();
        assert_eq!(error("plaix"), "`plaix` is no plain policy; use one of: plain, shared");
        assert!(error("plain:p=1").ends_with("has no parameter `p`; it has none"));
        assert!(error("shared:q=1").ends_with("use one of: p, chunk"));
        assert!(error("shared:p").contains("sets nothing"));
        assert!(error("shared:p=2").contains("expected a ratio from 0 to 1"));
        assert!(error("shared:chunk=3MiB").contains("a power of two"));
        let long = "x".repeat(1000);
        assert!(error(&long).len() < 400);
        let none = Policies::<Plain>::builtin().parse("");
        assert!(matches!(none, Err(PolicyError::UnknownPolicy { .. })));
    }

    #[test]
    fn own_policies_follow_the_others() {
        assert!(Policies::<Plain>::builtin().parse("own").is_err());
        let policies = Policies::builtin().with(&OWN);
        assert_eq!(policies.parse("own").unwrap().name(), "own");
        assert_eq!(policies.names(), "plain, shared, own");
    }

    #[test]
    #[should_panic(expected = "there is a plain policy `own` already")]
    fn a_name_means_one_policy() {
        drop(Policies::builtin().with(&OWN).with(&OWN));
    }

    #[test]
    #[should_panic(expected = "needs a name of a-z, 0-9 and -")]
    fn a_name_can_stand_in_a_specification() {
        static COLON: Info<Plain> = Info::new("a:b", "Cannot be named.", Plain);
        drop(Policies::builtin().with(&COLON));
    }
}
