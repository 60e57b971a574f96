//! A policy with the values of its parameters.

use std::fmt;

use super::error::shorten;
use super::parameters::{PARAMETERS_MOST, position};
use super::value::parse;
use super::{Info, Kind, Parameters, PolicyError, Value};

/// A policy with the values of its parameters. Two are equal if their texts are.
#[derive(Clone, Copy)]
pub struct Spec<B: 'static> {
    info: &'static Info<B>,
    values: [Value; PARAMETERS_MOST],
}

impl<B: Kind> Spec<B> {
    /// A policy with the default of every parameter.
    #[must_use]
    pub fn new(info: &'static Info<B>) -> Self {
        let mut values = [Value::Count(0); PARAMETERS_MOST];
        for (value, parameter) in values.iter_mut().zip(info.parameters) {
            *value = parameter.default;
        }
        Self { info, values }
    }

    /// Sets a parameter from its text.
    ///
    /// # Errors
    /// There is no such parameter, or the value is out of its limits.
    pub fn set(&mut self, key: &str, text: &str) -> Result<(), PolicyError> {
        let (policy, all) = (self.info.name, self.info.parameters);
        let Some(at) = position(all, key) else {
            let known = all.iter().map(|parameter| parameter.name).collect::<Vec<_>>().join(", ");
            return Err(PolicyError::UnknownParameter { policy, key: shorten(key), known });
        };
        let limits = all[at].limits;
        let value = parse(text, limits).ok_or_else(|| PolicyError::BadValue {
            policy,
            key: all[at].name,
            text: shorten(text),
            limits,
        })?;
        self.values[at] = value;
        Ok(())
    }
}

impl<B> Spec<B> {
    /// Which policy.
    #[must_use]
    pub const fn info(&self) -> &'static Info<B> {
        self.info
    }

    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.info.name
    }

    /// Its parameters.
    #[must_use]
    pub const fn parameters(&self) -> Parameters {
        Parameters { policy: self.info.name, all: self.info.parameters, values: self.values }
    }

    /// The value of a parameter of this policy.
    ///
    /// # Panics
    /// The policy has no such parameter.
    #[must_use]
    pub fn value(&self, key: &str) -> Value {
        self.parameters().value(key)
    }
}

impl<B> PartialEq for Spec<B> {
    fn eq(&self, other: &Self) -> bool {
        (self.info.name, self.values) == (other.info.name, other.values)
    }
}

impl<B> Eq for Spec<B> {}

impl<B> fmt::Debug for Spec<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{self}`")
    }
}

/// The shortest text that [`Policies::parse`](super::Policies::parse) reads back: parameters at their default are left out.
impl<B> fmt::Display for Spec<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.info.name)?;
        let changed = self.info.parameters.iter().zip(&self.values);
        let changed = changed.filter(|(parameter, value)| parameter.default != **value);
        for (at, (parameter, value)) in changed.enumerate() {
            let separator = if at == 0 { ':' } else { ',' };
            write!(f, "{separator}{}={value}", parameter.name)?;
        }
        Ok(())
    }
}
